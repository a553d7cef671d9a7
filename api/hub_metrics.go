package api

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"foyer/events"
)

// hubMetrics count what sockets do. The names begin with foyer_socket.
type hubMetrics struct {
	handshakes *prometheus.CounterVec // by result
	frames     *prometheus.CounterVec // by event
	drops      *prometheus.CounterVec // by what was dropped
	errors     *prometheus.CounterVec // by code of the ERROR frame
	closes     *prometheus.CounterVec // by close code, those that the server chose
	failures   *prometheus.CounterVec // by cause, those that came from below
	slow       prometheus.Counter
	panics     prometheus.Counter
	resyncs    *prometheus.CounterVec // by what was read again
	faults     *prometheus.CounterVec // by what could not be read
	// sentOf are the counters of frames, found once: one is counted for every frame.
	sentOf map[string]prometheus.Counter
}

func newHubMetrics(to prometheus.Registerer, sockets func() int) *hubMetrics {
	by := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "foyer_socket_" + name, Help: help}, []string{label})
		register(to, c)
		return c
	}
	plain := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "foyer_socket_" + name, Help: help})
		register(to, c)
		return c
	}
	register(to, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "foyer_sockets", Help: "Open sockets."},
		func() float64 { return float64(sockets()) }))
	m := &hubMetrics{
		handshakes: by("handshakes_total", "Handshakes by result.", "result"),
		frames:     by("frames_sent_total", "Frames sent by event.", "event"),
		drops:      by("frames_dropped_total", "Frames that a full queue had no room for.", "queue"),
		errors:     by("errors_total", "ERROR frames by code.", "code"),
		closes:     by("closes_total", "Sockets closed by the server, by close code.", "code"),
		failures:   by("failures_total", "Sockets that ended from below, by cause.", "cause"),
		slow:       plain("slow_cut_total", "Sockets cut because the client took no bytes."),
		panics:     plain("panics_total", "Panics contained in socket callbacks; each is a defect."),
		resyncs:    by("resyncs_total", "State read again because a notification may be lost.", "kind"),
		faults:     by("read_errors_total", "Readings of state that failed.", "kind"),
		sentOf:     map[string]prometheus.Counter{},
	}
	for _, event := range []string{
		eventHello, eventError, events.EventAdmission, events.EventRank, events.EventStats, events.EventSoldOut, events.EventSeats,
		events.EventBooking, events.EventChatMessage, events.EventChatRead, events.EventShow, events.EventHeartbeat,
	} {
		m.sentOf[event] = m.frames.WithLabelValues(event)
	}
	return m
}

func register(to prometheus.Registerer, c prometheus.Collector) {
	if to != nil {
		to.MustRegister(c)
	}
}

func (m *hubMetrics) sent(event string) {
	if counter, known := m.sentOf[event]; known {
		counter.Inc()
		return
	}
	m.frames.WithLabelValues(event).Inc() // of a codec's own
}

func (m *hubMetrics) dropped(queue string)    { m.drops.WithLabelValues(queue).Inc() }
func (m *hubMetrics) refused(code string)     { m.errors.WithLabelValues(code).Inc() }
func (m *hubMetrics) closed(code int)         { m.closes.WithLabelValues(strconv.Itoa(code)).Inc() }
func (m *hubMetrics) failed(cause failure)    { m.failures.WithLabelValues(string(cause)).Inc() }
func (m *hubMetrics) handshake(result string) { m.handshakes.WithLabelValues(result).Inc() }
func (m *hubMetrics) resynced(kind choreKind) { m.resyncs.WithLabelValues(kind.String()).Inc() }
func (m *hubMetrics) unreadable(kind string)  { m.faults.WithLabelValues(kind).Inc() }
