package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const someKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func TestDevNeedsNothing(t *testing.T) {
	t.Parallel()
	c, err := Flags{}.Load(RoleDev)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", c.HTTPAddr)
	require.Equal(t, time.Second, c.Tick)
	require.Equal(t, []string{"admission", "booking", "chat"}, c.Groups)
}

func TestEveryProblemIsReportedAtOnceWithoutSecrets(t *testing.T) {
	t.Parallel()
	_, err := Flags{
		HTTPAddr: "nowhere", RedisURL: "http://:hunter2@h", DatabaseURL: "mysql://u:hunter2@h", SigningKey: "hunter2",
		AllowedOrigins: "https://a.example/path", Tick: "-1s", Consumers: "0", NotifyPartitions: "many",
		LogLevel: "loud", LogFormat: "xml", Groups: "booking,tea", MetricsAddr: "h:99999", CommandRetention: "720h",
	}.Load(RoleAPI)
	require.Error(t, err)
	for _, variable := range []string{
		"FOYER_HTTP_ADDR", "FOYER_METRICS_ADDR", "FOYER_REDIS_URL", "FOYER_DATABASE_URL", "FOYER_SIGNING_KEY",
		"FOYER_ALLOWED_ORIGINS", "FOYER_TICK", "FOYER_CONSUMERS", "FOYER_NOTIFY_PARTITIONS", "FOYER_LOG_LEVEL",
		"FOYER_LOG_FORMAT", "FOYER_GROUPS", "FOYER_JWT_SECRET", "FOYER_COMMAND_RETENTION",
	} {
		require.Contains(t, err.Error(), variable)
	}
	require.NotContains(t, err.Error(), "hunter2")
}

func TestRolesRequireWhatTheyNeed(t *testing.T) {
	t.Parallel()
	servers := Flags{RedisURL: "redis://h:1", DatabaseURL: "postgres://h/d"}
	_, err := servers.Load(RoleWorker)
	require.NoError(t, err)
	_, err = servers.Load(RoleAPI)
	require.Error(t, err)
	require.Equal(t, 2, len(strings.Split(err.Error(), "\n")))
	servers.JWTSecret, servers.SigningKey = "s", someKey
	_, err = servers.Load(RoleAPI)
	require.NoError(t, err)
	_, err = Flags{}.Load(RoleMigrate)
	require.ErrorContains(t, err, "FOYER_DATABASE_URL")
}
