package events

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// docs/metrics.md lists each metric of streams with its kind, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	w.book(1)
	w.raw("nonsense", "1")
	worker := w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		if d.Attempt == 1 {
			return errors.New("again")
		}
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Metrics = registry })
	m, err := newMetrics(registry)
	require.NoError(t, err)
	for _, seldom := range []*prometheus.CounterVec{m.reclaimed, m.lost, m.recreated, m.readErrors} {
		seldom.WithLabelValues(StreamBooking).Add(0) // a metric without a value is not gathered
	}
	w.eventually("one is dead", func() bool { return len(w.letters()) == 1 })
	w.settled()
	w.eventually("the janitor has been by", func() bool {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "foyer_stream_lag" {
				return true
			}
		}
		return false
	})
	worker.stop()
	families, err := registry.Gather()
	require.NoError(t, err)
	there := map[string]string{}
	kinds := map[string]string{"COUNTER": "counter", "GAUGE": "gauge", "HISTOGRAM": "histogram"}
	for _, f := range families {
		there[f.GetName()] = kinds[f.GetType().String()]
	}
	text, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(foyer_stream_\\w+)` \\| (\\w+)").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	require.Equal(t, documented, there)
}

// How long a command waited, ran and took as a whole; how many came at once; and
// which had been done before, where their handler says so.
func TestMetricsTellOfTimesAndBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	const commands, ran = 40, 50 * time.Millisecond
	ids := w.book(commands)
	begun := time.Now()
	w.work(Handlers{BookSeats: func(ctx context.Context, d Delivery, _ BookSeats) error {
		if d.CommandID == ids[0] {
			Absorbed(ctx)
		}
		return pause(ctx, ran)
	}}, func(cfg *ConsumerConfig) { cfg.Metrics = registry })
	w.settled()
	took := time.Since(begun) + time.Minute // of publishing, before
	value := func(name string) (count uint64, sum float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "foyer_stream_"+name {
				h, c := f.GetMetric()[0].GetHistogram(), f.GetMetric()[0].GetCounter()
				return h.GetSampleCount(), h.GetSampleSum() + c.GetValue()
			}
		}
		return 0, 0
	}
	w.eventually("all are acknowledged", func() bool { _, acked := value("acked_total"); return acked == commands })
	for name, least := range map[string]time.Duration{"queue_wait": 0, "handler": ran, "end_to_end": ran} {
		count, sum := value(name + "_seconds")
		require.EqualValues(t, commands, count, name)
		require.GreaterOrEqual(t, sum, commands*least.Seconds(), name)
		require.Less(t, sum, commands*took.Seconds(), name)
	}
	reads, read := value("read_batch_size")
	require.EqualValues(t, commands, read)
	require.Less(t, reads, uint64(commands))
	_, absorbed := value("duplicates_absorbed_total")
	require.InDelta(t, 1, absorbed, 0)
	Absorbed(t.Context()) // of no command: nothing happens
}
