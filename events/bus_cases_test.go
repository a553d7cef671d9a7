package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// receive runs a bus with a client of its own to receive with, until the test ends.
func receive(t *testing.T, bus *Bus, receiving redis.UniversalClient) *listener {
	t.Helper()
	heard := &listener{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bus.Run(ctx, receiving, heard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("bus: %v", err)
		}
		_ = receiving.Close()
	})
	testenv.Eventually(t, patience, "the bus is healthy", bus.Healthy)
	return heard
}

// sized are notifications of one show that differ in length by a byte each.
func sized(show domain.ShowID, n, longest int) []Notification {
	all := make([]Notification, n)
	for i := range all {
		id := domain.RequestID(strings.Repeat("x", i%longest))
		all[i] = Notification{Event: EventAdmission, ShowID: show, Version: int64(1 + i), Joined: []domain.RequestID{id}}
	}
	return all
}

// R23: where the head of a message straddled the edge of the client's buffer, it was
// dropped without a word. Heads stand across every edge of a small buffer here, and
// none is lost; the pinned client does it right, and were it not to, the numbers
// would tell.
func TestMessageAcrossTheEdgeOfABufferIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			options := *w.rdb.Options()
			options.Protocol, options.ReadBufferSize = protocol, 512
			bus := NewBus(w.rdb, BusConfig{Log: w.log})
			heard := receive(t, bus, redis.NewClient(&options))
			show := testenv.ShowID(t)
			const many = 3000
			for batch := range slices.Chunk(sized(show, many, 1024), 100) {
				require.NoError(t, bus.Publish(t.Context(), batch...))
			}
			w.eventually("all have come", func() bool { return len(heard.versions(show)) == many })
			require.Equal(t, count(1, many), heard.versions(show))
			require.Equal(t, []string{GapSubscribed}, heard.reasons())
		})
	}
}

// R24: on an idle connection the confirmation of a channel with a short name was
// waited for without an end. It comes, and every wait has one.
func TestConfirmationOfAShortNameComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle := w.rdb.Subscribe(t.Context(), "c")
	defer idle.Close()
	confirmed, err := idle.ReceiveTimeout(t.Context(), 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, "c", confirmed.(*redis.Subscription).Channel)
	began := time.Now()
	_, err = idle.ReceiveTimeout(t.Context(), receiveTimeout)
	require.Error(t, err, "nothing was said")
	require.Less(t, time.Since(began), 5*time.Second)
}

// R26: on a Cluster every PUBLISH goes to every node. Ours go to the node of their
// partition alone, and there are as many channels as partitions, however many shows.
func TestClusterCarriesANotificationOnce(t *testing.T) {
	t.Parallel()
	const partitions, shows = 8, 40
	nodes := testenv.StartCluster(t, 3)
	var addrs []string
	for _, node := range nodes {
		addrs = append(addrs, node.Addr)
	}
	cluster := func() *redis.ClusterClient { return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}) }
	rdb := cluster()
	t.Cleanup(func() { _ = rdb.Close() })
	bus := NewBus(rdb, BusConfig{Partitions: partitions, Heartbeat: time.Hour})
	heard := receive(t, bus, cluster())
	for range shows {
		show := testenv.ShowID(t)
		require.NoError(t, bus.Publish(t.Context(), Notification{Event: EventShow, ShowID: show, Version: 1}))
		testenv.Eventually(t, patience, "it has come", func() bool { return len(heard.versions(show)) == 1 })
	}
	var sharded, plain, channels int
	for _, node := range nodes {
		one := node.Client(t)
		stats := one.InfoMap(t.Context(), "commandstats")
		sharded += calls(t, stats.Item("Commandstats", "cmdstat_spublish"))
		plain += calls(t, stats.Item("Commandstats", "cmdstat_publish"))
		names, err := one.PubSubShardChannels(t.Context(), "*").Result()
		require.NoError(t, err)
		channels += len(names)
	}
	require.Zero(t, plain)
	require.Equal(t, partitions, channels)
	beats := sharded - shows
	require.Positive(t, beats)
	require.LessOrEqual(t, beats, partitions*(partitions+1), "one heartbeat for each channel and subscription, and one to begin with")
}

// calls reads how often a command was called; 0 when it never was.
func calls(t *testing.T, stat string) int {
	t.Helper()
	if stat == "" {
		return 0
	}
	var n int
	_, err := fmt.Sscanf(stat, "calls=%d,", &n)
	require.NoError(t, err)
	return n
}

// R28: Redis cuts a subscriber that does not keep up, in the middle of a message and
// without a word. Half a message is none, and the cut is a gap like any other.
func TestCutInTheMiddleOfAMessageIsAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	bus, heard := w.listen(BusConfig{})
	limit := func(class string) {
		require.NoError(t, w.rdb.ConfigSet(ctx, "client-output-buffer-limit", class).Err())
	}
	limit("pubsub 2mb 1mb 1")
	show := testenv.ShowID(t)
	long := domain.RequestID(strings.Repeat("x", 4<<20))
	require.NoError(t, bus.Publish(ctx, Notification{Event: EventShow, ShowID: show, Version: 1}))
	require.NoError(t, bus.Publish(ctx, Notification{Event: EventAdmission, ShowID: show, Version: 2, Joined: []domain.RequestID{long}}))
	w.eventually("it says that something may be missing", func() bool { return slices.Contains(heard.reasons(), GapReconnected) })
	limit("pubsub 33554432 8388608 60")
	require.NoError(t, bus.Publish(ctx, Notification{Event: EventShow, ShowID: show, Version: 3}))
	w.eventually("delivery goes on", func() bool { return slices.Contains(heard.versions(show), 3) })
	require.NotContains(t, heard.versions(show), int64(2))
}

// R38: a process that came back under the name of its predecessor was taken for it,
// with all that was known of the dead one. Each start has a name of its own, so that
// its numbers, which begin anew, are not taken for repeats.
func TestRestartedPublisherIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, heard := w.listen(BusConfig{})
	show := testenv.ShowID(t)
	names := map[string]bool{}
	for start := range int64(3) {
		bus := NewBus(w.rdb, BusConfig{})
		require.False(t, names[bus.publisher])
		names[bus.publisher] = true
		for n := range int64(5) {
			require.NoError(t, bus.Publish(t.Context(), Notification{Event: EventShow, ShowID: show, Version: 1 + 5*start + n}))
		}
	}
	w.eventually("all have come", func() bool { return slices.Equal(heard.versions(show), count(1, 15)) })
	require.Equal(t, []string{GapSubscribed}, heard.reasons())
}
