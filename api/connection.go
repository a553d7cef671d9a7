package api

import (
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
	closeDone         = 1000
	closeNoText       = 1007
	closeRestart      = 1012
	closeOverloaded   = 1013
	closeTokenExpired = 4001
	closeSlow         = 4002
	closeRateLimited  = 4003
	closeResync       = 4005
	closeBadFrames    = 4500
	closeUnauthorised = 4501
	closeForbidden    = 4502
	closeUnknown      = 4503
)

// wireFrames is how many frames of RFC 6455 (whole messages, fragments of them, pings and
// pongs) a client may send for each frame of ours that it may. A browser sends one for one
// and answers a ping now and then.
const wireFrames = 10

// stage is where a connection stands in its life.
type stage uint8

const (
	stageMute    stage = iota // the client has yet to say who it is, or that it is ready
	stageHeld                 // frames are kept until HELLO can go first
	stageLive                 // frames are sent
	stageClosing              // a closing frame was queued
	stageGone                 // the socket is no more
)

// line is what a connection writes to: a socket, or an answer that goes on. None of
// its functions waits for the client.
type line interface {
	// send hands one message over. When it is not written yet, the connection is told
	// once it is.
	send(message []byte) (written bool)
	// ping asks the client for a sign of life, and tells whether it could.
	ping() (sent bool)
	// finish says goodbye behind what was sent.
	finish(code int, reason string)
	// cut ends the line now.
	cut()
}

// connection is one line to one person. What it has yet to send stands in its
// outbox, and at most one frame is in flight: the next is chosen by a writer when
// that one is written, so that what a slow client gets is always the latest.
type connection struct {
	id       string
	identity Identity // empty until known; from then on it stays as it is
	socket   line
	codec    codec
	hub      *Hub
	limiter  *rate.Limiter
	// wireLimiter bounds what its frames may come in: fragments, pings and pongs are
	// read, and pings answered, before a frame is there to be counted.
	wireLimiter *rate.Limiter
	until       time.Time // when the socket is to be opened anew
	life        lifetime  // bounds what is done on the client's behalf

	mu        sync.Mutex
	stage     stage
	since     time.Time     // entered the stage
	held      chan struct{} // closed when the connection is not held any more; nil from then on
	out       outbox
	queued    [urgencies]bool // in which queues of the writers it stands
	inFlight  bool
	pingedAt  time.Time
	goodbye   *goodbye  // to be said when nothing is in flight
	deaf      bool      // what the client says is not obeyed any more
	sentAt    time.Time // when the last frame was handed to the socket
	severed   bool      // cut for taking no bytes
	badFrames int
	interests []interest
	follows   []*follow                // few, so that looking through them is quickest
	topics    map[string]bool          // subscribed by the client
	rooms     map[domain.RoomID]int64  // followed chat rooms, and the last sequence at the last sync
	bookings  map[domain.BookingID]int // how far each booking was told to have come
}

func newConnection(h *Hub, who Identity, to line, speaks codec) *connection {
	c := &connection{
		id: domain.NewID(), identity: who, socket: to, codec: speaks, hub: h,
		limiter:     rate.NewLimiter(rate.Limit(h.config.framesPerSecond), h.config.frameBurst),
		wireLimiter: rate.NewLimiter(rate.Limit(wireFrames*h.config.framesPerSecond), wireFrames*h.config.frameBurst),
		since:       time.Now(), held: make(chan struct{}),
	}
	// Sockets are not balanced as requests are: after a restart those who survived
	// would keep all of them. A bounded life, of a length of its own, levels them out.
	c.pingedAt = c.since
	c.until = c.since.Add(h.config.lifeAtMost/2 + rand.N(h.config.lifeAtMost/2))
	return c
}

// goodbye is how a connection is to be closed.
type goodbye struct {
	code   int
	reason string
	last   []*pending // frames that go before it
}

// flush sees to what is to be written next, when nothing is in flight. It is called
// with mu held.
func (c *connection) flush() {
	switch {
	case c.inFlight:
	case c.goodbye != nil:
		c.part()
	case c.stage == stageLive:
		if first := c.out.first(); first < laneCount {
			c.queue(first.urgency())
		}
	}
}

func (c *connection) queue(at urgency) {
	if !c.queued[at] {
		c.queued[at] = true
		c.hub.writers.add(c, at)
	}
}

// serve writes the next frame; a writer of the hub calls it, from the queue in which
// the connection stood. A panic ends this connection alone.
func (c *connection) serve(from urgency) {
	defer func() {
		if value := recover(); value != nil {
			c.hub.panicked(c, value)
		}
	}()
	if message := c.next(from); message != nil && c.socket.send(message) {
		c.written()
	}
}

// next takes the credit, and the message that is to be sent now; nil when there is none.
func (c *connection) next(from urgency) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued[from] = false
	for c.stage == stageLive && !c.inFlight {
		p := c.out.next()
		if p == nil {
			break
		}
		if message := c.compose(p); message != nil {
			c.inFlight = true
			return message
		}
	}
	return nil
}

// compose puts a frame as the codec does; nil when this client is not to hear it. It
// is called with mu held.
func (c *connection) compose(p *pending) []byte {
	if p.data == nil {
		p = &pending{event: p.event, topic: p.topic, stamp: p.stamp, data: encode(*p.seats)}
	}
	message := c.codec.message(p)
	if message == nil {
		return nil
	}
	c.sentAt = time.Now()
	c.hub.metrics.sent(p.event)
	if c.hub.config.tap != nil && !p.control {
		c.hub.config.tap(p.data)
	}
	return message
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
	c.hub.metrics.refused(code)
	c.control(c.errorFrame(ref, code, detail, extra))
}

// control queues an answer to a client's frame.
func (c *connection) control(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.waiting(laneControl) < maxErrorsQueued {
		c.out.push(laneControl, p)
	} else {
		c.hub.metrics.dropped("errors")
	}
	c.flush()
}

func (c *connection) errorFrame(ref, code, detail string, extra map[string]any) *pending {
	return &pending{event: eventError, key: code, data: encode(errorFrame{
		frameHead: head(eventError, "", "", stamp{}, time.Now()),
		Code:      code, Detail: detail, Ref: ref, Extra: extra,
	})}
}

// close says goodbye with a code and a reason (shown to the client, at most 123
// bytes), after a last frame if there is one. The sweep cuts a client that does
// not take it in time.
func (c *connection) close(code int, reason string, last ...*pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage >= stageClosing {
		return
	}
	c.enter(stageClosing)
	c.deaf = code != closeRestart // what was on its way when a process stops counts
	c.hub.metrics.closed(code)
	c.goodbye = &goodbye{code, reason, last}
	c.flush()
}

// part says goodbye. Before it goes what opens every connection, if that did not go
// yet, and what the client was answered. It is called with mu held.
func (c *connection) part() {
	bye := c.goodbye
	c.goodbye = nil
	for _, p := range slices.Concat(c.out.empty(laneHello), c.out.empty(laneControl), bye.last) {
		if message := c.compose(p); message != nil {
			c.socket.send(message)
		}
	}
	c.socket.finish(bye.code, bye.reason)
}

// cut ends the connection now, whatever is in flight or being done for it.
func (c *connection) cut() {
	c.life.end()
	c.socket.cut()
}

func (c *connection) isDeaf() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deaf
}

func (c *connection) enter(s stage) {
	c.stage, c.since = s, time.Now()
	if s >= stageLive && c.held != nil {
		close(c.held)
		c.held = nil
	}
}

// await has the client's next frame wait until HELLO is on its way, which nothing
// goes before. Meanwhile nothing is read from the client.
func (c *connection) await() {
	c.mu.Lock()
	held, stage := c.held, c.stage
	c.mu.Unlock()
	if stage != stageHeld {
		return
	}
	life, release := c.life.during(c.hub.life)
	defer release()
	select {
	case <-held:
	case <-life.Done():
	}
}

// release marks the connection as gone and returns what it was registered for.
func (c *connection) release() []interest {
	c.life.end()
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
// whose token is over, asks for signs of life, and breaks a silence that a page could
// take for death.
func (c *connection) sweep(now time.Time) {
	config := &c.hub.config
	c.mu.Lock()
	slow := c.inFlight && now.Sub(c.sentAt) > config.slowAfter
	stuck := c.stage == stageClosing && now.Sub(c.since) > config.closeWait
	mute := c.stage == stageMute && now.Sub(c.since) > config.connectWait
	over := c.stage < stageClosing && c.identity.Person != "" && now.After(c.identity.Expires.Add(config.tokenGrace))
	silent := c.stage == stageLive && c.codec.silent(c.hub, now)
	beat := c.codec.heartbeat()
	if !over && c.stage == stageLive && !c.inFlight && beat > 0 && now.Sub(c.sentAt) >= beat {
		c.out.put(laneControl, c.heartbeat(now))
		c.flush()
	}
	if c.stage < stageClosing && now.Sub(c.pingedAt) >= config.pingEvery && c.socket.ping() {
		c.pingedAt = now
	}
	cut := (slow || stuck) && !c.severed
	c.severed = c.severed || cut
	c.mu.Unlock()
	switch {
	case cut:
		c.hub.metrics.slow.Inc()
		c.cut()
	case mute:
		c.close(closeUnauthorised, "nobody said who is here")
	case silent:
		c.close(closeSlow, "no heart-beat")
	case over:
		c.close(closeTokenExpired, "token expired")
	case now.After(c.until):
		c.close(closeRestart, c.hub.restartReason(1))
	}
}

func (c *connection) heartbeat(now time.Time) *pending {
	data := encode(head(events.EventHeartbeat, "", "", stamp{}, now))
	return &pending{event: events.EventHeartbeat, key: events.EventHeartbeat, data: data}
}
