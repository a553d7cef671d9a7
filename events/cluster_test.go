package events

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// On a Redis Cluster every key of a script must live in one slot, and a sharded
// channel on the node of its slot. One node that owns all slots judges both.
func TestClusterCarriesCommandsAndNotifications(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, "--cluster-enabled", "yes")
	w := worldOn(t, server.URL)
	ctx := t.Context()
	require.NoError(t, w.rdb.ClusterAddSlotsRange(ctx, 0, 16383).Err())
	w.eventually("the cluster is up", func() bool {
		return strings.Contains(w.rdb.ClusterInfo(ctx).Val(), "cluster_state:ok")
	})
	cluster := func() *redis.ClusterClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}, MaxRetries: -1})
	}
	rdb := cluster()
	defer rdb.Close()
	commands, err := NewCommands(rdb, w.log)
	require.NoError(t, err)
	var ran tally
	worker := w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		if ran.add(d.CommandID) == 1 && d.CommandID == "bad" {
			return Permanent(errors.New("no"))
		}
		return nil
	}}, func(cfg *ConsumerConfig) {
		cfg.Redis = func(string) redis.UniversalClient { return cluster() }
	})
	require.NoError(t, commands.BookSeats(ctx, "good", BookSeats{Booking: booking("good")}))
	require.NoError(t, commands.BookSeats(ctx, "bad", BookSeats{Booking: booking("bad")}))
	dead := NewDeadLetters(rdb)
	var letters []DeadLetter
	w.eventually("one is dead", func() bool {
		letters, err = dead.List(ctx, "", 10)
		return err == nil && len(letters) == 1
	})
	require.NoError(t, dead.Requeue(ctx, StreamBooking, letters[0].ID))
	w.eventually("both have run", func() bool { return ran.of("good") == 1 && ran.of("bad") == 2 })
	w.settled()
	worker.stop()

	receiving := cluster()
	defer receiving.Close()
	bus, heard := NewBus(rdb, BusConfig{Partitions: 4, Log: w.log}), &listener{}
	listening, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- bus.Run(listening, receiving, heard) }()
	w.eventually("the bus is healthy", bus.Healthy)
	for range 10 {
		show := testenv.ShowID(t)
		require.NoError(t, bus.Publish(ctx, Notification{Event: EventShow, ShowID: show, Version: 1}))
		w.eventually("it has come", func() bool { return len(heard.versions(show)) == 1 })
	}
	cancel()
	require.NoError(t, <-ended)
}
