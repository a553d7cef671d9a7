package workers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// A command that stands on its stream twice has its effect once, and the second is
// counted as absorbed.
func TestRepeatedBookingIsAbsorbed(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1")
	options, err := redis.ParseURL(testenv.StartRedis(t).URL) // the streams of a server of their own
	require.NoError(t, err)
	options.MaxRetries = -1
	log, metrics := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	rdb := redis.NewClient(options)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	commands, err := events.NewCommands(rdb, log)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, commands.BookSeats(t.Context(), booking.CommandID, events.BookSeats{Booking: booking}))
	}
	consumer, err := events.NewConsumer(events.ConsumerConfig{
		Redis:  func(string) redis.UniversalClient { return redis.NewClient(options) },
		Groups: []string{events.GroupBooking}, Log: log, Metrics: metrics,
	}, s.work.Handlers())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	testenv.Eventually(t, time.Minute, "both are acknowledged", func() bool {
		return counted(t, metrics, "foyer_stream_acked_total") == 2
	})
	stop()
	require.NoError(t, <-ended)
	require.EqualValues(t, 1, counted(t, metrics, "foyer_stream_duplicates_absorbed_total"))
	s.requireSold("A-1-1")
}

// counted is a counter's sum over its labels.
func counted(t *testing.T, from prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// The sizes of groups are seen where metrics are asked for, also when two workers of a
// process share a registry.
func TestGroupSizesAreSeen(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for range 2 {
		groupSizes(registry).WithLabelValues("test").Observe(3)
	}
	require.Equal(t, 1, testutil.CollectAndCount(groupSizes(registry)))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.EqualValues(t, 2, families[0].GetMetric()[0].GetHistogram().GetSampleCount())
}
