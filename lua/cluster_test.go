package lua

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// cluster is a cluster of one node that has all slots. It refuses a script that
// touches keys of two slots like any other.
func cluster(t *testing.T) (redis.UniversalClient, *redis.Client) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the node's bus needs a port too
	require.NoError(t, err)
	bus := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	server := testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
	node := server.Client(t)
	require.NoError(t, node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	testenv.Eventually(t, 10*time.Second, "the cluster is up", func() bool {
		return strings.Contains(node.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb, node
}

// Every script, to every result, on Redis Cluster.
func TestEveryScriptRunsOnACluster(t *testing.T) {
	t.Parallel()
	rdb, node := cluster(t)
	for _, c := range outcomeCases() {
		t.Run(c.script+"/"+c.code, func(t *testing.T) {
			w := unloaded(t, node)
			w.Steps = New(rdb)
			_, err := c.play(t.Context(), w)
			if err != nil {
				require.NotContains(t, err.Error(), "run step", "refused by the server")
			}
		})
	}
}

// Shows live in slots of their own; one call asks for many of them.
func TestManyShowsOfACluster(t *testing.T) {
	t.Parallel()
	rdb, _ := cluster(t)
	steps := New(rdb)
	var shows []domain.ShowID
	var keys []PlaceKey
	for range 20 {
		show := defaultShow(testenv.ShowID(t))
		require.NoError(t, steps.Configure(t.Context(), show))
		_, _, err := steps.Join(t.Context(), JoinRequest{ShowID: show.ID, RequestID: "p"})
		require.NoError(t, err)
		shows, keys = append(shows, show.ID), append(keys, PlaceKey{show.ID, "p"})
	}
	require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
	_, found, err := steps.Places(t.Context(), keys)
	require.NoError(t, err)
	require.NotContains(t, found, false)
	stats, err := steps.Stats(t.Context(), shows...)
	require.NoError(t, err)
	for i := range shows {
		require.Equal(t, shows[i], stats[i].ShowID)
		require.EqualValues(t, 1, stats[i].Active)
	}
}
