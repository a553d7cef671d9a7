package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"foyer/domain"
	"foyer/lua"
)

// Codes of ERROR frames that no HTTP answer has.
const (
	codeBadFrame      = "BAD_FRAME"
	codeRateLimited   = "RATE_LIMITED"
	codeUnknownTopic  = "UNKNOWN_TOPIC"
	codeTooManyTopics = "TOO_MANY_TOPICS"
)

// maxRefSize bounds what a client has repeated to it, in characters.
const maxRefSize = 64

// statsFresh is how old known stats may be to be told to somebody who just came.
const statsFresh = 2 * time.Second

// clientFrame is any frame of a client; which fields are used follows from Type.
type clientFrame struct {
	Type   string        `json:"type"`
	Ref    string        `json:"ref"`    // repeated in an ERROR
	ShowID domain.ShowID `json:"showId"` // join, leave, claim
	Code   string        `json:"code"`   // join: for a lane; empty: none
	Topic  string        `json:"topic"`  // subscribe, unsubscribe
	Epoch  int64         `json:"epoch"`  // subscribe to seats: of the map that the client has
	Since  int64         `json:"since"`  // subscribe to seats: its version; 0: it has none
	RoomID domain.RoomID `json:"roomId"` // read
	UpTo   int64         `json:"upTo"`   // read
}

// parseClientFrame reads a frame as a request's body is read. After an error the frame has
// its ref, where that could be told, and nothing else.
func parseClientFrame(data []byte) (f clientFrame, err error) {
	if err := decodeObject(data, &f); err != nil {
		return clientFrame{Ref: refOf(data)}, err
	}
	if utf8.RuneCountInString(f.Ref) > maxRefSize {
		return clientFrame{}, malformed("The ref is too long.")
	}
	for name, n := range map[string]int64{"epoch": f.Epoch, "since": f.Since, "upTo": f.UpTo} {
		if n < 0 {
			return clientFrame{Ref: f.Ref}, malformed("The number " + name + " must not be negative.")
		}
	}
	return f, nil
}

// refOf finds the ref of a frame that is refused; empty when there is none to repeat.
func refOf(data []byte) (ref string) {
	var fields map[string]json.RawMessage
	if decodeObject(data, &fields) != nil || json.Unmarshal(fields["ref"], &ref) != nil || utf8.RuneCountInString(ref) > maxRefSize {
		return ""
	}
	return ref
}

// received handles a message of a client, in the order of their coming. What follows one
// that ended the connection is read, so that the goodbye arrives, and not obeyed.
func (h *Hub) received(c *connection, message []byte, binary bool) {
	switch {
	case c.isDeaf():
	case !binary && !utf8.Valid(message):
		c.close(closeNoText, "text that is not UTF-8")
	default:
		c.codec.received(h, c, message, binary)
	}
}

// receivedFrame handles a frame of foyer.v1.
func (h *Hub) receivedFrame(c *connection, data []byte) {
	f, err := parseClientFrame(data)
	if err != nil {
		c.reject(f.Ref, problemFor(err).Detail)
		return
	}
	do := map[string]func(context.Context, *connection, clientFrame) error{
		"join": h.join, "claim": h.claim, "leave": h.leave,
		"subscribe": h.subscribe, "unsubscribe": h.unsubscribe, "read": h.read,
	}[f.Type]
	if do == nil {
		c.reject(f.Ref, "The type is not known.")
		return
	}
	c.accept()
	life, release := c.life.during(h.life)
	defer release()
	ctx, cancel := context.WithTimeout(life, h.config.frameTime)
	defer cancel()
	if err := do(ctx, c, f); err != nil && life.Err() == nil {
		p := problemFor(err)
		if p.Status >= http.StatusInternalServerError {
			h.deps.log.ErrorContext(ctx, "client frame failed", "connection_id", c.id, "type", f.Type, "error", err)
		}
		c.fail(f.Ref, p.Code, p.Detail, p.Extra)
	}
}

// withinRate counts a frame. A client over its rate is told so and closed: to
// read on and throw away would let it spend as much as it likes.
func (c *connection) withinRate() bool {
	if c.limiter.Allow() {
		return true
	}
	c.tooMany()
	return false
}

// withinWireRate counts what frames are made of (see wireFrames), pings and pongs too.
func (c *connection) withinWireRate(begun int) bool {
	if c.wireLimiter.AllowN(time.Now(), begun) {
		return true
	}
	c.tooMany()
	return false
}

func (c *connection) tooMany() {
	c.hub.metrics.refused(codeRateLimited)
	c.close(closeRateLimited, "too many frames", c.errorFrame("", codeRateLimited, "Too many frames.", nil))
}

// reject answers a frame that means nothing. A client that goes on with it is
// closed for good, since connecting again would not mend it.
func (c *connection) reject(ref, detail string) {
	c.mu.Lock()
	c.badFrames++
	hopeless := c.badFrames >= c.hub.config.maxBadFrames
	c.mu.Unlock()
	if hopeless {
		c.hub.metrics.refused(codeBadFrame)
		c.close(closeBadFrames, "bad frames", c.errorFrame(ref, codeBadFrame, detail, nil))
		return
	}
	c.fail(ref, codeBadFrame, detail, nil)
}

func (c *connection) accept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.badFrames = 0
}

// join gives the person a place and tells all their sockets here. Everything the
// place will hear of is registered first.
func (h *Hub) join(ctx context.Context, c *connection, f clientFrame) error {
	if !f.ShowID.Valid() {
		return domain.ErrShowNotFound
	}
	h.attend(c, f.ShowID)
	place, _, err := h.deps.admissions.join(ctx, c.identity, f.ShowID, f.Code)
	if err != nil {
		h.unattend(c, f.ShowID)
		return err
	}
	h.tellPlace(c, place)
	return h.offerStats(ctx, c, f.ShowID)
}

func (h *Hub) claim(ctx context.Context, c *connection, f clientFrame) error {
	if !f.ShowID.Valid() {
		return domain.ErrShowNotFound
	}
	h.attend(c, f.ShowID)
	place, err := h.deps.admissions.claim(ctx, c.identity, f.ShowID)
	if err != nil {
		h.unattend(c, f.ShowID)
		return err
	}
	h.tellPlace(c, place)
	return nil
}

func (h *Hub) leave(ctx context.Context, c *connection, f clientFrame) error {
	if !f.ShowID.Valid() {
		return domain.ErrShowNotFound
	}
	if err := h.deps.admissions.leave(ctx, c.identity, f.ShowID); err != nil {
		return err
	}
	err := h.tellOwnPlace(ctx, c, f.ShowID)
	if !errors.Is(err, domain.ErrNotJoined) {
		return err
	}
	show, err := h.deps.shows.get(ctx, f.ShowID)
	if err != nil {
		return err
	}
	gone := c.knownPlace(f.ShowID) // never there, which is what was asked for
	endPlace(&gone, domain.StatusLeft)
	gone.Epoch, gone.ServerTime = max(gone.Epoch, show.Epoch), time.Now()
	c.offerPlace(gone, true)
	return nil
}

// attend registers a connection for a show in which its person has, or is about
// to have, a place.
func (h *Hub) attend(c *connection, show domain.ShowID) {
	c.follow(placeInterest(h.deps.requests.For(show, c.identity.Person)))
	c.follow(showInterest(show))
}

// unattend takes back what attend did, when there is no place after all.
func (h *Hub) unattend(c *connection, show domain.ShowID) {
	c.mu.Lock()
	f := c.at(show)
	needed := f != nil && (f.joined || f.wants != 0)
	c.mu.Unlock()
	if !needed {
		c.unfollow(showInterest(show))
	}
}

// tellPlace tells the asker where they stand, and their other sockets if it is news.
func (h *Hub) tellPlace(asker *connection, place domain.Place) {
	for _, c := range h.registry.find(placeInterest(place.RequestID)) {
		c.follow(showInterest(place.ShowID))
		c.offerPlace(place, c == asker)
	}
}

// tellOwnPlace reads a person's place and tells it.
func (h *Hub) tellOwnPlace(ctx context.Context, c *connection, show domain.ShowID) error {
	key := lua.PlaceKey{ShowID: show, RequestID: h.deps.requests.For(show, c.identity.Person)}
	places, err := h.places(ctx, []lua.PlaceKey{key})
	if err != nil {
		return err
	}
	if len(places) == 0 {
		return domain.ErrNotJoined
	}
	h.tellPlace(c, places[0])
	return nil
}

// offerStats tells somebody who just came a show's numbers.
func (h *Hub) offerStats(ctx context.Context, c *connection, show domain.ShowID) error {
	stats, age, known := h.book.stats(show)
	if !known || age > statsFresh {
		read, err := h.readStats(ctx, []domain.ShowID{show})
		if err != nil {
			return err
		}
		stats = read[0]
		h.tellStats(stats, time.Now())
	}
	s := sharedStats(stats, time.Now())
	s.asked = true
	c.offerShared(laneStats, wantStats, s)
	return nil
}

func (h *Hub) read(ctx context.Context, c *connection, f clientFrame) error {
	return h.deps.markRead(ctx, c.identity, f.RoomID, f.UpTo)
}
