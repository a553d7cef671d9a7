package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisURL returns the address of the Redis that the tests of this process share.
func RedisURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("FOYER_TEST_REDIS_URL"); url != "" {
		return url
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.redis == nil {
		server, err := newRedis(nil)
		if err != nil {
			t.Fatal(err)
		}
		shared.redis = server
	}
	return shared.redis.URL
}

// Redis returns a client on the shared Redis, closed when the test ends.
func Redis(t testing.TB) *redis.Client {
	t.Helper()
	return client(t, RedisURL(t))
}

func client(t testing.TB, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatalf("parse redis url: %v", err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// RedisServer is a redis-server that one test owns and may break.
type RedisServer struct {
	URL  string // redis://127.0.0.1:PORT/0
	Addr string // 127.0.0.1:PORT

	t    testing.TB
	dir  string
	args []string
	p    *process
}

// StartRedis starts a server of the test's own, without persistence unless args
// say otherwise, for example "--appendonly", "yes". It is killed when the test ends.
func StartRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	server, err := newRedis(args)
	if err != nil {
		t.Fatal(err)
	}
	server.t = t
	t.Cleanup(server.close)
	return server
}

// Client returns a client on the server, closed when the test ends.
func (s *RedisServer) Client(t testing.TB) *redis.Client {
	t.Helper()
	return client(t, s.URL)
}

// Kill ends the server as a crash would, and returns when it is gone.
func (s *RedisServer) Kill() { s.p.stop(syscall.SIGKILL) }

// Stop sends a signal. It waits for the server's end, except after SIGSTOP and
// SIGCONT, which freeze and thaw it.
func (s *RedisServer) Stop(signal syscall.Signal) {
	if signal == syscall.SIGSTOP || signal == syscall.SIGCONT {
		s.p.signal(signal)
		return
	}
	s.p.stop(signal)
}

// Restart starts the server again with its old address and files after Kill or Stop.
func (s *RedisServer) Restart() {
	s.t.Helper()
	if err := s.run(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *RedisServer) close() {
	s.p.stop(syscall.SIGKILL) // ends a frozen server too
	_ = os.RemoveAll(s.dir)
}

func newRedis(args []string) (*RedisServer, error) {
	dir, err := os.MkdirTemp("", "foyer-redis-")
	if err != nil {
		return nil, fmt.Errorf("make redis directory: %w", err)
	}
	for range startAttempts {
		var port int
		if port, err = freePort(); err != nil {
			break
		}
		addr := "127.0.0.1:" + strconv.Itoa(port)
		s := &RedisServer{URL: "redis://" + addr + "/0", Addr: addr, dir: dir, args: append([]string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no",
		}, args...)}
		if err = s.run(); err == nil {
			return s, nil
		}
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

func (s *RedisServer) run() error {
	path, err := program("redis-server", "redis-server")
	if err != nil {
		return err
	}
	logFile := filepath.Join(s.dir, "redis.log")
	p, err := start(path, s.args, nil, syscall.SIGKILL, logFile)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer rdb.Close()
	if err := p.ready(logFile, func(ctx context.Context) error { return rdb.Ping(ctx).Err() }); err != nil {
		p.stop(syscall.SIGKILL)
		return err
	}
	s.p = p
	return nil
}
