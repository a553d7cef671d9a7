package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/internal/config"
	"foyer/internal/testenv"
)

// A process whose start fails leaves nothing behind, wherever it fails and whatever else
// starts beside it: TestMain looks for goroutines, and the race detector for the rest.
func TestNewThatFailsClosesWhatItOpened(t *testing.T) {
	t.Parallel()
	server, err := url.Parse(testenv.StartRedis(t).URL)
	require.NoError(t, err)
	elsewhere := "sqlite:" + t.TempDir() + "/no/such/f.db"
	dataless := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(dataless, nil, 0o600))
	type start struct {
		role  config.Role
		flags config.Flags
	}
	starts := map[string]start{
		"no redis":             {config.RoleWorker, config.Flags{RedisURL: "redis://127.0.0.1:1", DatabaseURL: "sqlite:" + t.TempDir() + "/f.db"}},
		"no database":          {config.RoleWorker, config.Flags{RedisURL: server.String(), DatabaseURL: elsewhere}},
		"no database for dev":  {config.RoleDev, config.Flags{DatabaseURL: elsewhere}},
		"no directory for dev": {config.RoleDev, config.Flags{DataDir: dataless}},
	}
	for answers := range 2 { // to a handshake and to the first command; with more it starts
		starts[fmt.Sprintf("redis hangs up after %d", answers)] = start{config.RoleWorker,
			config.Flags{RedisURL: hangUp(t, server.Host, answers), DatabaseURL: "sqlite:" + t.TempDir() + "/f.db"}}
	}
	var running sync.WaitGroup
	for name, start := range starts {
		settings, err := start.flags.Load(start.role)
		require.NoError(t, err, name)
		for range 3 {
			running.Go(func() {
				a, err := New(t.Context(), settings, slog.New(slog.DiscardHandler))
				if assert.Error(t, err, name) {
					return
				}
				a.Close()
			})
		}
	}
	running.Wait()
	ended, end := context.WithCancel(t.Context())
	end()
	settings, err := config.Flags{DataDir: t.TempDir()}.Load(config.RoleDev)
	require.NoError(t, err)
	_, err = New(ended, settings, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, context.Canceled)
}

// A test that fails while the process runs ends the goroutine of Run. The parts went on
// behind its back, and wrote to the log of a test that was over while Close took their
// clients away.
func TestRunLeavesNothingWhenReadyEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	settings, err := config.Flags{HTTPAddr: "127.0.0.1:0"}.Load(config.RoleDev)
	require.NoError(t, err)
	a, err := New(t.Context(), settings, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer a.Close()
	var address string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(t.Context(), func(ready Ready) {
			address = strings.TrimPrefix(ready.URL, "http://")
			runtime.Goexit()
		})
	}()
	<-ended
	_, err = net.Dial("tcp", address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// hangUp passes connections on to a server, each until it has asked so often and then
// without an answer: what the client sees is EOF. It returns the address of a Redis.
func hangUp(t *testing.T, host string, answers int) string {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	t.Cleanup(func() { _ = front.Close() })
	open.Go(func() {
		for {
			conn, err := front.Accept()
			if err != nil {
				return
			}
			open.Go(func() { passOnFor(conn, host, answers) })
		}
	})
	return "redis://" + front.Addr().String()
}

// passOnFor passes on what the client asks, and so many answers.
func passOnFor(conn net.Conn, host string, answers int) {
	defer conn.Close()
	back, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer back.Close()
	asked, answered := make([]byte, 4096), make([]byte, 4096)
	for range answers {
		n, err := conn.Read(asked)
		if err != nil {
			return
		}
		if _, err = back.Write(asked[:n]); err != nil {
			return
		}
		if n, err = back.Read(answered); err != nil {
			return
		}
		if _, err = conn.Write(answered[:n]); err != nil {
			return
		}
	}
	_, _ = conn.Read(asked)
}
