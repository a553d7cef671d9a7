package testenv

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { MainLeak(m) }

func TestRedisIsShared(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	key := string(ShowID(t))
	require.NoError(t, Redis(t).Set(ctx, key, "1", time.Minute).Err())
	require.Equal(t, "1", Redis(t).Get(ctx, key).Val())
}

func TestDatabaseIsFresh(t *testing.T) {
	t.Parallel()
	first, second := DatabaseURL(t), DatabaseURL(t)
	require.NotEqual(t, first, second)
	conn, err := pgx.Connect(t.Context(), first)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	var tables int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables))
	require.Zero(t, tables)
}

func TestStartRedisSurvivesKillWithItsFile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := server.Client(t)
	require.NoError(t, rdb.Set(ctx, "k", "kept", 0).Err())
	server.Kill()
	require.Error(t, rdb.Get(ctx, "k").Err())
	server.Restart()
	require.Equal(t, "kept", rdb.Get(ctx, "k").Val())
}

func TestStopFreezesAndThaws(t *testing.T) {
	t.Parallel()
	server := StartRedis(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ReadTimeout: 50 * time.Millisecond})
	defer rdb.Close()
	server.Stop(syscall.SIGSTOP)
	require.Error(t, rdb.Ping(t.Context()).Err())
	server.Stop(syscall.SIGCONT)
	Eventually(t, 5*time.Second, "the thawed server answers", func() bool { return rdb.Ping(t.Context()).Err() == nil })
}

// A test run that is killed must not leave servers behind: they would pile up
// on a developer's machine. The test runs itself as a child, which starts both
// servers and is then killed.
func TestServersEndWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv("FOYER_TESTENV_CHILD") != "" {
		_, _ = os.Stdout.WriteString("servers " + RedisURL(t) + " " + DatabaseURL(t) + "\n")
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestServersEndWithAKilledTestProcess$")
	dir, err := os.MkdirTemp("", "t") // short: a socket's path has a limit; a killed process cannot remove its files
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) // postgres runs as somebody else
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	child.Env = append(os.Environ(), "FOYER_TESTENV_CHILD=1", "FOYER_TEST_REDIS_URL=", "FOYER_TEST_DATABASE_URL=", "TMPDIR="+dir)
	// No death signal for the child: it would follow this thread, which the runtime
	// may end at any time, and not the process.
	t.Cleanup(func() { _ = child.Process.Kill() })
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var redisURL, databaseURL string
	line := make([]byte, 0, 256)
	for buf := make([]byte, 1); !strings.HasSuffix(string(line), "\n"); line = append(line, buf[0]) {
		_, err := out.Read(buf)
		require.NoError(t, err)
	}
	fields := strings.Fields(string(line))
	require.Len(t, fields, 3)
	redisURL, databaseURL = fields[1], fields[2]
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()

	options, err := redis.ParseURL(redisURL)
	require.NoError(t, err)
	options.MaxRetries = -1
	rdb := redis.NewClient(options)
	defer rdb.Close()
	Eventually(t, 10*time.Second, "redis has ended", func() bool { return rdb.Ping(t.Context()).Err() != nil })
	Eventually(t, 10*time.Second, "postgres has ended", func() bool {
		conn, err := pgx.Connect(t.Context(), databaseURL)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err != nil
	})
}
