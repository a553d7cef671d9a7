package app

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestRedisAddresses(t *testing.T) {
	t.Parallel()
	parse := func(url string) redis.UniversalOptions {
		server, err := parseRedis(url)
		require.NoError(t, err, url)
		return server.options
	}
	plain := parse("redis://cache")
	require.Equal(t, []string{"cache:6379"}, plain.Addrs)
	require.False(t, plain.IsClusterMode)

	full := parse("redis://us%40er:pa%3Ass@127.0.0.1:7000/3")
	require.Equal(t, "us@er", full.Username)
	require.Equal(t, "pa:ss", full.Password)
	require.Equal(t, 3, full.DB)

	require.Equal(t, "only", parse("redis://only@h").Password, "one word before @ is the password")
	require.Equal(t, []string{"[::1]:6379"}, parse("redis://[::1]").Addrs)
	require.Equal(t, "secure.example", parse("rediss://secure.example:6380").TLSConfig.ServerName)

	cluster := parse("redis://a:1,b:2,c")
	require.True(t, cluster.IsClusterMode)
	require.Equal(t, []string{"a:1", "b:2", "c:6379"}, cluster.Addrs)

	sentinel := parse("redis+sentinel://s1,s2:26380/main/2")
	require.Equal(t, "main", sentinel.MasterName)
	require.Equal(t, []string{"s1:26379", "s2:26380"}, sentinel.Addrs)
	require.Equal(t, 2, sentinel.DB)
	require.False(t, sentinel.IsClusterMode)
}

func TestRedisAddressProblemsKeepSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"hunter2", "redis://:hunter2@h/first", "redis+sentinel://:hunter2@h", "redis://hunter2%zz@h"} {
		_, err := parseRedis(url)
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestClientsForPublishingNeverRepeat(t *testing.T) {
	t.Parallel()
	server, err := parseRedis("redis://127.0.0.1:1")
	require.NoError(t, err)
	once, ok := server.once().(*redis.Client)
	require.True(t, ok)
	defer once.Close()
	require.Zero(t, once.Options().MaxRetries)
}
