package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestStartPostgresSurvivesKillWithItsFiles(t *testing.T) {
	t.Parallel()
	server := StartPostgres(t)
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, server.URL)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
	require.NoError(t, err)
	server.Kill()
	_, err = conn.Exec(ctx, "SELECT 1")
	require.Error(t, err)
	server.Restart()
	again, err := pgx.Connect(ctx, server.URL)
	require.NoError(t, err)
	defer again.Close(context.WithoutCancel(ctx))
	var n int
	require.NoError(t, again.QueryRow(ctx, "SELECT n FROM kept").Scan(&n))
	require.Equal(t, 7, n)
}

func TestProxyGoesSilentCutsAndDelays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	proxy := StartProxy(t, StartRedis(t).Addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: -1, PoolSize: 1, ReadTimeout: 200 * time.Millisecond})
	defer rdb.Close()
	require.NoError(t, rdb.Ping(ctx).Err())

	proxy.Silence()
	require.ErrorContains(t, rdb.Ping(ctx).Err(), "timeout")
	require.NoError(t, rdb.Ping(ctx).Err(), "a new connection is carried")

	conn := rdb.Conn()
	defer conn.Close()
	require.NoError(t, conn.Ping(ctx).Err())
	proxy.Cut()
	require.Error(t, conn.Ping(ctx).Err())

	proxy.Delay(60 * time.Millisecond)
	began := time.Now()
	slow := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: -1})
	defer slow.Close()
	require.NoError(t, slow.Ping(ctx).Err())
	require.GreaterOrEqual(t, time.Since(began), 120*time.Millisecond)
}
