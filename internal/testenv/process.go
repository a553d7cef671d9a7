package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	startWithin   = 30 * time.Second // for a server to answer
	installWithin = 5 * time.Minute
	pollEvery     = 5 * time.Millisecond
)

// process is a server that ends with the test process, even if that is killed.
type process struct {
	cmd     *exec.Cmd
	started chan error
	done    chan struct{} // closed when the process has ended
}

// start runs a program with its output in a file. death is the signal that the
// kernel sends it when the test process dies.
func start(program string, args []string, owner *syscall.Credential, death syscall.Signal, logFile string) (*process, error) {
	out, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("create log of %s: %w", program, err)
	}
	defer out.Close()
	p := &process{cmd: exec.Command(program, args...), started: make(chan error, 1), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Dir = filepath.Dir(logFile)
	p.cmd.SysProcAttr = childAttributes(owner, death)
	go p.own()
	if err := <-p.started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// own starts and reaps the process on a thread of its own: the kernel's death
// signal follows the thread that forked, not the process.
func (p *process) own() {
	runtime.LockOSThread()
	err := p.cmd.Start()
	p.started <- err
	if err == nil {
		_ = p.cmd.Wait()
	}
	close(p.done)
}

func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// stop sends a signal and waits for the end.
func (p *process) stop(s os.Signal) {
	p.signal(s)
	<-p.done
}

// ready waits until check succeeds. It fails when the process ends first.
func (p *process) ready(logFile string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended while starting: %s", filepath.Base(p.cmd.Path), tail(logFile))
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer within %s: %w", filepath.Base(p.cmd.Path), startWithin, err)
		case <-tick.C:
		}
	}
}

func tail(file string) string {
	const lines = 10
	raw, _ := os.ReadFile(file)
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// program finds an executable on PATH, then by the patterns, then by installing
// the distribution's package where this process may.
func program(name, pkg string, patterns ...string) (string, error) {
	if path := find(name, patterns); path != "" {
		return path, nil
	}
	unlock, err := lockInstalling()
	if err != nil {
		return "", err
	}
	defer unlock()
	if path := find(name, patterns); path != "" {
		return path, nil
	}
	if err := install(pkg); err != nil {
		return "", fmt.Errorf("tests need %s: install the package %s (%w)", name, pkg, err)
	}
	if path := find(name, patterns); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("tests need %s: installed the package %s, but it is not there", name, pkg)
}

func find(name string, patterns []string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	var found []string
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(filepath.Join(pattern, name))
		found = append(found, matches...)
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Max(found)
}

func install(pkg string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return fmt.Errorf("cannot be installed from here")
	}
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", pkg}} {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// freePort asks the kernel for a port that nobody listens on. Another process
// may take it before the server does; starting is tried again then.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startAttempts bounds how often a server that lost its port is started anew.
const startAttempts = 5
