package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
	"foyer/store"
)

// socketWait bounds every wait of the socket tests.
const socketWait = 10 * time.Second

// socketSecret signs the identity tokens of the socket tests.
var socketSecret = []byte("a secret of the socket tests, long enough")

// hubWorld is one API process with real Redis steps and a real database, whose
// sockets have test-sized times.
type hubWorld struct {
	t      *testing.T
	server *Server
	hub    *Hub
	steps  *lua.Steps
	db     *store.DB
	bus    *events.Bus
	http   *httptest.Server
	show   domain.Show
	log    *syncBuffer
}

// worldOption changes a world before it starts.
type worldOption func(*hubConfig, *hubDeps)

func newHubWorld(t *testing.T, options ...worldOption) *hubWorld {
	t.Helper()
	w := &hubWorld{t: t, log: &syncBuffer{}}
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "foyer.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(t.Context()))
	w.db = db
	rdb := redisClient(t, testenv.RedisURL(t))
	w.steps = lua.New(rdb, lua.WithLoader(func(ctx context.Context, id domain.ShowID) error {
		show, err := db.NextEpoch(ctx, id)
		if err != nil {
			return err
		}
		_, err = w.steps.Restore(ctx, show, nil)
		return err
	}))
	log := slog.New(slog.NewTextHandler(w.log, nil))
	commands, err := events.NewCommands(rdb, log)
	require.NoError(t, err)
	t.Cleanup(commands.Close)
	w.bus = events.NewBus(rdb, events.BusConfig{Log: log})
	w.server, err = New(Config{JWTSecret: socketSecret, SigningKey: bytes.Repeat([]byte{7}, 32)}, Deps{
		Steps: w.steps, Store: db, Commands: commands, Bus: w.bus, Log: log, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	w.restart(options...)
	w.show = w.addShow(func(*domain.Show) {})
	return w
}

// restart gives the world a hub with test-sized times and starts serving.
func (w *hubWorld) restart(options ...worldOption) {
	config := hubConfig{
		handshakesPerSecond: 100_000, maxPerPerson: 1000, framesPerSecond: 10_000, frameBurst: 10_000,
		sweepEvery: 10 * time.Millisecond, presenceTick: 10 * time.Millisecond, showsEvery: 20 * time.Millisecond,
		resyncSpread: time.Millisecond, seatsPatience: time.Millisecond, snapshotRetry: 5 * time.Millisecond,
		drainPause: time.Millisecond, tap: checkFrame(w.t),
	}
	deps := w.server.hub.deps
	deps.metrics = prometheus.NewRegistry()
	for _, option := range options {
		option(&config, &deps)
	}
	w.hub = newHub(config, deps)
	w.server.hub = w.hub
	w.server.echo = w.server.routes()
	w.hub.Start(w.t.Context())
	w.http = httptest.NewUnstartedServer(w.server.Handler())
	w.http.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(w.log, nil), slog.LevelError)
	w.http.Start()
	w.t.Cleanup(func() {
		w.hub.Drain(context.WithoutCancel(w.t.Context()))
		w.http.Close()
		w.server.afterwards.wait()
	})
}

// addShow makes a show that has been open for an hour: 2 people inside, 10 seats.
func (w *hubWorld) addShow(edit func(*domain.Show)) domain.Show {
	w.t.Helper()
	show := domain.Show{
		ID: testenv.ShowID(w.t), Title: "Test", Epoch: 1, Revision: 1, OpensAt: time.Now().Add(-time.Hour).UTC().Truncate(time.Second),
		Queue: domain.QueueSettings{MaxActive: 2, RatePerMinute: 1000, TurnSeconds: 60, SessionSeconds: 100, GraceSeconds: 20},
		Seating: domain.Seating{HoldSeconds: 60, SeatLimit: 4, Sections: []domain.Section{
			{Name: "A", Rows: 2, SeatsPerRow: 5, Price: 1000},
		}},
		DrawSeed: domain.NewDrawSeed(), CreatedAt: time.Now().UTC(),
	}
	edit(&show)
	require.NoError(w.t, w.db.CreateShow(w.t.Context(), show))
	require.NoError(w.t, w.steps.Configure(w.t.Context(), show))
	show, err := w.db.Show(w.t.Context(), show.ID) // loading it into Redis began an epoch
	require.NoError(w.t, err)
	testenv.Eventually(w.t, socketWait, "the hub knows the show", func() bool {
		w.server.shows.forgetAll()
		w.hub.book.mu.Lock()
		defer w.hub.book.mu.Unlock()
		state := w.hub.book.shows[show.ID]
		return state != nil && state.queue.GraceSeconds > 0
	})
	return show
}

func (w *hubWorld) request(person string) domain.RequestID {
	return w.server.admissions.request(w.show.ID, domain.PersonID(person))
}

// join gives people places without any socket.
func (w *hubWorld) join(people ...string) []domain.Place {
	w.t.Helper()
	places := make([]domain.Place, len(people))
	for i, person := range people {
		place, _, err := w.steps.Join(w.t.Context(), lua.JoinRequest{ShowID: w.show.ID, RequestID: w.request(person)})
		require.NoError(w.t, err)
		places[i] = place
	}
	return places
}

// fill takes all slots of the show, so that whoever joins now waits.
func (w *hubWorld) fill() {
	w.t.Helper()
	for _, place := range w.join("inside-1", "inside-2") {
		require.Equal(w.t, domain.StatusAdmitted, place.Status)
	}
}

// activate lets a person in and has them claim their turn.
func (w *hubWorld) activate(person string) domain.Place {
	w.t.Helper()
	require.Equal(w.t, domain.StatusAdmitted, w.join(person)[0].Status)
	place, err := w.steps.Claim(w.t.Context(), w.show.ID, w.request(person))
	require.NoError(w.t, err)
	return place
}

func (w *hubWorld) stats() domain.Stats {
	w.t.Helper()
	stats, err := w.steps.Stats(w.t.Context(), w.show.ID)
	require.NoError(w.t, err)
	return stats[0]
}

// notify gives the hub a fact of the show, as the bus would.
func (w *hubWorld) notify(n events.Notification) {
	n.ShowID, n.Epoch = w.show.ID, w.show.Epoch
	if n.Stats != nil {
		n.Epoch = n.Stats.Epoch
	}
	if n.At.IsZero() {
		n.At = time.Now()
	}
	w.server.Notify(n)
}

func (w *hubWorld) notifyStats(s domain.Stats) {
	w.notify(events.Notification{Event: events.EventStats, Epoch: s.Epoch, Version: s.Version, Stats: &s})
}

func (w *hubWorld) token(person string, life time.Duration) string {
	w.t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": person, "exp": time.Now().Add(life).Unix(),
	}).SignedString(socketSecret)
	require.NoError(w.t, err)
	return token
}

func (w *hubWorld) authorization(person string) http.Header {
	return http.Header{"Authorization": {"Bearer " + w.token(person, time.Hour)}}
}

// ticket asks for a socket ticket.
func (w *hubWorld) ticket(person string) string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.http.URL+"/api/socket-tickets", nil)
	require.NoError(w.t, err)
	request.Header = w.authorization(person)
	response, err := w.http.Client().Do(request)
	require.NoError(w.t, err)
	defer response.Body.Close()
	require.Equal(w.t, http.StatusOK, response.StatusCode)
	var view ticketView
	require.NoError(w.t, json.NewDecoder(response.Body).Decode(&view))
	return view.Ticket
}

func (w *hubWorld) url(query string) string {
	return "ws" + strings.TrimPrefix(w.http.URL, "http") + "/ws" + query
}

// refusedDial dials and returns the problem that the handshake was refused with.
func (w *hubWorld) refusedDial(query string, header http.Header) (status int, code, retryAfter string) {
	w.t.Helper()
	conn, response, err := websocket.DefaultDialer.DialContext(w.t.Context(), w.url(query), header)
	if err == nil {
		_ = conn.Close()
		w.t.Fatal("the handshake was not refused")
	}
	require.ErrorIs(w.t, err, websocket.ErrBadHandshake)
	var body struct{ Code string }
	require.NoError(w.t, json.NewDecoder(response.Body).Decode(&body))
	return response.StatusCode, body.Code, response.Header.Get("Retry-After")
}

// tab is one socket of a person, as a page has it.
type tab struct {
	t    testing.TB
	conn *websocket.Conn

	mu     sync.Mutex
	frames []told
	err    error // why reading ended
}

// told is any frame of the server.
type told struct {
	Event, Topic, Code, Ref, Reason, Person, Detail string
	ShowID                                          domain.ShowID
	RequestID                                       domain.RequestID
	RoomID                                          domain.RoomID
	BookingID                                       domain.BookingID
	Epoch, Version, Rank, Waiting, Since, UpTo      int64
	LastSeq                                         *int64
	ConnectionID, Status, Phase, Availability       string
	ClaimBy, ExpiresAt                              *time.Time
	ETA                                             *domain.ETA
	SoldOut                                         bool
	Places                                          []placeView
	Place                                           *placeView
	Seats                                           json.RawMessage
	Message                                         json.RawMessage
	Extra                                           map[string]any
	HeartbeatSeconds                                float64
	raw                                             string
	taken                                           bool // by await
}

func (f told) seats(t testing.TB) map[domain.SeatID]domain.SeatState {
	t.Helper()
	var seats []domain.Seat
	require.NoError(t, json.Unmarshal(f.Seats, &seats))
	states := map[domain.SeatID]domain.SeatState{}
	for _, seat := range seats {
		states[seat.ID] = seat.State
	}
	return states
}

// open connects a person and waits for HELLO.
func (w *hubWorld) open(person string) (*tab, told) {
	w.t.Helper()
	page := w.dial(person)
	return page, page.await(eventHello)
}

// dial connects a person.
func (w *hubWorld) dial(person string) *tab {
	w.t.Helper()
	conn, _, err := websocket.DefaultDialer.DialContext(w.t.Context(), w.url(""), w.authorization(person))
	require.NoError(w.t, err)
	page := &tab{t: w.t, conn: conn}
	w.reading(conn, page.read)
	return page
}

// reading runs a page's reader until the test ends, which closes its connection.
func (w *hubWorld) reading(conn *websocket.Conn, read func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		read()
	}()
	w.t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
}

// runBus has the process receive what is published, its own facts too, until the
// test ends.
func (w *hubWorld) runBus() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	rdb := redisClient(w.t, testenv.RedisURL(w.t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.bus.Run(ctx, rdb, w.server)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	testenv.Eventually(w.t, socketWait, "the bus is up", w.bus.Healthy)
}

func (p *tab) read() {
	for {
		_, data, err := p.conn.ReadMessage()
		p.mu.Lock()
		if err != nil {
			p.err = err
			p.mu.Unlock()
			return
		}
		f := told{raw: string(data)}
		if err := json.Unmarshal(data, &f); err != nil {
			p.t.Errorf("frame %s: %v", data, err)
		}
		p.frames = append(p.frames, f)
		p.mu.Unlock()
	}
}

// await returns the earliest frame of an event that ok agrees to and that was not
// awaited before.
func (p *tab) await(event string, ok ...func(told) bool) told {
	p.t.Helper()
	var found told
	deadline := time.Now().Add(socketWait)
	testenv.Eventually(p.t, socketWait+time.Second, event+" frame", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.frames {
			f := &p.frames[i]
			if !f.taken && f.Event == event && (len(ok) == 0 || ok[0](*f)) {
				f.taken, found = true, *f
				return true
			}
		}
		if p.err != nil || time.Now().After(deadline) {
			p.t.Fatalf("no %s frame; socket: %v; frames: %s", event, p.err, p.all())
		}
		return false
	})
	return found
}

// all lists the frames so far. It is called with mu held.
func (p *tab) all() string {
	var b strings.Builder
	for _, f := range p.frames {
		b.WriteString("\n  " + f.raw)
	}
	return b.String()
}

// of returns the frames of an event so far.
func (p *tab) of(event string) []told {
	p.mu.Lock()
	defer p.mu.Unlock()
	var frames []told
	for _, f := range p.frames {
		if f.Event == event {
			frames = append(frames, f)
		}
	}
	return frames
}

// ended waits for the socket's end and returns the close code and reason; 1006
// when there was no closing frame.
func (p *tab) ended() (code int, reason string) {
	p.t.Helper()
	testenv.Eventually(p.t, socketWait, "the socket's end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err != nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	var closed *websocket.CloseError
	if errors.As(p.err, &closed) {
		return closed.Code, closed.Text
	}
	return websocket.CloseAbnormalClosure, p.err.Error()
}

// send writes a frame; fields alternate names and values.
func (p *tab) send(kind string, fields ...any) {
	p.t.Helper()
	frame := map[string]any{"type": kind}
	for i := 0; i < len(fields); i += 2 {
		frame[fields[i].(string)] = fields[i+1]
	}
	require.NoError(p.t, p.conn.WriteJSON(frame))
}

// settle waits until everything that was offered to the socket so far is here: an
// unknown topic is answered in the lane of control frames, so all that goes ahead
// of it or was offered before has gone.
func (p *tab) settle(w *hubWorld) {
	p.t.Helper()
	for _, c := range w.hub.all() {
		testenv.Eventually(p.t, socketWait, "an empty outbox", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.stage != stageLive || c.out.first() == laneCount && !c.inFlight
		})
	}
	ref := domain.NewID()
	p.send("subscribe", "topic", "/topic/nowhere", "ref", ref)
	p.await(eventError, func(f told) bool { return f.Ref == ref })
}

// syncBuffer is a log that tests may read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var _ io.Writer = (*syncBuffer)(nil)

// only is a filter for frames of one status.
func only(status domain.Status) func(told) bool {
	return func(f told) bool { return f.Status == string(status) }
}

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// tryDial connects a person, or returns nil when the handshake fails.
func (w *hubWorld) tryDial(person string) *websocket.Conn {
	conn, _, err := websocket.DefaultDialer.DialContext(w.t.Context(), w.url(""), w.authorization(person))
	if err != nil {
		return nil
	}
	return conn
}

// errRedisAway is what a step says when Redis does not answer.
var errRedisAway = fmt.Errorf("join: %w", context.DeadlineExceeded)

// refusing answers every join as if Redis were away.
type refusing struct{ admissionService }

func (refusing) join(context.Context, Identity, domain.ShowID, string) (domain.Place, bool, error) {
	return domain.Place{}, false, errRedisAway
}
