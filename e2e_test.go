package foyer_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// These tests drive the program as people and operators do: built once, run as
// processes on port 0 against real Redis and PostgreSQL, spoken to over HTTP and
// sockets, and killed.

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	e2eSecret = "only the tests know this secret, which is long enough"
	e2eKey    = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	// readyWithin is how long a process may take to be ready on a busy machine.
	readyWithin = 60 * time.Second
	// stopWithin is how long a drain may take.
	stopWithin = 40 * time.Second
)

// binary builds the program once, as the tests themselves were built.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := testenv.Dir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "foyer")
	args := append([]string{"build", "-o", path}, raceFlag()...)
	out, err := exec.Command("go", append(args, "./cmd/foyer")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build foyer: %w\n%s", err, out)
	}
	return path, nil
})

// process is one running foyer.
type process struct {
	cmd    *exec.Cmd
	ready  string // the line that it printed when it was ready
	stderr *strings.Builder
	exited chan struct{}
	err    error // valid once exited is closed
}

// start runs foyer and waits for a line on its output that begins with ready.
func start(t *testing.T, env []string, ready string, args ...string) *process {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(path, args...), stderr: &strings.Builder{}, exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { p.kill(); p.logOnFailure(t) })
	lines := make(chan string, 1)
	go func() {
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			if strings.HasPrefix(scanner.Text(), ready) {
				lines <- scanner.Text()
				break
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	select {
	case p.ready = <-lines:
	case <-p.exited:
		require.FailNow(t, "foyer ended before it was ready", "%v\n%s", p.err, p.stderr)
	case <-time.After(readyWithin):
		require.FailNow(t, "foyer was not ready in time")
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// terminate asks for a drain; the process must end well.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.ends(t)
}

// ends waits for the end that was asked for.
func (p *process) ends(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
		require.NoError(t, p.err, "a stop by signal is a success")
	case <-time.After(stopWithin):
		require.FailNow(t, "foyer did not drain in time")
	}
}

func (p *process) logOnFailure(t *testing.T) {
	if t.Failed() {
		log := p.stderr.String()
		t.Logf("%s printed:\n%s", strings.Join(p.cmd.Args[1:], " "), log[max(0, len(log)-4000):])
	}
}

func (p *process) url() string {
	return strings.TrimPrefix(p.ready, "foyer: listening on ")
}

// deployment is several api and worker processes on one Redis and PostgreSQL.
type deployment struct {
	env     []string
	redis   *testenv.RedisServer
	dbURL   string
	apis    []*process
	workers []*process
}

func deploy(t *testing.T, apis, workers int) *deployment {
	t.Helper()
	d := &deployment{redis: testenv.StartRedis(t), dbURL: testenv.DatabaseURL(t)}
	d.env = []string{
		"FOYER_HTTP_ADDR=127.0.0.1:0", "FOYER_REDIS_URL=" + d.redis.URL, "FOYER_DATABASE_URL=" + d.dbURL,
		"FOYER_JWT_SECRET=" + e2eSecret, "FOYER_SIGNING_KEY=" + e2eKey, "FOYER_LOG_LEVEL=warn",
	}
	for range apis {
		d.apis = append(d.apis, start(t, d.env, "foyer: listening on ", "api"))
	}
	for range workers {
		d.workers = append(d.workers, d.startWorker(t))
	}
	return d
}

func (d *deployment) startWorker(t *testing.T) *process {
	t.Helper()
	return start(t, d.env, "foyer: working", "worker")
}

// as is a client of the nth api process, counted round, for a person.
func (d *deployment) as(t *testing.T, n int, person string, roles ...string) *client.Client {
	t.Helper()
	c, err := client.New(d.apis[n%len(d.apis)].url(), client.WithToken(token(t, person, roles...)),
		client.WithHTTPClient(&http.Client{Timeout: 30 * time.Second}))
	require.NoError(t, err)
	return c
}

func token(t *testing.T, person string, roles ...string) string {
	t.Helper()
	claims := jwt.MapClaims{"sub": person, "name": person, "exp": time.Now().Add(time.Hour).Unix()}
	if len(roles) > 0 {
		claims["roles"] = roles
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(e2eSecret))
	require.NoError(t, err)
	return signed
}

// putOnSale creates a show that is open now.
func (d *deployment) putOnSale(t *testing.T, change func(*client.NewShow)) domain.ShowID {
	t.Helper()
	show := client.NewShow{ID: testenv.ShowID(t), Title: "End to end"}
	change(&show)
	created, err := d.as(t, 0, "operator", "operator").CreateShow(t.Context(), show)
	require.NoError(t, err)
	require.Equal(t, domain.PhaseOpen, created.Phase)
	return created.ID
}

// enter joins, waits for the turn and claims it.
func enter(ctx context.Context, c *client.Client, show domain.ShowID) error {
	if _, _, err := c.Join(ctx, show); err != nil {
		return err
	}
	if _, err := c.WaitAdmission(ctx, show); err != nil {
		return err
	}
	_, err := c.Claim(ctx, show)
	return err
}

// together runs a step for each of n people at the same instant.
func together(n int, step func(i int)) {
	begin := make(chan struct{})
	var people sync.WaitGroup
	for i := range n {
		people.Go(func() { <-begin; step(i) })
	}
	close(begin)
	people.Wait()
}
