package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"foyer/domain"
	"foyer/events"
)

// stompCodec is STOMP 1.2 (and 1.1 and 1.0), so that a page written with a STOMP client
// works as it is. A client hears only what it subscribed to, as MESSAGE frames
// whose body is the frame of foyer.v1. There is no broker behind it: a client may
// SEND to /app destinations, each of which is one of the frames of foyer.v1, and
// to no topic.
//
// The client may be let in unnamed; then its CONNECT carries an Authorization
// header, and until then the connection is registered for nothing.
type stompCodec struct {
	version       string // agreed; "" until CONNECT
	beat          time.Duration
	offered, asks time.Duration // the shortest beats that were promised, and asked for
	promised      time.Duration // how often the client is to be heard; 0: when it likes
	heard         time.Time     // when it last was
	begun         []byte        // a frame that goes on in the next message
	subscriptions []stompSubscription
	lastMessage   uint64
}

// stompSubscription is one SUBSCRIBE of a client.
type stompSubscription struct {
	id     string   // without one, as 1.0 allows, the destination says which it is
	of     string   // the destination
	opened string   // the topic that the hub was asked for; "" none
	topics []string // of frames that are passed on
	head   []byte   // of a MESSAGE, up to the number of its message-id
}

// stompErrors is where a client may hear of what was refused and stay connected.
// To one that does not listen there, STOMP knows only ERROR, which ends it.
const stompErrors = "/user/queue/errors"

// maxStompID bounds the id of a subscription and of a receipt.
const maxStompID = 64

func (*stompCodec) ready() bool { return false }

func (s *stompCodec) heartbeat() time.Duration { return s.beat }

// greet tells that all is ready. Places that were found meanwhile stay queued: a
// client that did not wait before it subscribed is to hear them.
func (s *stompCodec) greet(out *outbox, hello helloFrame) {
	connected := stompFrame{command: "CONNECTED", headers: []stompHeader{
		{"version", s.version},
		{"session", hello.ConnectionID},
		{"server", "foyer"},
	}}
	if s.version != stompOldest {
		beats := fmt.Sprintf("%d,%d", s.offered.Milliseconds(), s.asks.Milliseconds())
		connected.headers = append(connected.headers, stompHeader{"heart-beat", beats})
	}
	out.put(laneHello, s.control(connected))
}

func (s *stompCodec) literal() bool { return s.version == stompOldest }

func (s *stompCodec) control(f stompFrame) *pending {
	return &pending{event: f.command, key: f.command, data: f.encode(s.literal()), control: true}
}

// silent gives a client that breaks its promise time: a hidden tab's timers run once a
// minute. Whether it is there at all is asked by pings of the socket.
func (s *stompCodec) silent(h *Hub, now time.Time) bool {
	return s.promised > 0 && now.Sub(s.heard) > max(h.config.stompPatience, 3*s.promised)
}

func (s *stompCodec) message(p *pending) []byte {
	topic := p.topic
	switch {
	case p.control:
		return p.data
	case p.event == events.EventHeartbeat:
		return []byte{'\n'}
	case p.event == eventError && !s.hears(stompErrors):
		return s.error("", p.key, p.data).data
	case p.event == eventError:
		topic = stompErrors
	}
	var message []byte
	for i := range s.subscriptions {
		if to := &s.subscriptions[i]; slices.Contains(to.topics, topic) {
			s.lastMessage++
			message = slices.Grow(message, len(to.head)+len(p.data)+80)
			message = append(message, to.head...)
			message = append(strconv.AppendUint(message, s.lastMessage, 10), '\n')
			message = appendStompBody(message, p.data)
		}
	}
	return message
}

func (s *stompCodec) hears(topic string) bool {
	return slices.ContainsFunc(s.subscriptions, func(to stompSubscription) bool { return slices.Contains(to.topics, topic) })
}

// error is the frame that says why the connection ends.
func (s *stompCodec) error(receipt, code string, body []byte) *pending {
	f := stompFrame{command: "ERROR", headers: []stompHeader{{"message", code}}, body: body}
	if receipt != "" {
		f.headers = append(f.headers, stompHeader{"receipt-id", receipt})
	}
	return s.control(f)
}

// received takes the frames of a message, the last of which may go on in the next one.
func (s *stompCodec) received(h *Hub, c *connection, message []byte, _ bool) {
	c.mu.Lock()
	s.heard = time.Now()
	c.mu.Unlock()
	message, s.begun = append(s.begun, message...), nil
	for c.withinRate() {
		c.await()
		f, rest, err := parseStomp(message, s.literal())
		if errors.Is(err, errStompMore) && len(message) <= maxStompFrame {
			s.begun = slices.Clone(message)
			return
		}
		if err != nil {
			s.refuse(h, c, f, badStomp("%v.", err))
			return
		}
		if f.command == "" || !s.handle(h, c, f) || len(rest) == 0 {
			return
		}
		message = rest
	}
}

func badStomp(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, codeBadFrame, "Bad frame", fmt.Sprintf(format, args...))
}

// handle does what a frame asks for; false when the connection goes no further.
func (s *stompCodec) handle(h *Hub, c *connection, f stompFrame) bool {
	life, release := c.life.during(h.life)
	defer release()
	ctx, cancel := context.WithTimeout(life, h.config.frameTime)
	defer cancel()
	receipt := f.get("receipt")
	if len(receipt) > maxStompID {
		return s.refuse(h, c, stompFrame{}, badStomp("A receipt has at most %d bytes.", maxStompID))
	}
	if err := s.do(ctx, h, c, f); err != nil {
		if life.Err() != nil {
			return false
		}
		return s.refuse(h, c, f, err)
	}
	var answers []*pending
	if receipt != "" {
		answer := s.control(stompFrame{command: "RECEIPT", headers: []stompHeader{{"receipt-id", receipt}}})
		answer.key = "" // each counts
		answers = append(answers, answer)
	}
	if f.command == "DISCONNECT" {
		c.close(closeDone, "", answers...)
		return false
	}
	for _, answer := range answers {
		c.control(answer)
	}
	return true
}

func (s *stompCodec) do(ctx context.Context, h *Hub, c *connection, f stompFrame) error {
	connect := f.command == "CONNECT" || f.command == "STOMP"
	switch {
	case connect && s.version == "":
		return s.connect(ctx, h, c, f)
	case connect:
		return badStomp("The connection is there already.")
	case s.version == "":
		return unauthorized("CONNECT comes first.")
	}
	switch f.command {
	case "SUBSCRIBE":
		return s.subscribe(ctx, h, c, f)
	case "UNSUBSCRIBE":
		return s.unsubscribe(ctx, h, c, f)
	case "SEND":
		return s.send(ctx, h, c, f)
	case "DISCONNECT":
		return nil
	}
	return badStomp("There are only CONNECT, SUBSCRIBE, UNSUBSCRIBE, SEND and DISCONNECT here.")
}

// refuse tells why a frame was not done. That ends the connection, unless the
// client listens for refusals and can go on.
func (s *stompCodec) refuse(h *Hub, c *connection, f stompFrame, err error) (goOn bool) {
	p := problemFor(err)
	if p.Status >= http.StatusInternalServerError {
		h.deps.log.Error("client frame failed", "connection_id", c.id, "type", f.command, "error", err)
	}
	receipt := f.get("receipt")
	if p.Status != http.StatusBadRequest && s.hears(stompErrors) {
		c.fail(receipt, p.Code, p.Detail, p.Extra)
		return true
	}
	h.metrics.refused(p.Code)
	c.close(stompClose(p.Status), p.Code, s.error(receipt, p.Code, c.errorFrame(receipt, p.Code, p.Detail, p.Extra).data))
	return false
}

// stompClose is the close code of a refusal by its status.
func stompClose(status int) int {
	switch {
	case status >= http.StatusInternalServerError:
		return closeOverloaded
	case status == http.StatusTooManyRequests:
		return closeRateLimited
	case status == http.StatusUnauthorized:
		return closeUnauthorised
	case status == http.StatusBadRequest:
		return closeBadFrames
	case status == http.StatusNotFound:
		return closeUnknown
	}
	return closeForbidden
}

// connect finds out who is there and begins the connection's life.
func (s *stompCodec) connect(ctx context.Context, h *Hub, c *connection, f stompFrame) error {
	version := stompVersion(f.get("accept-version"))
	if version == "" {
		return badStomp("Versions 1.2, 1.1 and 1.0 are spoken here; accept-version names none of them.")
	}
	offered, wanted, err := stompBeats(f.get("heart-beat"))
	if err != nil {
		return err
	}
	if err := s.identify(ctx, h, c, f); err != nil {
		return err
	}
	c.mu.Lock()
	s.version, s.offered, s.asks = version, h.config.stompBeat, h.config.stompAsks
	if version == stompOldest { // which has no heart-beats
		offered, wanted = 0, 0
	}
	if offered > 0 {
		s.promised = max(offered, s.asks)
	}
	if wanted > 0 { // early by as much as the sweep may be late
		s.beat = max(max(wanted, s.offered)-h.config.sweepEvery, h.config.sweepEvery)
	}
	c.mu.Unlock()
	h.begin(c)
	return nil
}

// stompBeats is how often a client can be heard, and wants to hear something; 0: it
// cannot, or does not mind.
func stompBeats(header string) (offered, wanted time.Duration, err error) {
	if header == "" {
		return 0, 0, nil
	}
	sends, wants, _ := strings.Cut(header, ",")
	out, err1 := strconv.ParseUint(sends, 10, 31)
	in, err2 := strconv.ParseUint(wants, 10, 31)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, badStomp("heart-beat is two numbers of milliseconds.")
	}
	return time.Duration(out) * time.Millisecond, time.Duration(in) * time.Millisecond, nil
}

// identify takes the person from CONNECT. Whoever was named by the handshake need
// not be named again, and may not be anybody else.
func (s *stompCodec) identify(ctx context.Context, h *Hub, c *connection, f stompFrame) error {
	request := (&http.Request{Header: http.Header{}}).WithContext(ctx)
	for _, header := range f.headers {
		if strings.EqualFold(header.name, "Authorization") {
			request.Header.Set("Authorization", header.value)
			break
		}
	}
	named := c.identity.Person != ""
	if named && len(request.Header) == 0 {
		return nil
	}
	who, err := h.deps.identify(request)
	switch {
	case err != nil:
		return err
	case !named:
		return h.name(c, who)
	case who.Person != c.identity.Person:
		return unauthorized("The handshake was somebody else's.")
	}
	return nil
}

// find is where the subscription of an id is, or without one that of a destination; -1
// when there is none.
func (s *stompCodec) find(id, destination string) int {
	return slices.IndexFunc(s.subscriptions, func(to stompSubscription) bool {
		return to.id == id && (id != "" || to.of == destination)
	})
}

// subscribe notes the subscription first, since it is answered at once.
func (s *stompCodec) subscribe(ctx context.Context, h *Hub, c *connection, f stompFrame) error {
	id, destination := f.get("id"), f.get("destination")
	ack := f.get("ack")
	switch {
	case id == "" && !s.literal() || len(id) > maxStompID:
		return badStomp("A subscription has an id of 1 to %d bytes.", maxStompID)
	case ack != "" && ack != "auto":
		return badStomp("Nothing is acknowledged here: ack is auto.")
	case s.find(id, destination) >= 0:
		return badStomp("There is such a subscription already.")
	case len(s.subscriptions) >= h.config.maxTopics:
		return newProblem(http.StatusTooManyRequests, codeTooManyTopics, "Too many topics", "Unsubscribe from a topic first.")
	}
	to, err := h.stompDestination(ctx, c, destination)
	if err != nil {
		return err
	}
	to.id, to.of, to.head = id, destination, []byte("MESSAGE\n")
	if id != "" {
		to.head = appendStompHeader(to.head, "subscription", id, s.literal())
	}
	to.head = append(appendStompHeader(to.head, "destination", destination, s.literal()), "message-id:"...)
	c.mu.Lock()
	s.subscriptions = append(s.subscriptions, to)
	c.mu.Unlock()
	if to.opened == "" {
		return nil
	}
	err = h.subscribe(ctx, c, clientFrame{Topic: to.opened})
	if errors.Is(err, domain.ErrNotJoined) { // one's own place is heard of once there is one
		return nil
	}
	if err != nil {
		c.mu.Lock()
		s.subscriptions = s.subscriptions[:len(s.subscriptions)-1]
		c.mu.Unlock()
	}
	return err
}

// stompDestination tells what is heard at a destination. Besides the topics of
// foyer.v1 there are those of older pages: a movie for a show, and one's own queue.
func (h *Hub) stompDestination(ctx context.Context, c *connection, destination string) (stompSubscription, error) {
	if destination == stompErrors {
		return stompSubscription{topics: []string{stompErrors}}, nil
	}
	queue, ok := strings.CutPrefix(destination, "/topic/queue/")
	if !ok {
		topic := destination
		for _, kind := range []topicKind{topicStats, topicSoldOut, topicSeats} {
			if movie, ok := strings.CutPrefix(destination, strings.TrimSuffix(string(kind), "show/")+"movie/"); ok {
				topic = string(kind) + movie
			}
		}
		return stompSubscription{opened: topic, topics: []string{topic}}, nil
	}
	show, person, _ := strings.Cut(queue, "/")
	if domain.PersonID(person) != c.identity.Person {
		return stompSubscription{}, newProblem(http.StatusForbidden, codeForbidden, "Not yours", "Personal topics are for their own person.")
	}
	if _, err := h.deps.shows.get(ctx, domain.ShowID(show)); err != nil {
		return stompSubscription{}, err
	}
	request := h.deps.requests.For(domain.ShowID(show), c.identity.Person)
	rank := rankTopic(request) // its answer has where the person stands as well
	return stompSubscription{opened: rank, topics: []string{admissionTopic(request), rank}}, nil
}

func (s *stompCodec) unsubscribe(ctx context.Context, h *Hub, c *connection, f stompFrame) error {
	at := s.find(f.get("id"), f.get("destination"))
	if at < 0 {
		return badStomp("There is no such subscription.")
	}
	gone := s.subscriptions[at]
	c.mu.Lock()
	s.subscriptions = slices.Delete(s.subscriptions, at, at+1)
	c.mu.Unlock()
	if gone.opened == "" || s.hears(gone.opened) {
		return nil
	}
	return h.unsubscribe(ctx, c, clientFrame{Topic: gone.opened})
}

// readStompAsk reads the body of a SEND. Pages call a show as they like, some of them
// number it, and some say more than is asked, which is passed over.
func readStompAsk(body []byte) (ask clientFrame, err error) {
	var fields map[string]json.RawMessage
	if err := decodeObject(body, &fields); err != nil {
		return ask, err
	}
	for _, name := range []string{"showId", "scheduleId", "movieId"} { // the first that is given
		raw := fields[name]
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var number json.Number
		if json.Unmarshal(raw, &ask.ShowID) != nil {
			err = json.Unmarshal(raw, &number)
			ask.ShowID = domain.ShowID(number) // an id that is no show's is refused as such
		}
		break
	}
	if raw := fields["code"]; len(raw) > 0 && err == nil {
		err = json.Unmarshal(raw, &ask.Code)
	}
	if err != nil {
		return ask, malformed("A show is named by text or a number, a code by text.")
	}
	return ask, nil
}

// send does what an /app destination stands for.
func (s *stompCodec) send(ctx context.Context, h *Hub, c *connection, f stompFrame) error {
	do := map[string]func(context.Context, *connection, clientFrame) error{
		"/app/addQueue": h.join, "/app/claim": h.claim, "/app/leave": h.leave,
	}[f.get("destination")]
	if do == nil {
		return newProblem(http.StatusForbidden, codeForbidden, "Not a destination",
			"Only /app/addQueue, /app/claim and /app/leave take messages.")
	}
	ask, err := readStompAsk(f.body)
	if err != nil {
		return badStomp("%s", problemFor(err).Detail)
	}
	return do(ctx, c, ask)
}
