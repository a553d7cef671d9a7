package testenv

import (
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// shared holds the servers of this test process. It is package state because
// the testing package offers no other place that outlives a single test.
var shared servers

// servers are the lazily started servers and what stops each of them.
type servers struct {
	mu       sync.Mutex
	redis    *RedisServer
	postgres *postgres
	dirs     []string
}

func (s *servers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redis != nil {
		s.redis.close()
		s.redis = nil
	}
	if s.postgres != nil {
		s.postgres.close()
		s.postgres = nil
	}
	for _, dir := range s.dirs {
		_ = os.RemoveAll(dir)
	}
	s.dirs = nil
}

// Dir makes a directory that outlives a single test. It is removed when all tests of the
// process are over.
func Dir() (string, error) {
	dir, err := os.MkdirTemp("", "foyer-test-")
	if err != nil {
		return "", err
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.dirs = append(shared.dirs, dir)
	return dir, nil
}

// runner stops the servers between the last test and whatever judges the process.
type runner struct{ m *testing.M }

func (r runner) Run() int {
	defer shared.stop()
	return r.m.Run()
}

// Main runs the tests of a package, stops the servers and exits.
func Main(m *testing.M) { os.Exit(runner{m}.Run()) }

// MainLeak is Main, and fails the run when a goroutine is left behind.
func MainLeak(m *testing.M) { goleak.VerifyTestMain(runner{m}) }

// IgnoreServers lets a test look for leaked goroutines of its own while the
// shared servers go on.
func IgnoreServers() goleak.Option {
	return goleak.IgnoreAnyFunction("foyer/internal/testenv.(*process).own")
}
