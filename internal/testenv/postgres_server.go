package testenv

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"foyer/domain"
)

// PostgresServer is a PostgreSQL that one test owns and may break. What it has
// answered as committed outlives Kill, though not the machine.
type PostgresServer struct {
	URL  string // of an empty database
	Addr string // 127.0.0.1:PORT

	t        testing.TB
	postgres *postgres
}

// StartPostgres starts a server of the test's own, killed when the test ends. Settings
// are written NAME=VALUE.
func StartPostgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	server, err := newPostgres(true, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.close)
	name := "foyer_" + strings.ToLower(strings.NewReplacer("-", "x", "_", "y").Replace(domain.NewID()))
	execute(t, server.url, "CREATE DATABASE "+name)
	at := strings.TrimPrefix(server.url, "postgres://postgres@")
	addr, _, _ := strings.Cut(at, "/")
	return &PostgresServer{URL: strings.Replace(server.url, "/postgres?", "/"+name+"?", 1), Addr: addr, t: t, postgres: server}
}

// Kill ends the server as a crash would, with all of its processes, and returns when
// it is gone.
func (s *PostgresServer) Kill() {
	pid := strconv.Itoa(s.postgres.p.cmd.Process.Pid)
	// Stopped first, it can neither tend to its children nor start any.
	s.postgres.p.signal(syscall.SIGSTOP)
	children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children") // only Linux tells; elsewhere they end soon by themselves
	for child := range strings.FieldsSeq(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	s.postgres.p.stop(syscall.SIGKILL)
}

// Restart starts the server again with its old address and files. It waits for what
// the crash has left to go: a server refuses to start beside its own remains.
func (s *PostgresServer) Restart() {
	s.t.Helper()
	var err error
	Eventually(s.t, startWithin, "postgres starts again", func() bool {
		if err = s.postgres.run(); err != nil {
			pauseBetweenStarts()
		}
		return err == nil
	})
}

// pauseBetweenStarts gives the remains of a crash a moment to end.
func pauseBetweenStarts() { <-time.After(100 * time.Millisecond) }
