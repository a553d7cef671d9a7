package peers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge"
	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/bench"
	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
	"foyer/store"
)

const (
	listeners = 5_000
	// rounds is how many facts are told in one run, the next when all have heard it.
	rounds = 40
)

// audience is who listens: every frame with the marker is counted.
type audience struct {
	heard  atomic.Int64
	whole  chan struct{} // gets one for each round that all have heard
	conns  []*websocket.Conn
	ending sync.WaitGroup
}

// gather connects all listeners; greet speaks first on each socket.
func gather(b *testing.B, dial func(i int) (*websocket.Conn, error), greet func(*websocket.Conn) error, marker string) *audience {
	b.Helper()
	a := &audience{whole: make(chan struct{}, rounds), conns: make([]*websocket.Conn, listeners)}
	const atOnce = 128
	var dialling sync.WaitGroup
	failed := make(chan error, atOnce)
	for first := range atOnce {
		dialling.Go(func() {
			for i := first; i < listeners; i += atOnce {
				conn, err := dial(i)
				if err == nil {
					err = greet(conn)
				}
				if err != nil {
					failed <- err
					return
				}
				a.conns[i] = conn
			}
		})
	}
	dialling.Wait()
	close(failed)
	require.NoError(b, <-failed)
	for _, conn := range a.conns {
		a.ending.Go(func() { a.listen(conn, marker) })
	}
	return a
}

func (a *audience) listen(conn *websocket.Conn, marker string) {
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if strings.Contains(string(text), marker) && a.heard.Add(1)%listeners == 0 {
			a.whole <- struct{}{}
		}
	}
}

func (a *audience) leave() {
	for _, conn := range a.conns {
		_ = conn.Close()
	}
	a.ending.Wait()
}

// measure tells rounds facts, one after the other, to all.
func (a *audience) measure(b *testing.B, tell func(round int)) bench.Sample {
	b.Helper()
	meter := bench.StartMeter()
	for round := range rounds {
		tell(round)
		select {
		case <-a.whole:
		case <-time.After(time.Minute):
			b.Fatal("not everybody heard within a minute")
		}
	}
	wall, cpu := meter.Read()
	frames := float64(rounds * listeners)
	return bench.Sample{"rate": frames / wall.Seconds(), "cpu": cpu.Seconds() * 1e6 / frames}
}

func dialler(url string) func(int) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: time.Minute, ReadBufferSize: 512, WriteBufferSize: 512, WriteBufferPool: &sync.Pool{}}
	return func(int) (*websocket.Conn, error) {
		conn, _, err := dialer.Dial(url, nil)
		return conn, err
	}
}

// fact is what is told: a show's numbers, as Foyer writes them.
func fact(show domain.ShowID, round int) events.Notification {
	return events.Notification{Event: events.EventStats, ShowID: show, Epoch: 1, Version: int64(1_000_000 + round), Stats: &domain.Stats{
		ShowID: show, Waiting: 10_000, Active: 1000, MaxActive: 1000, RatePerMinute: 600, Joined: 20_000, Sold: int64(round), Capacity: 500_000,
		Phase: domain.PhaseOpen, Epoch: 1, Version: int64(1_000_000 + round),
	}}
}

const marker = `"waiting":10000`

// text is the same for those who have no format of their own.
func text(round int) []byte {
	line, err := json.Marshal(map[string]any{"event": "STATS", "topic": "/topic/stats/show/t-0123456789", "showId": "t-0123456789", "epoch": 1,
		"version": 1_000_000 + round, "at": "2026-05-01T18:30:00.123Z", "waiting": 10_000, "active": 1000, "maxActive": 1000, "ratePerMinute": 600,
		"sold": 0, "held": 0, "capacity": 50_000, "availability": "AVAILABLE", "phase": "OPEN"})
	if err != nil {
		panic(err)
	}
	return line
}

// BenchmarkFanOut tells one topic's news to five thousand sockets.
func BenchmarkFanOut(b *testing.B) {
	redisURL, databaseURL := testenv.StartRedis(b).URL, "sqlite:"+b.TempDir()+"/foyer.db"
	office, show := openFoyer(b, redisURL, databaseURL)
	told := 0 // numbers Foyer's facts over all runs: an old version is told to nobody
	bench.Comparison{
		Name: "realtime-4-fan-out", Title: "Fan-out to 5,000 sockets",
		About: "A show's numbers are told 40 times, each time when all 5,000 clients, in the same process, have the one before. Foyer's come through Redis and its hub. " +
			"The plain loop writes to one gorilla connection after the other and knows nothing of slow clients. Centrifuge has its in-memory broker. The frames are alike and 270 bytes long.",
		Metrics: []bench.Metric{{Key: "rate", Name: "frames/s"}, {Key: "cpu", Name: "CPU with clients, µs a frame"}},
		Variants: []bench.Variant{
			{Name: "Foyer", Run: func(b *testing.B) bench.Sample {
				a := gather(b, func(i int) (*websocket.Conn, error) {
					return bench.Dial(b.Context(), office.URL, "person-"+strconv.Itoa(i))
				}, follow(show), marker)
				defer a.leave()
				return a.measure(b, func(int) {
					told++
					require.NoError(b, office.Bus.Publish(b.Context(), fact(show, told)))
				})
			}},
			{Name: "plain write loop", Run: plainLoop},
			{Name: "centrifuge", Run: overCentrifuge},
		},
		Goals: []bench.Goal{
			{Text: "at least 80 % of a plain write loop", Metric: "rate", Variant: "Foyer", Against: "plain write loop", AtLeast: 0.8},
			{Text: "not slower than centrifuge", Metric: "rate", Variant: "Foyer", Against: "centrifuge", AtLeast: 1},
		},
	}.Run(b)
}

func openFoyer(b *testing.B, redisURL, databaseURL string) (*bench.Office, domain.ShowID) {
	b.Helper()
	db, err := store.Open(b.Context(), databaseURL)
	require.NoError(b, err)
	require.NoError(b, db.Migrate(b.Context()))
	show := domain.Show{
		ID: testenv.ShowID(b), Title: "Bench", OpensAt: time.Now().UTC().Add(-time.Minute).Truncate(time.Microsecond),
		Queue: domain.DefaultQueue(), Seating: domain.DefaultSeating(), DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 1,
	}
	require.NoError(b, db.CreateShow(b.Context(), show))
	require.NoError(b, db.Close())
	options, err := redis.ParseURL(redisURL)
	require.NoError(b, err)
	rdb := redis.NewClient(options)
	require.NoError(b, lua.New(rdb).Configure(b.Context(), show))
	require.NoError(b, rdb.Close())
	office, err := bench.OpenOffice(b.Context(), redisURL, databaseURL)
	require.NoError(b, err)
	b.Cleanup(func() { _ = office.Close() })
	return office, show.ID
}

// follow subscribes to a show's numbers and reads what comes before the first fact.
func follow(show domain.ShowID) func(*websocket.Conn) error {
	return func(conn *websocket.Conn) error {
		if _, _, err := conn.ReadMessage(); err != nil { // HELLO
			return err
		}
		if err := conn.WriteJSON(map[string]string{"type": "subscribe", "topic": "/topic/stats/show/" + string(show)}); err != nil {
			return err
		}
		_, _, err := conn.ReadMessage() // the numbers now
		return err
	}
}

// plainLoop writes to sockets one after the other.
func plainLoop(b *testing.B) bench.Sample {
	var mu sync.Mutex
	var conns []*websocket.Conn
	upgrader := websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		mu.Lock()
		conns = append(conns, conn)
		mu.Unlock()
		for { // the client's goodbye ends it
			if _, _, err := conn.NextReader(); err != nil {
				_ = conn.Close()
				return
			}
		}
	}))
	defer server.Close()
	a := gather(b, dialler("ws"+strings.TrimPrefix(server.URL, "http")), func(*websocket.Conn) error { return nil }, marker)
	defer a.leave()
	testenv.Eventually(b, time.Minute, "all sockets are known", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(conns) == listeners
	})
	return a.measure(b, func(round int) {
		line := text(round)
		for _, conn := range conns {
			_ = conn.WriteMessage(websocket.TextMessage, line)
		}
	})
}

// overCentrifuge publishes on a channel that all are subscribed to.
func overCentrifuge(b *testing.B) bench.Sample {
	node, err := centrifuge.New(centrifuge.Config{})
	require.NoError(b, err)
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{
			Credentials: &centrifuge.Credentials{}, Subscriptions: map[string]centrifuge.SubscribeOptions{"show": {}},
			PingPongConfig: &centrifuge.PingPongConfig{PingInterval: time.Hour, PongTimeout: time.Minute}, // the clients answer none
		}, nil
	})
	require.NoError(b, node.Run())
	defer func() { _ = node.Shutdown(context.WithoutCancel(b.Context())) }()
	server := httptest.NewServer(centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		ReadBufferSize: 1024, UseWriteBufferPool: true, CheckOrigin: func(*http.Request) bool { return true },
	}))
	defer server.Close()
	a := gather(b, dialler("ws"+strings.TrimPrefix(server.URL, "http")), func(conn *websocket.Conn) error {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"connect":{}}`)); err != nil {
			return err
		}
		_, _, err := conn.ReadMessage()
		return err
	}, marker)
	defer a.leave()
	return a.measure(b, func(round int) {
		_, err := node.Publish("show", text(round))
		require.NoError(b, err)
	})
}
