package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"foyer/domain"
	"foyer/lua"
)

// hubConfig are the limits and times of sockets. A zero field means its default.
type hubConfig struct {
	origins []string // exact origins of other sites that pages may connect from

	maxSockets          int     // of this process; 10,000
	maxPerPerson        int     // 5
	maxUnnamed          int     // sockets that have yet to say whose they are; 500
	handshakesPerSecond float64 // with a burst of twice as many; 300
	framesPerSecond     float64 // from one client; 5
	frameBurst          int     // 10
	maxFrameBytes       int64   // from a client; 4096
	maxTopics           int     // subscribed by one client; 8
	maxBadFrames        int     // in a row, before the socket is closed for good; 5

	writeWait       time.Duration // for the kernel to take a frame; 5 s
	pongWait        time.Duration // silence after which a client is dead; 40 s
	pingEvery       time.Duration // 25 s
	slowAfter       time.Duration // a frame in flight for longer; 5 s
	closeWait       time.Duration // for a client to take the closing frame; 5 s
	heartbeat       time.Duration // silence broken by a HEARTBEAT; 15 s
	sweepEvery      time.Duration // 500 ms
	lifeAtMost      time.Duration // of a socket, less up to a half; 1 h
	tokenGrace      time.Duration // a socket outlives its token by; 25 s
	stompBeat       time.Duration // the shortest that a STOMP client is promised; 5 s
	stompAsks       time.Duration // the longest that one is asked to promise; 10 s
	stompPatience   time.Duration // with one that breaks its promise; 3 min
	ticketLife      time.Duration // 30 s
	connectWait     time.Duration // for a client that was let in unnamed to say who it is; 8 s
	frameTime       time.Duration // for what one client frame asks for; 5 s
	presenceEvery   time.Duration // contact of waiting people is renewed at most; 30 s
	presenceTick    time.Duration // how often it is looked whose is due; 200 ms
	showsEvery      time.Duration // the list of live shows is looked at; 5 s
	resyncSpread    time.Duration // re-reading after a gap is spread over; 1 s
	seatsPatience   time.Duration // for a seat delta that others have overtaken; 50 ms
	snapshotRetry   time.Duration // between attempts at a first snapshot; 250 ms
	snapshotTime    time.Duration // for one attempt; 5 s
	snapshotsAtOnce int           // 32

	drainSlice int           // sockets closed together; 100
	drainPause time.Duration // between slices; 20 ms
	drainLimit time.Duration // for all of it; 45 s

	tap func(frame []byte) // sees every frame sent; for tests
}

func (c hubConfig) withDefaults() hubConfig {
	c.maxSockets = cmp.Or(c.maxSockets, 10_000)
	c.maxPerPerson = cmp.Or(c.maxPerPerson, 5)
	c.maxUnnamed = cmp.Or(c.maxUnnamed, 500)
	c.handshakesPerSecond = cmp.Or(c.handshakesPerSecond, 300)
	c.framesPerSecond = cmp.Or(c.framesPerSecond, 5)
	c.frameBurst = cmp.Or(c.frameBurst, 10)
	c.maxFrameBytes = cmp.Or(c.maxFrameBytes, 4096)
	c.maxTopics = cmp.Or(c.maxTopics, 8)
	c.maxBadFrames = cmp.Or(c.maxBadFrames, 5)
	c.writeWait = cmp.Or(c.writeWait, 5*time.Second)
	c.pongWait = cmp.Or(c.pongWait, 40*time.Second)
	c.pingEvery = cmp.Or(c.pingEvery, 25*time.Second)
	c.slowAfter = cmp.Or(c.slowAfter, 5*time.Second)
	c.closeWait = cmp.Or(c.closeWait, 5*time.Second)
	c.heartbeat = cmp.Or(c.heartbeat, 15*time.Second)
	c.sweepEvery = cmp.Or(c.sweepEvery, 500*time.Millisecond)
	c.lifeAtMost = cmp.Or(c.lifeAtMost, time.Hour)
	c.tokenGrace = cmp.Or(c.tokenGrace, 25*time.Second)
	c.ticketLife = cmp.Or(c.ticketLife, 30*time.Second)
	c.stompBeat = cmp.Or(c.stompBeat, 5*time.Second)
	c.stompAsks = cmp.Or(c.stompAsks, 10*time.Second)
	c.stompPatience = cmp.Or(c.stompPatience, 3*time.Minute)
	c.connectWait = cmp.Or(c.connectWait, 8*time.Second)
	c.frameTime = cmp.Or(c.frameTime, 5*time.Second)
	c.presenceEvery = cmp.Or(c.presenceEvery, 30*time.Second)
	c.presenceTick = cmp.Or(c.presenceTick, 200*time.Millisecond)
	c.showsEvery = cmp.Or(c.showsEvery, 5*time.Second)
	c.resyncSpread = cmp.Or(c.resyncSpread, time.Second)
	c.seatsPatience = cmp.Or(c.seatsPatience, 50*time.Millisecond)
	c.snapshotRetry = cmp.Or(c.snapshotRetry, 250*time.Millisecond)
	c.snapshotTime = cmp.Or(c.snapshotTime, 5*time.Second)
	c.snapshotsAtOnce = cmp.Or(c.snapshotsAtOnce, 32)
	c.drainSlice = cmp.Or(c.drainSlice, 100)
	c.drainPause = cmp.Or(c.drainPause, 20*time.Millisecond)
	c.drainLimit = cmp.Or(c.drainLimit, 45*time.Second)
	return c
}

// hubSteps are the steps in Redis that sockets need.
type hubSteps interface {
	IssueTicket(ctx context.Context, ticket string, payload []byte, ttl time.Duration) error
	RedeemTicket(ctx context.Context, ticket string) (payload []byte, found bool, err error)
	Places(ctx context.Context, keys []lua.PlaceKey) ([]domain.Place, []bool, error)
	Stats(ctx context.Context, shows ...domain.ShowID) ([]domain.Stats, error)
	Touch(ctx context.Context, show domain.ShowID, requests []domain.RequestID) error
	Seats(ctx context.Context, show domain.ShowID, since int64, viewer domain.RequestID) (domain.SeatChanges, error)
}

// hubStore is what sockets read from SQL.
type hubStore interface {
	Room(ctx context.Context, room domain.RoomID, person domain.PersonID) (domain.ChatRoom, error)
	Messages(ctx context.Context, room domain.RoomID, before int64, limit int) ([]domain.ChatMessage, error)
	Bookings(ctx context.Context, person domain.PersonID, before domain.BookingID, limit int) ([]domain.Booking, error)
}

// admissionService joins, claims and leaves with all that follows from it.
type admissionService interface {
	join(ctx context.Context, who Identity, show domain.ShowID, code string) (place domain.Place, created bool, err error)
	claim(ctx context.Context, who Identity, show domain.ShowID) (domain.Place, error)
	leave(ctx context.Context, who Identity, show domain.ShowID) error
}

// showSource knows the shows.
type showSource interface {
	get(ctx context.Context, id domain.ShowID) (domain.Show, error)
	live(ctx context.Context) ([]domain.Show, error)
}

// hubDeps are the parts that a hub speaks to.
type hubDeps struct {
	steps      hubSteps
	store      hubStore
	admissions admissionService
	shows      showSource
	requests   domain.RequestIDs
	identify   func(*http.Request) (Identity, error)
	markRead   func(ctx context.Context, who Identity, room domain.RoomID, upTo int64) error
	sign       func(place domain.Place, person domain.PersonID) (pass string, err error)
	viewShow   func(show domain.Show, stats domain.Stats) any // a show as HTTP answers it
	log        *slog.Logger
	metrics    prometheus.Registerer // nil: counted, and shown to nobody
}

// Hub keeps the sockets of this process and tells each of them what concerns it.
//
// The state of the world is in Redis and SQL. A hub only remembers what its
// sockets were told, so that nothing is told twice or in the wrong order; when a
// notification may have been lost it reads again and tells what differs. Start it
// before the first handshake; Drain ends it. Notify and Gap never block.
type Hub struct {
	config     hubConfig
	deps       hubDeps
	registry   *registry
	json       *jsonCodec
	book       showBook
	chores     chores
	metrics    *hubMetrics
	handshakes *rate.Limiter
	snapshots  chan struct{} // one token a snapshot that may run
	writers    writers

	mu          sync.Mutex
	sockets     *sockets // nil until Start
	connections map[*connection]struct{}
	persons     map[domain.PersonID]int // sockets of a person, counted from the handshake; "" is whose is not known
	reserved    int                     // sockets, counted from the handshake
	draining    bool
	// life is what connections live in: nothing of the request that began one, which
	// would be kept with all its headers for as long as the socket lasts.
	life    context.Context //nolint:containedctx // the hub is what lives as long
	stop    context.CancelFunc
	loops   sync.WaitGroup // loops and snapshots
	drained chan struct{}  // closed when Drain is done
}

func newHub(config hubConfig, deps hubDeps) *Hub {
	config = config.withDefaults()
	h := &Hub{
		config: config, deps: deps,
		registry:    newRegistry(),
		json:        &jsonCodec{beat: config.heartbeat},
		handshakes:  rate.NewLimiter(rate.Limit(config.handshakesPerSecond), int(2*config.handshakesPerSecond)),
		snapshots:   make(chan struct{}, config.snapshotsAtOnce),
		connections: map[*connection]struct{}{},
		persons:     map[domain.PersonID]int{},
		drained:     make(chan struct{}),
	}
	h.chores.wake = make(chan struct{}, 1)
	h.metrics = newHubMetrics(deps.metrics, h.Sockets)
	register(deps.metrics, newQueueMetrics(&h.book))
	return h
}

// register mounts the ticket and the socket endpoint.
func (h *Hub) register(e *echo.Echo) {
	e.POST("/api/socket-tickets", h.issueTicket)
	e.GET(socketRoute, h.handshake)
	e.GET(stompRoute, h.handshake)
}

// Start begins to serve. What it starts outlives ctx and ends with Drain, since
// sockets are still served while they are drained.
func (h *Hub) Start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sockets != nil || h.draining {
		return
	}
	h.writers.start()
	h.sockets = newSockets(socketConfig{
		writeWait: h.config.writeWait, pongWait: h.config.pongWait, maxFrame: h.config.maxFrameBytes,
	}, socketEvents{
		opened: h.opened, received: h.received, begun: (*connection).withinWireRate, sent: (*connection).written,
		failed: h.failed, panicked: h.panicked,
	})
	h.life = context.WithoutCancel(ctx)
	ctx, h.stop = context.WithCancel(h.life)
	for _, loop := range []func(context.Context){h.sweepLoop, h.presenceLoop, h.choresLoop, h.showsLoop} {
		h.loops.Go(func() { loop(ctx) })
	}
}

// Sockets counts the open sockets.
func (h *Hub) Sockets() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.connections)
}

// all returns every open connection.
func (h *Hub) all() []*connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*connection, 0, len(h.connections))
	for c := range h.connections {
		all = append(all, c)
	}
	return all
}

// opened begins a connection's life. It runs before the socket's first frame can
// be written and must be quick: the snapshot is taken elsewhere.
func (h *Hub) opened(c *connection) {
	h.mu.Lock()
	draining := h.draining
	h.connections[c] = struct{}{}
	h.mu.Unlock()
	switch {
	case draining:
		c.close(closeRestart, h.restartReason(1))
	case c.codec.ready():
		h.begin(c)
	}
}

// begin takes a connection whose person is known out of its silence: from here on
// it is registered for what concerns them. Only a mute connection begins.
func (h *Hub) begin(c *connection) {
	c.mu.Lock()
	mute := c.stage == stageMute
	if mute {
		c.enter(stageHeld)
	}
	c.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if mute && !h.draining { // a drain closes it
		h.loops.Go(func() { h.welcome(c) })
	}
}

// name says whose socket a connection is that was let in without a name.
func (h *Hub) name(c *connection, who Identity) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.persons[who.Person] >= h.config.maxPerPerson {
		return tooManySockets()
	}
	h.persons[who.Person]++
	h.uncount(c.identity.Person)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity = who
	return nil
}

// ended forgets a connection whose socket is gone. Nobody leaves a show by it:
// whoever comes back within the show's grace finds the place as it was.
func (h *Hub) ended(c *connection) {
	for _, i := range c.release() {
		h.registry.remove(i, c)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.connections, c)
	h.free(c.identity.Person)
}

func (h *Hub) free(person domain.PersonID) {
	h.reserved--
	h.sockets.leave()
	h.uncount(person)
}

// uncount counts one socket less of a person. It is called with mu held.
func (h *Hub) uncount(person domain.PersonID) {
	if h.persons[person]--; h.persons[person] <= 0 {
		delete(h.persons, person)
	}
}

func (h *Hub) failed(c *connection, cause failure) {
	h.metrics.failed(cause)
	if cause == failureFull { // cannot happen while the credit holds
		h.deps.log.Error("socket queue overflowed", "connection_id", c.id)
	}
}

// panicked ends a connection for which something panicked.
func (h *Hub) panicked(c *connection, value any) {
	defer c.cut()
	h.metrics.panics.Inc()
	h.deps.log.Error("socket callback panicked", "connection_id", c.id, "panic", value)
}

// sweepLoop looks after what only time brings about.
func (h *Hub) sweepLoop(ctx context.Context) {
	every(ctx, h.config.sweepEvery, func(now time.Time) {
		for _, c := range h.all() {
			c.sweep(now)
		}
	})
}

// every calls do at each tick until ctx ends. A call that takes longer than the
// interval delays the next one; none is made up for.
func every(ctx context.Context, interval time.Duration, do func(now time.Time)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			do(now)
		}
	}
}
