package testenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// StartPgBouncer starts a pooler of transactions, as PgBouncer is set up by itself, before
// the server of a database, and returns the address of the database behind it. It ends
// with the test.
func StartPgBouncer(t testing.TB, database string) string {
	t.Helper()
	path, err := program("pgbouncer", "pgbouncer", "/usr/sbin")
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(database)
	if err != nil {
		t.Fatalf("parse database url: %v", err)
	}
	dir, err := os.MkdirTemp("", "foyer-pgbouncer-")
	if err != nil {
		t.Fatalf("make pgbouncer directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	owner, err := giveAway(dir)
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n",
		server.Hostname(), server.Port(), server.User.Username(), port)
	file, logFile := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "pgbouncer.log")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatalf("write settings of pgbouncer: %v", err)
	}
	p, err := start(path, []string{file}, owner, syscall.SIGKILL, logFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	server.Host = "127.0.0.1:" + strconv.Itoa(port)
	err = p.ready(logFile, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, server.String())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return server.String()
}
