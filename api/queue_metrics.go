package api

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"foyer/domain"
)

// queueMetrics tells of each show that this process knows what it last heard of its
// waiting room: the same on every process, but for moments.
type queueMetrics struct {
	book     *showBook
	waiting  *prometheus.Desc
	active   *prometheus.Desc
	admitted *prometheus.Desc
}

func newQueueMetrics(book *showBook) *queueMetrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("foyer_queue_"+name, help, append([]string{"show_id"}, labels...), nil)
	}
	return &queueMetrics{
		book:     book,
		waiting:  describe("waiting", "People waiting, by lane.", "lane"),
		active:   describe("active", "People inside or with a turn."),
		admitted: describe("admitted_last_minute", "People let in during the last minute."),
	}
}

// Describe implements prometheus.Collector.
func (m *queueMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.waiting
	to <- m.active
	to <- m.admitted
}

// Collect implements prometheus.Collector.
func (m *queueMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(of *prometheus.Desc, value int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, float64(value), labels...)
	}
	for show, known := range m.book.all() {
		stats, id := known.stats, string(show)
		gauge(m.active, stats.Active, id)
		gauge(m.admitted, stats.AdmittedLastMinute, id)
		for lane := range max(stats.Lanes.Len(), 1) {
			name := known.queue.LaneName(lane)
			if lane != domain.OrdinaryLane && name == "" {
				continue // its name is not known here yet
			}
			gauge(m.waiting, stats.WaitingIn(lane), id, cmp.Or(name, domain.OrdinaryName))
		}
	}
}

// all are the shows whose numbers are known.
func (b *showBook) all() map[domain.ShowID]showState {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[domain.ShowID]showState{}
	for show, state := range b.shows {
		if state.known {
			known[show] = *state
		}
	}
	return known
}
