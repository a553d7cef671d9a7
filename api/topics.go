package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"foyer/domain"
	"foyer/events"
)

// subscribe lets a client hear of a topic, and answers with what is known of it.
// Personal topics must be the person's own, which follows from who they are and
// not from what they ask for.
func (h *Hub) subscribe(ctx context.Context, c *connection, f clientFrame) error {
	topic, ok := parseTopic(f.Topic)
	if !ok {
		return unknownTopic()
	}
	if err := h.mayHear(ctx, c, topic); err != nil {
		return err
	}
	if !c.noteTopic(f.Topic, h.config.maxTopics) {
		return newProblem(http.StatusTooManyRequests, codeTooManyTopics, "Too many topics", "Unsubscribe from a topic first.")
	}
	if err := h.open(ctx, c, topic, f); err != nil {
		h.close(c, topic)
		c.dropTopic(f.Topic)
		return err
	}
	return nil
}

func (h *Hub) unsubscribe(_ context.Context, c *connection, f clientFrame) error {
	topic, ok := parseTopic(f.Topic)
	if !ok {
		return unknownTopic()
	}
	if c.dropTopic(f.Topic) {
		h.close(c, topic)
	}
	return nil
}

func unknownTopic() error {
	return newProblem(http.StatusNotFound, codeUnknownTopic, "Unknown topic", "There is no such topic.")
}

// noteTopic counts a subscription; false when there are too many.
func (c *connection) noteTopic(topic string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.topics[topic] {
		return true
	}
	if len(c.topics) >= limit {
		return false
	}
	if c.topics == nil {
		c.topics = map[string]bool{}
	}
	c.topics[topic] = true
	return true
}

func (c *connection) dropTopic(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.topics[topic]
	delete(c.topics, topic)
	return known
}

// topicName is a topic taken apart.
type topicName struct {
	kind topicKind
	id   string
}

// topicKind is the fixed part of a topic, up to the id.
type topicKind string

const (
	topicAdmission topicKind = "/topic/admission/"
	topicRank      topicKind = "/topic/rank/"
	topicBooking   topicKind = "/topic/booking/"
	topicStats     topicKind = "/topic/stats/show/"
	topicSoldOut   topicKind = "/topic/soldout/show/"
	topicSeats     topicKind = "/topic/seats/show/"
	topicShow      topicKind = "/topic/show/"
	topicChat      topicKind = "/topic/chat/"
)

func parseTopic(topic string) (topicName, bool) {
	kinds := []topicKind{topicAdmission, topicRank, topicBooking, topicStats, topicSoldOut, topicSeats, topicShow, topicChat}
	i := slices.IndexFunc(kinds, func(k topicKind) bool { return strings.HasPrefix(topic, string(k)) })
	if i < 0 {
		return topicName{}, false
	}
	id := strings.TrimPrefix(topic, string(kinds[i]))
	return topicName{kinds[i], id}, id != "" && !strings.Contains(id, "/")
}

// mayHear judges whether the topic exists and may be heard by the person.
func (h *Hub) mayHear(ctx context.Context, c *connection, topic topicName) error {
	switch topic.kind {
	case topicAdmission, topicRank, topicBooking:
		if _, own, err := h.ownShow(ctx, c, domain.RequestID(topic.id)); err != nil || own {
			return err
		}
		return newProblem(http.StatusForbidden, codeForbidden, "Not yours", "Personal topics are for their own person.")
	case topicChat:
		_, err := h.deps.store.Room(ctx, domain.RoomID(topic.id), c.identity.Person)
		return err
	}
	_, err := h.deps.shows.get(ctx, domain.ShowID(topic.id))
	if errors.Is(err, domain.ErrShowNotFound) {
		return unknownTopic()
	}
	return err
}

// ownShow finds the show at which the request id is the person's.
func (h *Hub) ownShow(ctx context.Context, c *connection, request domain.RequestID) (domain.ShowID, bool, error) {
	if show, known := c.showOf(request); known {
		return show, true, nil
	}
	live, err := h.deps.shows.live(ctx)
	for _, show := range live {
		if h.deps.requests.For(show.ID, c.identity.Person) == request {
			return show.ID, true, nil
		}
	}
	return "", false, err
}

func (c *connection) showOf(request domain.RequestID) (domain.ShowID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.follows {
		if f.request == request {
			return f.show, true
		}
	}
	return "", false
}

// open begins a subscription: it registers first, and then answers with what is
// known now, so that nothing falls between.
func (h *Hub) open(ctx context.Context, c *connection, topic topicName, f clientFrame) error {
	show := domain.ShowID(topic.id)
	switch topic.kind {
	case topicAdmission, topicRank, topicBooking:
		return h.openPersonal(ctx, c, topic)
	case topicStats:
		h.want(c, show, wantStats)
		return h.offerStats(ctx, c, show)
	case topicSoldOut:
		h.want(c, show, wantSoldOut)
		stats, err := h.readStats(ctx, []domain.ShowID{show})
		if err != nil {
			return err
		}
		frame, soldOut := sharedSoldOut(stats[0], time.Now())
		c.offerSoldOut(frame, soldOut, true)
		return nil
	case topicShow:
		h.want(c, show, wantShow)
		known, err := h.deps.shows.get(ctx, show)
		if err != nil {
			return err
		}
		stats, err := h.readStats(ctx, []domain.ShowID{show})
		if err != nil {
			return err
		}
		c.offerShared(laneControl, wantShow, h.sharedShow(known, stats[0]))
		return nil
	case topicSeats:
		return h.openSeats(ctx, c, show, f)
	}
	return h.openRoom(ctx, c, domain.RoomID(topic.id))
}

// close ends a subscription. What comes with a place goes on.
func (h *Hub) close(c *connection, topic topicName) {
	show := domain.ShowID(topic.id)
	switch topic.kind {
	case topicStats:
		c.unwant(show, wantStats)
	case topicSoldOut:
		c.unwant(show, wantSoldOut)
	case topicShow:
		c.unwant(show, wantShow)
	case topicSeats:
		c.unfollow(seatsInterest(show))
		c.forgetSeats(show)
	case topicChat:
		c.unfollow(roomInterest(domain.RoomID(topic.id)))
		c.forgetRoom(domain.RoomID(topic.id))
	default: // personal topics come with the person
		return
	}
	h.unattend(c, show)
}

func (h *Hub) openPersonal(ctx context.Context, c *connection, topic topicName) error {
	show, _, err := h.ownShow(ctx, c, domain.RequestID(topic.id))
	if err != nil {
		return err
	}
	if topic.kind == topicBooking {
		return h.openBookings(ctx, c, show)
	}
	h.attend(c, show)
	if err := h.tellOwnPlace(ctx, c, show); err != nil {
		h.unattend(c, show)
		return err
	}
	if topic.kind == topicRank {
		c.repeatRank(show)
	}
	return nil
}

// openBookings tells the person's newest bookings at a show; none is no error.
func (h *Hub) openBookings(ctx context.Context, c *connection, show domain.ShowID) error {
	bookings, err := h.deps.store.Bookings(ctx, c.identity.Person, "", domain.DefaultBookingPage)
	if err != nil {
		return err
	}
	for _, b := range slices.Backward(bookings) {
		if b.ShowID == show {
			c.offerBooking(b, stamp{}, b.CreatedAt, true)
		}
	}
	return nil
}

// openSeats tells the whole map of a show's seats or, to a client that has one,
// what changed since; deltas follow without a gap.
func (h *Hub) openSeats(ctx context.Context, c *connection, show domain.ShowID, f clientFrame) error {
	c.holdSeats(show)
	c.follow(seatsInterest(show))
	for range seatsReadings {
		changes, err := h.deps.steps.Seats(ctx, show, max(f.Since, 0), "")
		if err == nil && f.Since > 0 && f.Epoch != 0 && f.Epoch != changes.Epoch { // a map of another epoch is worth nothing
			f.Since = 0
			continue
		}
		if err != nil {
			return err
		}
		good, behind := h.book.begin(show, changes)
		if behind {
			h.chores.add(chore{choreSeats, string(show)}, h.config.seatsPatience)
		}
		if good {
			frame, p := sharedSeats(show, max(f.Since, 0), changes, time.Now())
			c.beginSeats(frame, p)
			return nil
		}
	}
	return newProblem(http.StatusServiceUnavailable, codeUnavailable, "Seats change too fast", "Subscribe again.")
}

// seatsReadings is how often a map that others have overtaken is read again.
const seatsReadings = 5

// holdSeats keeps seat deltas back until the map that they change was sent.
func (c *connection) holdSeats(show domain.ShowID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.following(show); f != nil {
		f.seats.version = seatsHeld
		c.out.drop(laneSeats, seatsTopic(show))
	}
}

// beginSeats sends the map together with the deltas that were kept back. Those are
// either in it already or go on from it: the feed passes them without a gap, and
// the map was read after the subscriber was registered.
func (c *connection) beginSeats(frame seatsFrame, p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.following(frame.ShowID)
	if f == nil {
		return
	}
	f.seats = seatMap{epoch: frame.Epoch, version: frame.Version}
	held, waits := c.out.get(laneSeats, p.key)
	switch {
	case !waits || held.stamp.before(p.stamp):
		c.out.put(laneSeats, p)
	default:
		merged := frame.merge(*held.seats)
		f.seats = seatMap{epoch: merged.Epoch, version: merged.Version}
		c.out.put(laneSeats, &pending{event: p.event, topic: p.topic, key: p.key, stamp: held.stamp, seats: &merged})
	}
	c.flush()
}

func (c *connection) forgetSeats(show domain.ShowID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.at(show); f != nil {
		f.seats = seatMap{version: seatsOff}
	}
	c.out.drop(laneSeats, seatsTopic(show))
}

// openRoom lets a member hear of a chat room. The answer tells how far the member
// has read and what the last message is, so that a client sees what it lacks.
func (h *Hub) openRoom(ctx context.Context, c *connection, id domain.RoomID) error {
	c.enterRoom(id, 0)
	c.follow(roomInterest(id))
	room, err := h.deps.store.Room(ctx, id, c.identity.Person)
	if err != nil {
		return err
	}
	c.enterRoom(id, room.LastSeq)
	c.offerChat(id, []*pending{chatReadPending(id, chatReadFrame{
		Person: c.identity.Person, Name: c.identity.Name, UpTo: room.ReadUpTo, LastSeq: &room.LastSeq, Unread: &room.Unread,
	}, time.Now())})
	return nil
}

func (c *connection) enterRoom(id domain.RoomID, lastSeq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rooms == nil {
		c.rooms = map[domain.RoomID]int64{}
	}
	c.rooms[id] = lastSeq
}

func (c *connection) forgetRoom(id domain.RoomID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rooms, id)
}

// want adds a topic of a show.
func (h *Hub) want(c *connection, show domain.ShowID, topic topicSet) {
	c.mu.Lock()
	if f := c.following(show); f != nil {
		f.wants |= topic
	}
	c.mu.Unlock()
	c.follow(showInterest(show))
}

func (c *connection) unwant(show domain.ShowID, topic topicSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.at(show); f != nil {
		f.wants &^= topic
	}
}

// repeatRank tells the rank again to somebody who asked for it.
func (c *connection) repeatRank(show domain.ShowID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.at(show); f != nil && f.place.Rank > 0 {
		c.out.put(laneRank, rankPending(f))
		c.flush()
	}
}

// knownPlace returns what is known of the person's place at a show.
func (c *connection) knownPlace(show domain.ShowID) domain.Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.following(show)
	if f == nil {
		return domain.Place{ShowID: show}
	}
	p := f.place
	p.ShowID, p.RequestID = show, f.request
	return p
}

func sharedSoldOut(stats domain.Stats, at time.Time) (frame *shared, soldOut bool) {
	of, topic := statsStamp(stats), soldOutTopic(stats.ShowID)
	soldOut = stats.Availability() == domain.AvailabilitySoldOut
	return &shared{show: stats.ShowID, pending: pending{event: events.EventSoldOut, topic: topic, key: topic, stamp: of, data: encode(soldOutFrame{
		frameHead: head(events.EventSoldOut, topic, stats.ShowID, of, at), SoldOut: soldOut,
	})}}, soldOut
}
