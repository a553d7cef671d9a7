package api

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"foyer/domain"
	"foyer/events"
)

// Close codes. 4000 to 4499 ask a client to connect again, 4500 to 4999 not to.
const (
	closeRestart      = 1012
	closeOverloaded   = 1013
	closeTokenExpired = 4001
	closeRateLimited  = 4003
	closeResync       = 4005
	closeBadFrames    = 4500
)

// stage is where a connection stands in its life.
type stage uint8

const (
	stageHeld    stage = iota // frames are kept until HELLO can go first
	stageLive                 // frames are sent
	stageClosing              // a closing frame was queued
	stageGone                 // the socket is no more
)

// connection is one socket of one person. What it has yet to send stands in its
// outbox, and at most one frame is in flight: the next is chosen when that one is
// written, so that what a slow client gets is always the latest.
type connection struct {
	id       string
	identity Identity
	socket   *socket
	hub      *Hub
	limiter  *rate.Limiter
	until    time.Time // when the socket is to be opened anew
	// life ends with the socket; it bounds what is done on the client's behalf.
	life context.Context //nolint:containedctx // the connection is what lives as long
	end  context.CancelFunc

	mu        sync.Mutex
	stage     stage
	since     time.Time // entered the stage
	out       outbox
	inFlight  bool
	sentAt    time.Time // when the last frame was handed to the socket
	severed   bool      // cut for taking no bytes
	badFrames int
	interests []interest
	follows   map[domain.ShowID]*follow
	topics    map[string]bool          // subscribed by the client
	rooms     map[domain.RoomID]int64  // followed chat rooms, and the last sequence at the last sync
	bookings  map[domain.BookingID]int // how far each booking was told to have come
}

func newConnection(life context.Context, h *Hub, who Identity, s *socket) *connection {
	c := &connection{
		id: domain.NewID(), identity: who, socket: s, hub: h,
		limiter: rate.NewLimiter(rate.Limit(h.config.framesPerSecond), h.config.frameBurst),
		since:   time.Now(),
	}
	// Sockets are not balanced as requests are: after a restart those who survived
	// would keep all of them. A bounded life, of a length of its own, levels them out.
	c.until = c.since.Add(h.config.lifeAtMost/2 + rand.N(h.config.lifeAtMost/2))
	c.life, c.end = context.WithCancel(life)
	return c
}

// flush hands the next frame to the socket when none is in flight. It is called
// with mu held.
func (c *connection) flush() {
	if c.stage != stageLive || c.inFlight {
		return
	}
	p, ok := c.out.next()
	if !ok {
		return
	}
	c.inFlight = true
	c.write(p)
}

func (c *connection) write(p pending) {
	data := p.data
	if data == nil {
		data = encode(*p.seats)
	}
	c.sentAt = time.Now()
	c.hub.metrics.sent(p.event)
	if c.hub.config.tap != nil {
		c.hub.config.tap(data)
	}
	c.socket.send(data)
}

// written returns the credit of the frame in flight.
func (c *connection) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight = false
	c.flush()
}

// fail answers a client's frame with an ERROR.
func (c *connection) fail(ref, code, detail string, extra map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub.metrics.refused(code)
	if !c.out.push(laneControl, c.errorFrame(ref, code, detail, extra), maxErrorsQueued) {
		c.hub.metrics.dropped("errors")
	}
	c.flush()
}

func (c *connection) errorFrame(ref, code, detail string, extra map[string]any) pending {
	return pending{event: eventError, data: encode(errorFrame{
		frameHead: head(eventError, "", "", stamp{}, time.Now()),
		Code:      code, Detail: detail, Ref: ref, Extra: extra,
	})}
}

// close says goodbye with a code and a reason (shown to the client, at most 123
// bytes), after a last frame if there is one. The sweep cuts a client that does
// not take it in time.
func (c *connection) close(code int, reason string, last ...pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage >= stageClosing {
		return
	}
	c.enter(stageClosing)
	c.hub.metrics.closed(code)
	for _, p := range last {
		c.write(p)
	}
	c.socket.finish(code, reason)
}

func (c *connection) enter(s stage) { c.stage, c.since = s, time.Now() }

// release marks the connection as gone and returns what it was registered for.
func (c *connection) release() []interest {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(stageGone)
	gone := c.interests
	c.interests, c.follows, c.rooms, c.out = nil, nil, nil, outbox{}
	return gone
}

// follow registers an interest for as long as the connection lives. Once this
// returns, nothing of it that is published from now on is missed.
func (c *connection) follow(i interest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage == stageGone || slices.Contains(c.interests, i) {
		return
	}
	c.interests = append(c.interests, i)
	c.hub.registry.add(i, c)
}

func (c *connection) unfollow(i interest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.interests, i); at >= 0 {
		c.interests = slices.Delete(c.interests, at, at+1)
		c.hub.registry.remove(i, c)
	}
}

// sweep does what time asks for: it cuts a client that takes no bytes, ends one
// whose token is over, and breaks a silence that a page could take for death.
func (c *connection) sweep(now time.Time) {
	config := &c.hub.config
	c.mu.Lock()
	slow := c.inFlight && now.Sub(c.sentAt) > config.slowAfter
	stuck := c.stage == stageClosing && now.Sub(c.since) > config.closeWait
	over := c.stage < stageClosing && now.After(c.identity.Expires.Add(config.tokenGrace))
	if !over && c.stage == stageLive && !c.inFlight && now.Sub(c.sentAt) >= config.heartbeat {
		c.out.put(laneControl, c.heartbeat(now))
		c.flush()
	}
	cut := (slow || stuck) && !c.severed
	c.severed = c.severed || cut
	c.mu.Unlock()
	switch {
	case cut:
		c.hub.metrics.slow.Inc()
		c.socket.cut()
	case over:
		c.close(closeTokenExpired, "token expired")
	case now.After(c.until):
		c.close(closeRestart, c.hub.restartReason(1))
	}
}

func (c *connection) heartbeat(now time.Time) pending {
	data := encode(head(events.EventHeartbeat, "", "", stamp{}, now))
	return pending{event: events.EventHeartbeat, key: events.EventHeartbeat, data: data}
}
