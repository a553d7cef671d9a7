package events

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"foyer/domain"
)

// loseAnswers runs XADD and then reports that it failed, so many times.
type loseAnswers struct{ left atomic.Int32 }

func (l *loseAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *loseAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (l *loseAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if command.Name() == "xadd" && l.left.Add(-1) >= 0 {
			command.SetErr(net.ErrClosed)
			return net.ErrClosed
		}
		return err
	}
}

// Trap 10, S14: the answer of an XADD is lost, though the command stands on the
// stream. Publishing tries again under the same id, by which the repeat is known.
func TestTrap10RetriesCarryTheSameCommandID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lose := &loseAnswers{}
	lose.left.Store(1)
	w.rdb.AddHook(lose)
	id := w.book(1)[0]
	entries, err := w.rdb.XRange(t.Context(), StreamBooking, "-", "+").Result()
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		require.EqualValues(t, id, e.Values[fieldID])
	}
	lose.left.Store(publishAttempts)
	err = w.commands.CancelBooking(t.Context(), "c", CancelBooking{BookingID: "b"})
	require.ErrorIs(t, err, net.ErrClosed)
}

// A caller that gives up is not kept.
func TestPublishingStopsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.commands.MarkRead(ctx, MarkRead{}), context.Canceled)
}

// The trace of a request reaches its handler: as the parent at first, and as a
// link when the command comes again, which is another story.
func TestTraceReachesTheHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	recorder := tracetest.NewSpanRecorder()
	ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": traceparent})
	require.NoError(t, w.commands.BookSeats(ctx, "c", BookSeats{Booking: booking("c")}))
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		if d.Attempt == 1 {
			return errors.New("again")
		}
		return nil
	}}, func(cfg *ConsumerConfig) {
		cfg.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	})
	w.eventually("both attempts have ended", func() bool { return len(recorder.Ended()) == 2 })
	first, second := recorder.Ended()[0], recorder.Ended()[1]
	require.True(t, strings.Contains(traceparent, first.SpanContext().TraceID().String()))
	require.NotEqual(t, first.SpanContext().TraceID(), second.SpanContext().TraceID())
	require.Len(t, second.Links(), 1)
	require.True(t, strings.Contains(traceparent, second.Links()[0].SpanContext.TraceID().String()))
}

// A read event as the source texts write it, without an envelope, is understood.
func TestForeignReadEventIsHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry, err := w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: StreamChatRead, Values: []any{"roomNo", "r-1", "publicUuid", "ann"}}).Result()
	require.NoError(t, err)
	got := make(chan Delivery, 1)
	w.work(Handlers{MarkRead: func(_ context.Context, d Delivery, c MarkRead) error {
		assert.Equal(t, domain.RoomID("r-1"), c.RoomID)
		got <- d
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Groups = []string{GroupChat} })
	require.EqualValues(t, entry, (<-got).CommandID)
}

// What an operator watches: counts by reason, and gauges of what waits and for
// how long. S28: a lag that Redis cannot tell is absent, not zero.
func TestMetricsTellWhatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	ids := w.book(20)
	w.raw("nonsense", "1")
	release := make(chan struct{})
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		switch d.CommandID {
		case ids[0]:
			return Permanent(errors.New("no"))
		case ids[1]:
			<-release
		case ids[2]:
			if d.Attempt == 1 {
				return errors.New("again")
			}
		}
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Metrics = registry })
	m, err := newMetrics(registry) // the same collectors again
	require.NoError(t, err)
	of := func(c prometheus.Collector) float64 { return testutil.ToFloat64(c) }
	w.eventually("all but one are acknowledged", func() bool { return of(m.acked.WithLabelValues(StreamBooking)) == 18 })
	w.eventually("one is pending for a while", func() bool {
		return of(m.pending.WithLabelValues(StreamBooking)) == 1 && of(m.oldestPending.WithLabelValues(StreamBooking)) > 0.1
	})
	require.InDelta(t, 1, of(m.inFlight.WithLabelValues(StreamBooking)), 0)
	require.InDelta(t, 21, of(m.read.WithLabelValues(StreamBooking)), 0)
	require.InDelta(t, 1, of(m.retried.WithLabelValues(StreamBooking)), 0)
	require.InDelta(t, 1, of(m.dead.WithLabelValues(StreamBooking, DeadPermanent)), 0)
	require.InDelta(t, 1, of(m.dead.WithLabelValues(StreamBooking, DeadUnknown)), 0)
	w.eventually("the letters are counted", func() bool { return of(m.letters.WithLabelValues(StreamBooking)) == 2 })
	require.Zero(t, of(m.lag.WithLabelValues(StreamBooking)))
	close(release)
	w.eventually("nothing is pending", func() bool { return of(m.pending.WithLabelValues(StreamBooking)) == 0 })
	require.Zero(t, of(m.oldestPending.WithLabelValues(StreamBooking)))
}

// S29, S49: what waits undelivered is seen by its age and its lag.
func TestMetricsOfABacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	m, err := newMetrics(nil)
	require.NoError(t, err)
	j := janitor{group: allGroups()[1], rdb: w.rdb, log: w.log, metrics: m}
	require.NoError(t, j.tidy(ctx), "no stream yet")
	require.NoError(t, w.rdb.XGroupCreateMkStream(ctx, StreamBooking, "booking-workers", "0").Err())
	w.book(7)
	w.eventually("they age", func() bool {
		require.NoError(t, j.tidy(ctx))
		return testutil.ToFloat64(m.oldestUndelivered.WithLabelValues(StreamBooking)) > 0.05
	})
	require.InDelta(t, 7, testutil.ToFloat64(m.lag.WithLabelValues(StreamBooking)), 0)
	require.InDelta(t, 7, testutil.ToFloat64(m.length.WithLabelValues(StreamBooking)), 0)
	require.NoError(t, w.rdb.XDel(ctx, StreamBooking, w.entry(3)).Err()) // a tombstone ahead of the group
	require.NoError(t, j.tidy(ctx))
	require.Zero(t, testutil.CollectAndCount(m.lag))
	require.NoError(t, w.rdb.XGroupDestroy(ctx, StreamBooking, "booking-workers").Err())
	require.NoError(t, j.tidy(ctx))
	require.EqualValues(t, 6, w.rdb.XLen(ctx, StreamBooking).Val(), "nothing is trimmed while the group is missing")
}

func (w *world) entry(n int) string {
	w.t.Helper()
	entries, err := w.rdb.XRange(w.t.Context(), StreamBooking, "-", "+").Result()
	require.NoError(w.t, err)
	return entries[n].ID
}

// Dead letters do not stay for ever, and neither do names of consumers.
func TestJanitorForgetsWhatIsOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	m, err := newMetrics(nil)
	require.NoError(t, err)
	w.abandon(w.book(1)...)
	old := time.Now().Add(-deadRetention - time.Hour).UnixMilli()
	dead := deadStream(w.rdb, StreamBooking)
	require.NoError(t, w.rdb.XAdd(ctx, &redis.XAddArgs{Stream: dead, ID: entryID{ms: uint64(old)}.String(), Values: []any{"id", "old"}}).Err())
	require.NoError(t, w.rdb.XAdd(ctx, &redis.XAddArgs{Stream: dead, Values: []any{"id", "new"}}).Err())
	j := janitor{group: allGroups()[1], rdb: w.rdb, log: w.log, metrics: m}
	require.NoError(t, j.tidy(ctx))
	letters := w.letters()
	require.Len(t, letters, 1)
	require.EqualValues(t, "new", letters[0].CommandID)
	consumers, err := w.rdb.XInfoConsumers(ctx, StreamBooking, "booking-workers").Result()
	require.NoError(t, err)
	require.Len(t, consumers, 1, "it has an entry, and is not old")
}

func TestConsumerReportsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewConsumer(ConsumerConfig{Groups: []string{GroupAdmission, "popcorn"}, Consumers: -1}, Handlers{})
	require.ErrorContains(t, err, "Redis")
	require.ErrorContains(t, err, "popcorn")
	require.ErrorContains(t, err, "consumers")
	require.ErrorContains(t, err, typeAdmitShow)
}

func TestEntryIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]entryID{"5-3": {5, 3}, "7": {7, 0}, "0-0": {}} {
		got, err := parseEntryID(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "-", "x-1", "1-x", "1-1-1"} {
		_, err := parseEntryID(text)
		require.Error(t, err, text)
	}
	top := ^uint64(0)
	require.Equal(t, entryID{6, 0}, entryID{5, top}.next())
	require.Equal(t, entryID{4, top}, entryID{5, 0}.previous())
	require.Equal(t, entryID{}, entryID{}.previous())
	require.True(t, entryID{5, 3}.less(entryID{6, 0}))
	require.False(t, entryID{5, 3}.less(entryID{5, 3}))
}

func TestBackoffGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		d := backoff(100*time.Millisecond, n)
		require.Positive(t, d)
		require.LessOrEqual(t, d, maxBackoff)
		if n <= 1 {
			require.LessOrEqual(t, d, 100*time.Millisecond)
		}
	}
	require.LessOrEqual(t, backoff(time.Hour, 100), maxBackoff)
}
