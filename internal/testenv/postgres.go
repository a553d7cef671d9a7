package testenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"foyer/domain"
)

const (
	postgresBinaries = "/usr/lib/postgresql/*/bin"
	maxConnections   = 200
)

// DatabaseURL returns the address of a fresh, empty database on the PostgreSQL
// that the tests of this process share. It is dropped when the test ends.
func DatabaseURL(t testing.TB) string {
	t.Helper()
	server := postgresURL(t)
	// Lower case letters and digits need no quoting.
	name := "foyer_" + strings.ToLower(strings.NewReplacer("-", "x", "_", "y").Replace(domain.NewID()))
	execute(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("parse database url: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}

func execute(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Errorf("connect to the test database server: %v", err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

func postgresURL(t testing.TB) string {
	t.Helper()
	if server := os.Getenv("FOYER_TEST_DATABASE_URL"); server != "" {
		return server
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.postgres == nil {
		server, err := newPostgres(false)
		if err != nil {
			t.Fatal(err)
		}
		shared.postgres = server
	}
	return shared.postgres.url
}

// postgres is a private server. It forgets nothing when it is killed, unless it is
// the shared one, which is only ever thrown away.
type postgres struct {
	url      string
	dir      string
	durable  bool // a commit that was answered outlives the server's process
	settings []string
	port     int // the same at every start; 0 before the first
	bin      string
	owner    *syscall.Credential // whom it runs as, where that is not this process's user
	p        *process
}

func (s *postgres) close() {
	s.p.stop(syscall.SIGQUIT) // at once, but with its shared memory given back
	_ = os.RemoveAll(s.dir)
}

func newPostgres(durable bool, settings ...string) (*postgres, error) {
	initdb, err := program("initdb", "postgresql", postgresBinaries)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "foyer-pg-")
	if err != nil {
		return nil, fmt.Errorf("make postgres directory: %w", err)
	}
	s := &postgres{dir: dir, durable: durable, settings: settings, bin: filepath.Dir(initdb)}
	if err := s.launch(initdb); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *postgres) launch(initdb string) error {
	var err error
	if s.owner, err = giveAway(s.dir); err != nil {
		return err
	}
	// The kernel's death signal follows the thread that forked; see process.own.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(initdb, "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Dir = s.dir
	cmd.SysProcAttr = childAttributes(s.owner, syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	for range startAttempts {
		if err = s.run(); err == nil {
			return nil
		}
		s.port = 0 // somebody may have taken it
	}
	return err
}

func (s *postgres) data() string { return filepath.Join(s.dir, "data") }

// giveAway is whom a server runs as that refuses to run as root, and gives them its
// directory. It is nil when this process is not root.
func giveAway(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user to run postgres as: %w", err)
		}
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if errUID != nil || errGID != nil {
		return nil, fmt.Errorf("user %s has the ids %s and %s, which are not numbers", u.Username, u.Uid, u.Gid)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, fmt.Errorf("give the postgres directory away: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// run starts the server, on its old port where it had one.
func (s *postgres) run() (err error) {
	if s.port == 0 {
		if s.port, err = freePort(); err != nil {
			return err
		}
	}
	args := []string{
		"-D", s.data(), "-k", s.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-N", strconv.Itoa(maxConnections), "-c", "fsync=off",
	}
	if !s.durable {
		args = append(args, "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	for _, setting := range s.settings {
		args = append(args, "-c", setting) // the last of one name counts
	}
	logFile := filepath.Join(s.dir, "postgres.log")
	p, err := start(filepath.Join(s.bin, "postgres"), args, s.owner, syscall.SIGQUIT, logFile)
	if err != nil {
		return err
	}
	s.url = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
	err = p.ready(logFile, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.url)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		p.stop(syscall.SIGQUIT)
		return err
	}
	s.p = p
	return nil
}
