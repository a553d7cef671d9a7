package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// placesBatch bounds the places that one pipelined reading asks for.
const placesBatch = 500

// snapshotAttempts is how often a first snapshot is tried before the client is
// asked to come back later.
const snapshotAttempts = 5

// bookingsTold is how many of a person's newest bookings are told again when a
// word about one may have been lost.
const bookingsTold = 5

// welcome takes the first snapshot of a connection and sets it live. The order
// makes sure that nothing falls between: first register for what is published,
// keep it back, then read, then merge by version, then send HELLO and the rest.
func (h *Hub) welcome(c *connection) {
	life, release := c.life.during(h.life)
	defer release()
	for attempt := range snapshotAttempts {
		err := h.snapshot(life, c)
		if err == nil || life.Err() != nil {
			return
		}
		h.metrics.unreadable("snapshot")
		h.deps.log.WarnContext(life, "snapshot failed", "connection_id", c.id, "attempt", attempt+1, "error", err)
		retry := time.NewTimer(h.config.snapshotRetry << attempt)
		select {
		case <-life.Done():
		case <-retry.C:
		}
		retry.Stop()
	}
	c.close(closeOverloaded, "state cannot be read, try later")
}

func (h *Hub) snapshot(life context.Context, c *connection) (err error) {
	defer func() {
		if value := recover(); value != nil {
			h.panicked(c, value)
			err = fmt.Errorf("snapshot panicked: %v", value)
		}
	}()
	select {
	case h.snapshots <- struct{}{}:
		defer func() { <-h.snapshots }()
	case <-life.Done():
		return life.Err()
	}
	ctx, cancel := context.WithTimeout(life, h.config.snapshotTime)
	defer cancel()
	live, err := h.deps.shows.live(ctx)
	if err != nil {
		return fmt.Errorf("list live shows: %w", err)
	}
	keys := make([]lua.PlaceKey, len(live))
	for i, show := range live {
		request := h.deps.requests.For(show.ID, c.identity.Person)
		c.follow(placeInterest(request))
		keys[i] = lua.PlaceKey{ShowID: show.ID, RequestID: request}
	}
	joined, err := h.joined(ctx, keys)
	if err != nil {
		return err
	}
	shows := make([]domain.ShowID, len(joined))
	for i, key := range joined {
		c.follow(showInterest(key.ShowID))
		shows[i] = key.ShowID
		if err := h.deps.steps.Touch(ctx, key.ShowID, []domain.RequestID{key.RequestID}); err != nil {
			return fmt.Errorf("renew contact: %w", err)
		}
	}
	// Only now is everything registered that these people may hear; what changed
	// since the first reading is in the second or kept back.
	places, err := h.places(ctx, joined)
	if err != nil {
		return err
	}
	stats, err := h.readStats(ctx, shows)
	if err != nil {
		return err
	}
	h.goLive(c, places, stats)
	h.tellBookings(ctx, c, places)
	return nil
}

// goLive merges a snapshot with what was kept back, and sets the connection live.
func (h *Hub) goLive(c *connection, places []domain.Place, stats []domain.Stats) {
	for _, p := range places {
		c.offerPlace(p, false)
	}
	for _, s := range stats {
		h.book.note(s)
		c.offerShared(laneStats, wantStats, sharedStats(s, time.Now()))
		frame, soldOut := sharedSoldOut(s, time.Now())
		c.offerSoldOut(frame, soldOut, false)
	}
	c.goLive()
}

// goLive sends HELLO with the newest that is known of every place, and then what
// was kept back of the rest.
func (c *connection) goLive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stage != stageHeld {
		return
	}
	now := time.Now()
	hello := helloFrame{
		frameHead:    head(eventHello, "", "", stamp{}, now),
		ConnectionID: c.id, ServerTime: wireTime(now),
		HeartbeatSeconds: c.hub.config.heartbeat.Seconds(), Places: []any{},
	}
	for _, f := range c.follows {
		if f.joined {
			hello.Places = append(hello.Places, c.hub.describe(f.place, c.identity))
			hello.Epoch = max(hello.Epoch, f.place.Epoch)
		}
	}
	c.codec.greet(&c.out, hello)
	c.enter(stageLive)
	c.flush()
}

// joined returns the keys under which there is a place.
func (h *Hub) joined(ctx context.Context, keys []lua.PlaceKey) ([]lua.PlaceKey, error) {
	var joined []lua.PlaceKey
	err := h.eachPlace(ctx, keys, func(key lua.PlaceKey, _ domain.Place, found bool) {
		if found {
			joined = append(joined, key)
		}
	})
	return joined, err
}

// places reads places, leaving out those that are not there.
func (h *Hub) places(ctx context.Context, keys []lua.PlaceKey) ([]domain.Place, error) {
	var places []domain.Place
	err := h.eachPlace(ctx, keys, func(_ lua.PlaceKey, place domain.Place, found bool) {
		if found {
			places = append(places, place)
		}
	})
	return places, err
}

func (h *Hub) eachPlace(ctx context.Context, keys []lua.PlaceKey, see func(key lua.PlaceKey, place domain.Place, found bool)) error {
	for batch := range slices.Chunk(keys, placesBatch) {
		places, found, err := h.deps.steps.Places(ctx, batch)
		if err != nil {
			return fmt.Errorf("read places: %w", err)
		}
		for i, key := range batch {
			see(key, places[i], found[i])
		}
	}
	return nil
}

func (h *Hub) readStats(ctx context.Context, shows []domain.ShowID) ([]domain.Stats, error) {
	if len(shows) == 0 {
		return nil, nil
	}
	stats, err := h.deps.steps.Stats(ctx, shows...)
	if err != nil {
		return nil, fmt.Errorf("read stats: %w", err)
	}
	return stats, nil
}

// numbersOf keeps of stats what a STATS frame tells besides their version.
func numbersOf(s domain.Stats) *domain.Stats {
	s.AdmittedLastMinute, s.Joined, s.Ended, s.Version, s.SeatVersion = 0, 0, 0, 0, 0
	return &s
}

func sharedStats(s domain.Stats, at time.Time) *shared {
	topic := statsTopic(s.ShowID)
	return &shared{show: s.ShowID, numbers: numbersOf(s), pending: pending{
		event: events.EventStats, topic: topic, key: topic, stamp: statsStamp(s), data: encode(newStatsFrame(s, at)),
	}}
}

// tellBookings tells the newest bookings of somebody who is, or was, inside: their
// outcome may have been published while nobody here listened for them.
func (h *Hub) tellBookings(ctx context.Context, c *connection, places []domain.Place) {
	inside := slices.ContainsFunc(places, func(p domain.Place) bool {
		return p.Status == domain.StatusActive || p.Status == domain.StatusLeft
	})
	if !inside {
		return
	}
	bookings, err := h.deps.store.Bookings(ctx, c.identity.Person, "", bookingsTold)
	if err != nil {
		h.metrics.unreadable("bookings")
		h.deps.log.WarnContext(ctx, "bookings were not read", "connection_id", c.id, "error", err)
		return
	}
	for _, b := range slices.Backward(bookings) { // oldest first
		c.offerBooking(b, stamp{}, b.CreatedAt, false)
	}
}

// run does what a chore asks for.
func (h *Hub) run(ctx context.Context, c chore) error {
	switch c.kind {
	case chorePlaces:
		return h.rereadPlaces(ctx, domain.ShowID(c.id))
	case choreShow:
		return h.rereadShow(ctx, domain.ShowID(c.id))
	case choreSeats:
		return h.rereadSeats(ctx, domain.ShowID(c.id))
	case choreRoom:
		return h.rereadRoom(ctx, domain.RoomID(c.id))
	}
	return nil
}

// rereadPlaces reads the places of a show that are in doubt, and tells what differs.
func (h *Hub) rereadPlaces(ctx context.Context, show domain.ShowID) error {
	missed := map[domain.RequestID]bool{} // by place in doubt: whether bookings were missed too
	for _, c := range h.registry.find(showInterest(show)) {
		if request, doubted, bookings := c.doubted(show); doubted {
			missed[request] = missed[request] || bookings
		}
	}
	keys := make([]lua.PlaceKey, 0, len(missed))
	for request := range missed {
		keys = append(keys, lua.PlaceKey{ShowID: show, RequestID: request})
	}
	err := h.eachPlace(ctx, keys, func(key lua.PlaceKey, place domain.Place, found bool) {
		for _, c := range h.registry.find(placeInterest(key.RequestID)) {
			if !found {
				h.amendLost(c, show)
				continue
			}
			c.offerPlace(place, false)
			if missed[key.RequestID] {
				h.tellBookings(ctx, c, []domain.Place{place})
			}
		}
	})
	if err != nil { // they are still in doubt, for the next attempt
		for request, bookings := range missed {
			for _, c := range h.registry.find(placeInterest(request)) {
				c.doubt(show, func(f *follow) bool {
					f.missed = f.missed || bookings
					return true
				})
			}
		}
	}
	return err
}

// amendLost ends a place that Redis knows nothing of. Where that is because all
// places were lost, the epoch says so, and a client joins again.
func (h *Hub) amendLost(c *connection, show domain.ShowID) {
	stats, _, _ := h.book.stats(show)
	c.amendPlace(show, func(p *domain.Place) {
		endPlace(p, domain.StatusExpired)
		if stats.Epoch > p.Epoch {
			p.Epoch, p.Version = stats.Epoch, stats.Version
		}
	})
}

// endPlace takes from a place what only somebody in the line or inside has.
func endPlace(p *domain.Place, status domain.Status) {
	p.Status, p.Rank, p.Score, p.Lane, p.ETA, p.ClaimBy, p.ExpiresAt = status, 0, 0, domain.OrdinaryLane, nil, nil, nil
}

// rereadShow tells everybody at a show what SQL and Redis say of it now.
func (h *Hub) rereadShow(ctx context.Context, id domain.ShowID) error {
	show, err := h.deps.shows.get(ctx, id)
	if errors.Is(err, domain.ErrShowNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read show: %w", err)
	}
	stats, err := h.readStats(ctx, []domain.ShowID{id})
	if errors.Is(err, domain.ErrNotLoaded) { // nobody has a place there, nothing is sold
		return nil
	}
	if err != nil {
		return err
	}
	if h.book.meet(show) {
		h.listenAt(id)
	}
	if _, turned := h.book.note(stats[0]); turned {
		h.doubtPlaces(id, 0, everyPlace)
	}
	h.passSoldOut(stats[0], time.Now())
	h.passStats(stats[0], time.Now())
	s := h.sharedShow(show, stats[0])
	for _, c := range h.registry.find(showInterest(id)) {
		c.offerShared(laneControl, wantShow, s)
	}
	return nil
}

func (h *Hub) sharedShow(show domain.Show, stats domain.Stats) *shared {
	of, topic := stamp{show.Epoch, show.Revision, stats.Version}, showTopic(show.ID)
	return &shared{show: show.ID, pending: pending{
		event: events.EventShow, topic: topic, key: topic, stamp: of, data: encode(showFrame{
			frameHead: head(events.EventShow, topic, show.ID, of, time.Now()),
			Phase:     stats.Phase, Message: show.Message, Show: h.deps.viewShow(show, stats),
		}),
	}}
}

// rereadSeats reads what changed since the last delta that was passed on.
func (h *Hub) rereadSeats(ctx context.Context, show domain.ShowID) error {
	listeners := h.registry.find(seatsInterest(show))
	if len(listeners) == 0 {
		return nil
	}
	epoch, from := h.book.heard(show)
	changes, err := h.deps.steps.Seats(ctx, show, from, "")
	if err == nil && changes.Epoch != epoch { // another sale, so to say: the whole map
		from = 0
		changes, err = h.deps.steps.Seats(ctx, show, from, "")
	}
	if err != nil {
		return fmt.Errorf("read seats: %w", err)
	}
	news, behind := h.book.fill(show, changes)
	if behind {
		h.chores.add(chore{choreSeats, string(show)}, h.config.seatsPatience)
	}
	if news {
		h.tellSeats(show, from, changes, time.Now())
	}
	return nil
}

// rereadRoom tells a chat room's newest messages again. A message that comes a
// second time is known by its number.
func (h *Hub) rereadRoom(ctx context.Context, room domain.RoomID) error {
	messages, err := h.deps.store.Messages(ctx, room, 0, domain.DefaultMessagePage)
	if err != nil {
		return fmt.Errorf("read chat messages: %w", err)
	}
	for _, c := range h.registry.find(roomInterest(room)) {
		c.offerMissed(room, messages)
	}
	return nil
}

// describe is a place as HTTP answers it. It asks nobody: it runs while a
// notification is routed.
func (h *Hub) describe(p domain.Place, who Identity) placeView {
	pass := ""
	if p.Status == domain.StatusActive {
		var err error
		if pass, err = h.deps.sign(p, who.Person); err != nil {
			h.deps.log.Error("pass was not signed", "request_id", p.RequestID, "error", err)
		}
	}
	return viewPlace(p, h.book.queue(p.ShowID), pass)
}
