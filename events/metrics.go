package events

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what a Consumer does, by stream.
type metrics struct {
	read       *prometheus.CounterVec
	acked      *prometheus.CounterVec
	retried    *prometheus.CounterVec
	reclaimed  *prometheus.CounterVec
	lost       *prometheus.CounterVec
	absorbed   *prometheus.CounterVec
	recreated  *prometheus.CounterVec
	readErrors *prometheus.CounterVec
	dead       *prometheus.CounterVec // and by reason

	inFlight *prometheus.GaugeVec
	lag      *prometheus.GaugeVec // absent while Redis cannot tell
	pending  *prometheus.GaugeVec
	length   *prometheus.GaugeVec
	letters  *prometheus.GaugeVec
	// Ages are against the clock of Redis, which made the ids.
	oldestPending     *prometheus.GaugeVec
	oldestUndelivered *prometheus.GaugeVec

	waited    *prometheus.HistogramVec
	handled   *prometheus.HistogramVec
	endToEnd  *prometheus.HistogramVec
	readBatch *prometheus.HistogramVec
	ackBatch  *prometheus.HistogramVec
}

// newMetrics makes the collectors and registers them where there is a registry.
// Several consumers may share one; they then count together.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	r := registrar{reg: reg}
	m := &metrics{
		read:       r.counter("read_total", "Entries delivered for the first time."),
		acked:      r.counter("acked_total", "Entries acknowledged."),
		retried:    r.counter("retried_total", "Further attempts after a failure."),
		reclaimed:  r.counter("reclaimed_total", "Entries taken over from a silent consumer."),
		lost:       r.counter("lost_total", "Entries that another consumer took over while they ran here."),
		absorbed:   r.counter("duplicates_absorbed_total", "Deliveries of commands that had been done before."),
		recreated:  r.counter("group_recreated_total", "Consumer groups that had vanished and were made again."),
		readErrors: r.counter("read_errors_total", "Reads that failed."),
		dead:       r.counter("dead_total", "Entries that became dead letters.", "reason"),

		inFlight:          r.gauge("in_flight", "Handlers running."),
		lag:               r.gauge("lag", "Entries not yet delivered."),
		pending:           r.gauge("pending", "Entries delivered and not acknowledged."),
		length:            r.gauge("length", "Entries on the stream."),
		letters:           r.gauge("dead_letters", "Dead letters kept."),
		oldestPending:     r.gauge("oldest_pending_seconds", "Age of the oldest entry delivered and not acknowledged."),
		oldestUndelivered: r.gauge("oldest_undelivered_seconds", "Age of the oldest entry not yet delivered."),

		waited:    r.histogram("queue_wait_seconds", "Time from an attempt's delivery, or the end of its delay, to the beginning of its handler.", prometheus.ExponentialBuckets(0.0001, 3, 12)),
		handled:   r.histogram("handler_seconds", "Time in a handler.", prometheus.ExponentialBuckets(0.0005, 2.5, 12)),
		endToEnd:  r.histogram("end_to_end_seconds", "Time from an entry's arrival, by the clock of Redis, to its acknowledgement, by the worker's.", prometheus.ExponentialBuckets(0.001, 3, 12)),
		readBatch: r.histogram("read_batch_size", "Entries of one read that brought any.", prometheus.ExponentialBuckets(1, 2, 8)),
		ackBatch:  r.histogram("ack_batch_size", "Entries of one acknowledgement.", prometheus.ExponentialBuckets(1, 2, 8)),
	}
	return m, r.err
}

// streamMetrics are the metrics of one stream that every command moves, found once
// rather than for each.
type streamMetrics struct {
	read, acked, absorbed     prometheus.Counter
	inFlight                  prometheus.Gauge
	waited, handled, endToEnd prometheus.Observer
	readBatch, ackBatch       prometheus.Observer
}

// delivered counts what a read has brought.
func (c streamMetrics) delivered(entries int) {
	c.read.Add(float64(entries))
	c.readBatch.Observe(float64(entries))
}

// acknowledged counts what is done.
func (c streamMetrics) acknowledged(batch []*entry) {
	c.acked.Add(float64(len(batch)))
	c.ackBatch.Observe(float64(len(batch)))
	now := time.Now().UnixMilli()
	for _, e := range batch {
		taken, err := parseEntryID(e.id)
		if err == nil {
			c.endToEnd.Observe(max(float64(now-int64(taken.ms)), 0) / 1000) // clocks may differ a little
		}
	}
}

func (m *metrics) of(stream string) streamMetrics {
	if m == nil {
		return streamMetrics{}
	}
	return streamMetrics{
		read: m.read.WithLabelValues(stream), acked: m.acked.WithLabelValues(stream),
		absorbed: m.absorbed.WithLabelValues(stream),
		inFlight: m.inFlight.WithLabelValues(stream),
		waited:   m.waited.WithLabelValues(stream), handled: m.handled.WithLabelValues(stream), endToEnd: m.endToEnd.WithLabelValues(stream),
		readBatch: m.readBatch.WithLabelValues(stream), ackBatch: m.ackBatch.WithLabelValues(stream),
	}
}

// registrar makes collectors, and reuses those that a registry has already.
type registrar struct {
	reg prometheus.Registerer
	err error
}

func options(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: "foyer", Subsystem: "stream", Name: name, Help: help}
}

func (r *registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts(options(name, help)), append([]string{"stream"}, labels...))
	return register(r, c)
}

func (r *registrar) gauge(name, help string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts(options(name, help)), []string{"stream"}))
}

func (r *registrar) histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	o := options(name, help)
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: o.Namespace, Subsystem: o.Subsystem, Name: o.Name, Help: o.Help, Buckets: buckets,
	}, []string{"stream"}))
}

func register[C prometheus.Collector](r *registrar, c C) C {
	if r.reg == nil {
		return c
	}
	err := r.reg.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("register metric: %w", err))
	}
	return c
}
