package api

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"foyer/domain"
	"foyer/events"
)

// Notify tells the sockets of this process a fact. It only routes: nothing is
// read, nothing is written to a socket, no lock is held for long. Facts may come
// twice and in any order; what a socket was told before is never told again.
func (h *Hub) Notify(n events.Notification) {
	defer func() {
		if value := recover(); value != nil {
			h.metrics.panics.Inc()
			h.deps.log.Error("notification panicked", "event", n.Event, "show_id", n.ShowID, "panic", value)
		}
	}()
	if n.Stats != nil {
		stats := *n.Stats
		stats.ShowID = n.ShowID
		n.Stats = &stats
	}
	switch n.Event {
	case events.EventAdmission:
		h.notifyAdmission(n)
	case events.EventRank:
		h.notifyRank(n)
	case events.EventStats:
		h.notifyStats(n)
	case events.EventSoldOut:
		h.notifySoldOut(n)
	case events.EventSeats:
		h.notifySeats(n)
	case events.EventBooking:
		h.notifyBooking(n)
	case events.EventChatMessage, events.EventChatRead:
		h.notifyChat(n)
	case events.EventShow:
		h.chores.add(chore{choreShow, string(n.ShowID)}, 0)
	}
}

// Gap says that notifications may have been lost. What the sockets here follow is
// read again, spread over a short time, and they are told what differs.
func (h *Hub) Gap(reason string) {
	if reason != events.GapSubscribed { // what begins has missed all that was before: no news
		h.deps.log.Warn("notifications may be lost, reading again", "reason", reason)
	}
	for _, id := range h.registry.ids(interestShow) {
		delay := h.jitter()
		h.chores.add(chore{choreShow, id}, delay)
		h.doubtPlaces(domain.ShowID(id), delay, missedPlace)
	}
	for _, id := range h.registry.ids(interestSeats) {
		h.chores.add(chore{choreSeats, id}, h.jitter())
	}
	for _, id := range h.registry.ids(interestRoom) {
		h.chores.add(chore{choreRoom, id}, h.jitter())
	}
}

func (h *Hub) jitter() time.Duration {
	return rand.N(max(h.config.resyncSpread, 1))
}

// doubtPlaces has every place at a show read again that doubtful picks.
func (h *Hub) doubtPlaces(show domain.ShowID, delay time.Duration, doubtful func(*follow) bool) {
	doubted := false
	for _, c := range h.registry.find(showInterest(show)) {
		doubted = c.doubt(show, doubtful) || doubted
	}
	if doubted {
		h.chores.add(chore{chorePlaces, string(show)}, delay)
	}
}

// Which places to doubt.
func everyPlace(*follow) bool { return true }

// missedPlace doubts everything that was told, bookings too.
func missedPlace(f *follow) bool {
	f.missed = true
	return true
}

// doubtWaiting doubts the places of those who wait in a line that is empty now.
func (h *Hub) doubtWaiting(stats domain.Stats) {
	h.doubtPlaces(stats.ShowID, 0, func(f *follow) bool {
		return f.place.Status == domain.StatusWaiting && placeStamp(f.place).before(stamp{stats.Epoch, stats.Version, 0})
	})
}

func (c *connection) doubt(show domain.ShowID, doubtful func(*follow) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(show)
	if f == nil || !f.joined || !doubtful(f) {
		return false
	}
	f.doubt = true
	return true
}

// doubted takes the doubt about a place away, for the caller to read it, and tells
// whether bookings may have been missed too.
func (c *connection) doubted(show domain.ShowID) (request domain.RequestID, doubted, missed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(show)
	if f == nil || !f.doubt {
		return "", false, false
	}
	missed = f.missed
	f.doubt, f.missed = false, false
	return f.request, true, missed
}

// notifyAdmission tells who has a turn now, who claimed or left, and whose place is over. It costs a
// look into the registry for everybody named, and nothing else for those who are
// not here.
func (h *Hub) notifyAdmission(n events.Notification) {
	for _, admitted := range n.Admitted {
		h.amend(n, admitted.RequestID, func(p *domain.Place) {
			endPlace(p, domain.StatusAdmitted)
			p.ClaimBy = &admitted.ClaimBy
		})
	}
	for _, moved := range n.Moved {
		h.amend(n, moved.RequestID, func(p *domain.Place) {
			endPlace(p, moved.Status)
			p.ExpiresAt = moved.ExpiresAt
		})
	}
	for _, request := range n.Joined {
		h.noteNewcomer(n.ShowID, request)
	}
	for _, request := range n.Ended {
		h.amend(n, request, func(p *domain.Place) { endPlace(p, domain.StatusExpired) })
	}
}

// noteNewcomer has a place read that was taken elsewhere, by everybody whose it is
// and who does not know of it yet.
func (h *Hub) noteNewcomer(show domain.ShowID, request domain.RequestID) {
	news := false
	for _, c := range h.registry.find(placeInterest(request)) {
		c.follow(showInterest(show))
		news = c.suspect(show) || news
	}
	if news {
		h.chores.add(chore{chorePlaces, string(show)}, 0)
	}
}

// suspect puts a place in doubt that the connection knows nothing live of.
func (c *connection) suspect(show domain.ShowID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.following(show)
	if f == nil || f.joined && progress(f.place.Status) <= progress(domain.StatusActive) {
		return false
	}
	f.doubt = true
	return true
}

// amend changes what everybody at a place knows of it.
func (h *Hub) amend(n events.Notification, request domain.RequestID, change func(*domain.Place)) {
	for _, c := range h.registry.find(placeInterest(request)) {
		c.follow(showInterest(n.ShowID))
		fresh := c.amendPlace(n.ShowID, func(p *domain.Place) {
			change(p)
			p.Epoch, p.Version, p.ServerTime = n.Epoch, n.Version, n.At
		})
		if stats, _, known := h.book.stats(n.ShowID); fresh && known {
			c.offerShared(laneStats, wantStats, sharedStats(stats, n.At))
		}
	}
}

func (h *Hub) notifyRank(n events.Notification) {
	if n.Knots == nil {
		return
	}
	stats, _, _ := h.book.stats(n.ShowID)
	if n.Stats != nil {
		stats = *n.Stats
	}
	line := rankedLine{show: n.ShowID, knots: *n.Knots, stats: stats, stamp: stamp{n.Epoch, n.Version, 0}, at: n.At}
	for lane := range 1 + len(n.Knots.Lanes) {
		line.ranks = append(line.ranks, n.Knots.Lane(lane).Ranker())
	}
	lost := false
	for _, c := range h.registry.find(showInterest(n.ShowID)) {
		lost = c.offerRank(line) || lost
	}
	if lost {
		h.chores.add(chore{chorePlaces, string(n.ShowID)}, 0)
	}
}

func (h *Hub) notifyStats(n events.Notification) {
	if n.Stats != nil {
		h.tellStats(*n.Stats, n.At)
	}
}

// tellStats passes a show's numbers on. A phase that turned is told as the show's,
// and places are read again: an opening makes a rank of every draw, an end ends them.
func (h *Hub) tellStats(stats domain.Stats, at time.Time) {
	current, turned := h.book.note(stats)
	if !current {
		return
	}
	if turned {
		h.chores.add(chore{choreShow, string(stats.ShowID)}, 0)
		h.doubtPlaces(stats.ShowID, 0, everyPlace)
	}
	if stats.Waiting == 0 { // an empty line has no ranks to tell, so this is the word that it moved on
		h.doubtWaiting(stats)
	}
	h.passStats(stats, at)
}

func (h *Hub) passStats(stats domain.Stats, at time.Time) {
	listeners := h.registry.find(showInterest(stats.ShowID))
	if len(listeners) == 0 {
		return
	}
	s := sharedStats(stats, at)
	for _, c := range listeners {
		c.offerShared(laneStats, wantStats, s)
	}
}

// notifySoldOut tells that the last seat went or, when the stats say so, that
// seats came back. Where people stand changes with either, so places are read again.
func (h *Hub) notifySoldOut(n events.Notification) {
	if n.Stats == nil {
		h.chores.add(chore{choreShow, string(n.ShowID)}, 0)
		return
	}
	h.passSoldOut(*n.Stats, n.At)
	h.notifyStats(n)
	h.doubtPlaces(n.ShowID, 0, everyPlace)
}

func (h *Hub) passSoldOut(stats domain.Stats, at time.Time) {
	s, soldOut := sharedSoldOut(stats, at)
	for _, c := range h.registry.find(showInterest(stats.ShowID)) {
		c.offerSoldOut(s, soldOut, false)
	}
}

func (h *Hub) notifySeats(n events.Notification) {
	switch h.book.hear(n.ShowID, n.Epoch, n.SeatVersion) {
	case feedPass:
		h.tellSeats(n.ShowID, n.SeatVersion-1, domain.SeatChanges{Epoch: n.Epoch, Version: n.SeatVersion, Seats: n.SeatsChanged}, n.At)
	case feedRead:
		h.chores.add(chore{choreSeats, string(n.ShowID)}, h.config.seatsPatience)
	}
}

func (h *Hub) tellSeats(show domain.ShowID, since int64, changes domain.SeatChanges, at time.Time) {
	listeners := h.registry.find(seatsInterest(show))
	if len(listeners) == 0 {
		return
	}
	frame, p := sharedSeats(show, since, changes, at)
	for _, c := range listeners {
		c.offerSeats(frame, p)
	}
}

func sharedSeats(show domain.ShowID, since int64, changes domain.SeatChanges, at time.Time) (seatsFrame, *pending) {
	of := stamp{changes.Epoch, changes.Version, 0}
	frame := seatsFrame{
		frameHead: head(events.EventSeats, seatsTopic(show), show, of, at),
		Since:     since, Seats: orEmpty(changes.Seats),
	}
	return frame, &pending{event: events.EventSeats, topic: frame.Topic, key: frame.Topic, stamp: of, data: encode(frame), seats: &frame}
}

// offerSeats passes a seat delta on to a subscriber, whose map must be as of the
// delta's since or later. One that is not has missed seats, and is asked to begin
// anew; it cannot come about while the feed keeps its promise.
func (c *connection) offerSeats(frame seatsFrame, p *pending) {
	if !c.fitSeats(frame, p) {
		c.close(closeResync, "seats were missed, read again")
	}
}

func (c *connection) fitSeats(frame seatsFrame, p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(frame.ShowID)
	if f == nil || f.seats.version == seatsOff || frame.Epoch < f.seats.epoch {
		return true
	}
	if f.seats.version == seatsHeld {
		c.out.mergeSeats(p, frame) // judged once the map is read
		return true
	}
	if frame.Epoch == f.seats.epoch && frame.Version <= f.seats.version {
		return true
	}
	if frame.Since > 0 && (frame.Epoch > f.seats.epoch || frame.Since > f.seats.version) {
		return false
	}
	c.out.mergeSeats(p, frame)
	f.seats = seatMap{epoch: frame.Epoch, version: frame.Version}
	c.flush()
	return true
}

func (h *Hub) notifyBooking(n events.Notification) {
	doubted := false
	for _, fact := range n.Bookings {
		for _, c := range h.registry.find(placeInterest(fact.RequestID)) {
			c.offerBooking(fact.Booking(n.ShowID), stamp{n.Epoch, n.Version, 0}, n.At, false)
			// A confirmed booking ends its person's session.
			doubted = fact.Status == domain.BookingConfirmed && c.doubt(n.ShowID, everyPlace) || doubted
		}
	}
	if doubted {
		h.chores.add(chore{chorePlaces, string(n.ShowID)}, 0)
	}
}

// bookingProgress orders what can be told of one booking.
func bookingProgress(s domain.BookingStatus) int {
	switch s {
	case domain.BookingPending:
		return 1
	case domain.BookingConfirmed, domain.BookingRejected:
		return 2
	}
	return 3
}

// maxBookingsKnown bounds the bookings whose progress a connection remembers.
const maxBookingsKnown = 256

// offerBooking tells where a booking stands, unless that or more was told. Every
// booking keeps a place of its own in the lane: none replaces another.
func (c *connection) offerBooking(b domain.Booking, of stamp, at time.Time, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage == stageGone || bookingProgress(b.Status) <= c.bookings[b.BookingID] && !asked {
		return
	}
	if c.bookings == nil || len(c.bookings) >= maxBookingsKnown {
		c.bookings = map[domain.BookingID]int{}
	}
	c.bookings[b.BookingID] = max(bookingProgress(b.Status), c.bookings[b.BookingID])
	topic := bookingTopic(c.hub.deps.requests.For(b.ShowID, c.identity.Person))
	c.out.put(laneBooking, &pending{event: events.EventBooking, topic: topic, key: string(b.BookingID), stamp: of, data: encode(bookingFrame{
		frameHead: head(events.EventBooking, topic, b.ShowID, of, at),
		BookingID: b.BookingID, Status: b.Status, Reason: b.Reason, Conflicts: b.Conflicts,
		Seats: orEmpty(b.Seats), Price: b.Price,
	})})
	c.flush()
}

func (h *Hub) notifyChat(n events.Notification) {
	listeners := h.registry.find(roomInterest(n.RoomID))
	if len(listeners) == 0 {
		return
	}
	frames := make([]*pending, 0, 1+len(n.Read))
	if n.Message != nil {
		frames = append(frames, chatMessagePending(n.RoomID, *n.Message))
	}
	for _, pointer := range n.Read {
		frames = append(frames, chatReadPending(n.RoomID, chatReadFrame{Person: pointer.PersonID, Name: pointer.Name, UpTo: pointer.UpTo}, n.At))
	}
	for _, c := range listeners {
		if slices.Contains(n.Gone, c.identity.Person) {
			c.dropTopic(chatTopic(n.RoomID))
			h.close(c, topicName{topicChat, string(n.RoomID)})
			continue
		}
		c.offerChat(n.RoomID, frames)
	}
}

func chatMessagePending(room domain.RoomID, message domain.ChatMessage) *pending {
	of, topic := stamp{version: message.Seq}, chatTopic(room)
	message.At = wireTime(message.At)
	return &pending{event: events.EventChatMessage, topic: topic, stamp: of, data: encode(chatMessageFrame{
		frameHead: head(events.EventChatMessage, topic, "", of, message.At), RoomID: room, Message: message,
	})}
}

func chatReadPending(room domain.RoomID, frame chatReadFrame, at time.Time) *pending {
	of, topic := stamp{version: frame.UpTo}, chatTopic(room)
	frame.frameHead, frame.RoomID = head(events.EventChatRead, topic, "", of, at), room
	key := string(room) + "\x00" + string(frame.Person)
	return &pending{event: events.EventChatRead, topic: topic, key: key, stamp: of, data: encode(frame)}
}

// offerChat queues chat frames. How far a member has read may replace what was to
// be told of it before; a message replaces nothing, so that a client too slow for
// the talk is asked to come back and read the history.
func (c *connection) offerChat(room domain.RoomID, frames []*pending) {
	c.mu.Lock()
	_, member := c.rooms[room]
	if !member || c.stage >= stageClosing {
		frames = nil
	}
	fits := true
	for _, p := range frames {
		_, waits := c.out.get(laneChat, p.key)
		if fits = fits && (waits || c.out.waiting(laneChat) < maxChatQueued); fits {
			c.out.put(laneChat, p)
		}
	}
	c.flush()
	c.mu.Unlock()
	if !fits {
		c.hub.metrics.dropped("chat")
		c.close(closeResync, "too far behind, read again")
	}
}

// offerMissed tells the messages of a chat room's newest page that may have been
// missed: those after the last that was known to be there.
func (c *connection) offerMissed(room domain.RoomID, messages []domain.ChatMessage) {
	c.mu.Lock()
	last := c.rooms[room]
	if _, member := c.rooms[room]; member && len(messages) > 0 {
		c.rooms[room] = messages[len(messages)-1].Seq
	}
	c.mu.Unlock()
	var missed []*pending
	for _, message := range messages {
		if message.Seq > last {
			missed = append(missed, chatMessagePending(room, message))
		}
	}
	c.offerChat(room, missed)
}

// showsLoop learns of new and ended shows whose notification was lost, and lets
// everybody hear of a turn at a new show.
func (h *Hub) showsLoop(ctx context.Context) {
	learn := func(time.Time) {
		bounded, cancel := context.WithTimeout(ctx, h.config.snapshotTime)
		defer cancel()
		live, err := h.deps.shows.live(bounded)
		if err != nil {
			if ctx.Err() == nil {
				h.metrics.unreadable("shows")
				h.deps.log.WarnContext(ctx, "live shows were not read", "error", err)
			}
			return
		}
		for _, show := range h.book.learn(live, h.followed) {
			h.listenAt(show)
		}
	}
	learn(time.Now())
	every(ctx, h.config.showsEvery, learn)
}

// listenAt registers every connection under its own place at a show.
func (h *Hub) listenAt(show domain.ShowID) {
	for _, c := range h.all() {
		if person, known := c.person(); known {
			c.follow(placeInterest(h.deps.requests.For(show, person)))
		}
	}
}

// person is whose connection it is, unless that is yet to be said.
func (c *connection) person() (domain.PersonID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity.Person, c.stage != stageMute
}

// followed reports whether anybody here follows a show.
func (h *Hub) followed(show domain.ShowID) bool { return len(h.registry.find(showInterest(show))) > 0 }
