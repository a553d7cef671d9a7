package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
)

// BenchmarkNotify measures the way from a fact, published at one process, to the
// frames on the sockets of another.
func BenchmarkNotify(b *testing.B) {
	const few, many = 1, 5_000
	s := redisStage(b).embedded(b)
	name := func(sockets int) string { return fmt.Sprintf("to %d", sockets) }
	Comparison{
		Name: "realtime-5-notify", Title: "From a published fact to the frame",
		About: "A show's numbers are published at one process and told to all who follow them at another, 40 times to many and 400 to one, the next when all have it. " +
			"Timed from before the publication to each client's reading; all clients share the machine with both processes.",
		Servers: s.servers,
		Metrics: []Metric{{"p50", "p50 ms"}, {"p99", "p99 ms"}},
		Variants: []Variant{
			{name(few), func(b *testing.B) Sample { return s.notify(b, few, 400) }},
			{name(many), func(b *testing.B) Sample { return s.notify(b, many, 40) }},
		},
		Goals: []Goal{
			{Text: "p99 to one socket within 5 ms", Metric: "p99", Variant: name(few), AtMost: 5},
			{Text: "p99 to 5,000 sockets within 200 ms", Metric: "p99", Variant: name(many), AtMost: 200},
		},
	}.Run(b)
}

func (s *stage) notify(b *testing.B, sockets, rounds int) Sample {
	show := s.newShow(b, nil)
	there := s.startOffice(b)
	defer there.close(b)
	here, err := OpenOffice(b.Context(), s.redisURL, s.sqlURL)
	require.NoError(b, err)
	defer func() { _ = here.Close() }()
	a := s.listen(b, there.url, show.ID, sockets, rounds)
	defer a.leave()
	for round := range rounds {
		a.publish(b, here.Bus, show, round)
	}
	took := make([]time.Duration, 0, rounds*sockets)
	for _, each := range a.took {
		took = append(took, each...)
	}
	return Sample{"p50": Millis(Quantile(took, 0.5)), "p99": Millis(Quantile(took, 0.99))}
}

// listeners are clients that note when they hear of a fact.
type listeners struct {
	conns   []*websocket.Conn
	readers sync.WaitGroup
	began   atomic.Int64           // when the fact of the round was published, as Unix nanoseconds
	marker  atomic.Pointer[[]byte] // what the fact's frame has in it
	took    [][]time.Duration      // of each client, its times
	heard   atomic.Int64           // of the round
	all     chan struct{}          // one for each round that all have heard
}

func (s *stage) listen(b *testing.B, url string, show domain.ShowID, sockets, rounds int) *listeners {
	b.Helper()
	a := &listeners{conns: make([]*websocket.Conn, sockets), took: make([][]time.Duration, sockets), all: make(chan struct{}, rounds)}
	a.marker.Store(new([]byte))
	const atOnce = 128
	var next atomic.Int64
	var dialling sync.WaitGroup
	failed := make(chan error, atOnce)
	for range min(atOnce, sockets) {
		dialling.Go(func() {
			for i := next.Add(1) - 1; i < int64(sockets); i = next.Add(1) - 1 {
				conn, err := Dial(b.Context(), url, "person-"+strconv.FormatInt(i, 10))
				if err == nil {
					a.conns[i], err = conn, follow(conn, show)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	dialling.Wait()
	close(failed)
	require.NoError(b, <-failed)
	for i := range a.conns {
		a.readers.Go(func() { a.read(i) })
	}
	return a
}

// follow subscribes to a show's numbers and reads what comes before the first fact.
func follow(conn *websocket.Conn, show domain.ShowID) error {
	if _, _, err := conn.ReadMessage(); err != nil { // HELLO
		return err
	}
	if err := conn.WriteJSON(map[string]string{"type": "subscribe", "topic": "/topic/stats/show/" + string(show)}); err != nil {
		return err
	}
	_, _, err := conn.ReadMessage() // the numbers now
	return err
}

func (a *listeners) read(i int) {
	for {
		_, text, err := a.conns[i].ReadMessage()
		at := time.Now().UnixNano()
		if err != nil {
			return
		}
		if marker := *a.marker.Load(); len(marker) > 0 && bytes.Contains(text, marker) {
			a.took[i] = append(a.took[i], time.Duration(at-a.began.Load()))
			if a.heard.Add(1) == int64(len(a.conns)) {
				a.all <- struct{}{}
			}
		}
	}
}

// publish tells a fact and waits until all have heard it.
func (a *listeners) publish(b *testing.B, bus *events.Bus, show domain.Show, round int) {
	b.Helper()
	version := int64(1_000_000 + round)
	marker := []byte(`"waiting":` + strconv.FormatInt(version, 10))
	a.heard.Store(0)
	a.marker.Store(&marker)
	a.began.Store(time.Now().UnixNano())
	require.NoError(b, bus.Publish(b.Context(), events.Notification{
		Event: events.EventStats, ShowID: show.ID, Epoch: show.Epoch, Version: version, Stats: &domain.Stats{
			ShowID: show.ID, Waiting: version, Active: 1000, MaxActive: 1000, RatePerMinute: 600, Capacity: 50_000,
			Phase: domain.PhaseOpen, Epoch: show.Epoch, Version: version,
		},
	}))
	select {
	case <-a.all:
	case <-time.After(time.Minute):
		b.Fatal("not everybody heard within a minute")
	}
}

func (a *listeners) leave() {
	for _, conn := range a.conns {
		_ = conn.Close()
	}
	a.readers.Wait()
}
