package api

import (
	"time"

	"foyer/domain"
	"foyer/events"
)

// topicSet are the topics of a show that a client subscribed to by itself.
type topicSet uint8

const (
	wantStats topicSet = 1 << iota
	wantSoldOut
	wantShow
)

// Versions of a seat map that a client does not have.
const (
	seatsOff  int64 = -1 // not subscribed
	seatsHeld int64 = -2 // subscribed; deltas are kept until the map is read
)

// seatMap says as of which version a client's map of seats is.
type seatMap struct{ epoch, version int64 }

// follow is what one connection knows, and has been told, of one show.
type follow struct {
	show    domain.ShowID
	request domain.RequestID
	joined  bool         // place is known; its topics are followed with it
	place   domain.Place // the newest known; its rank is the one told
	doubt   bool         // place must be read again
	missed  bool         // with doubt: bookings may have been missed too
	wants   topicSet
	seats   seatMap

	ranked, stats, soldOut, showed stamp         // of what was told last
	soldOutTold                    bool          // told as sold out, and not taken back
	numbers                        *domain.Stats // told last; shared, nil: none
}

// at is the connection's follow of a show; nil when there is none. It is called with
// mu held.
func (c *connection) at(show domain.ShowID) *follow {
	for _, f := range c.follows {
		if f.show == show {
			return f
		}
	}
	return nil
}

// following returns the connection's follow of a show, made when absent; nil once
// the connection is gone. It is called with mu held.
func (c *connection) following(show domain.ShowID) *follow {
	if c.stage == stageGone {
		return nil
	}
	f := c.at(show)
	if f == nil {
		f = &follow{show: show, request: c.hub.deps.requests.For(show, c.identity.Person), seats: seatMap{version: seatsOff}}
		c.follows = append(c.follows, f)
	}
	return f
}

// hears reports whether a topic of the show is followed: all are with a place.
func (f *follow) hears(t topicSet) bool { return f.joined || f.wants&t != 0 }

// progress orders statuses of one version: later ones come after earlier ones.
func progress(s domain.Status) int {
	switch s {
	case domain.StatusPrequeue:
		return 0
	case domain.StatusWaiting:
		return 1
	case domain.StatusAdmitted:
		return 2
	case domain.StatusActive:
		return 3
	case domain.StatusSoldOut, domain.StatusClosed:
		return 4
	case domain.StatusLeft: // leaving is told as such, although it also ends a place
		return 6
	}
	return 5
}

// older reports whether p is not to replace what is known of the place.
func (f *follow) older(p domain.Place) bool {
	if !f.joined {
		return false
	}
	order := placeStamp(p).compare(placeStamp(f.place))
	return order < 0 || order == 0 && progress(p.Status) < progress(f.place.Status)
}

func sameInstant(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// offerPlace tells the person where they stand, if that is news or if they asked.
// A place older than the one known is never told: the known one is, when asked.
func (c *connection) offerPlace(p domain.Place, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.following(p.ShowID); f != nil {
		c.tell(f, p, asked)
	}
}

// amendPlace changes what is known of a place by what a notification said. Of a
// place not known so far, change sees an empty one, and fresh is true.
func (c *connection) amendPlace(show domain.ShowID, change func(*domain.Place)) (fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.following(show)
	if f == nil {
		return false
	}
	fresh = !f.joined
	p := f.place
	p.ShowID, p.RequestID = show, f.request
	change(&p)
	c.tell(f, p, false)
	return fresh
}

func (c *connection) tell(f *follow, p domain.Place, asked bool) {
	if f.older(p) {
		if !asked {
			return
		}
		p = f.place
	}
	before, known := f.place, f.joined
	sameLine := known && before.Epoch == p.Epoch && before.Score == p.Score && before.Lane == p.Lane && before.Rank > 0
	if p.Rank > 0 && sameLine {
		p.Rank = min(p.Rank, before.Rank)
	}
	p.Waiting = max(p.Waiting, p.Rank)
	f.place, f.joined = p, true // a doubt stays: p may have been read before it arose
	if f.ranked.before(placeStamp(p)) {
		f.ranked = placeStamp(p)
	}
	news := !known || before.Epoch != p.Epoch || before.Status != p.Status || p.Rank > 0 && !sameLine ||
		!sameInstant(before.ClaimBy, p.ClaimBy) || !sameInstant(before.ExpiresAt, p.ExpiresAt)
	switch {
	case news || asked:
		c.out.drop(laneRank, rankTopic(f.request))
		c.out.put(laneAdmission, c.admission(f))
	case p.Rank > 0 && (p.Rank != before.Rank || p.Waiting != before.Waiting):
		c.out.put(laneRank, rankPending(f))
	}
	c.flush()
}

func (c *connection) admission(f *follow) *pending {
	p := f.place
	topic := admissionTopic(f.request)
	return &pending{event: events.EventAdmission, topic: topic, key: topic, stamp: placeStamp(p), data: encode(admissionFrame{
		frameHead: head(events.EventAdmission, topic, f.show, placeStamp(p), p.ServerTime),
		RequestID: f.request, Status: p.Status, ClaimBy: wireTimeOrNil(p.ClaimBy), ExpiresAt: wireTimeOrNil(p.ExpiresAt),
		Place: c.hub.describe(p, c.identity),
	})}
}

func rankPending(f *follow) *pending {
	p := f.place
	topic := rankTopic(f.request)
	return &pending{event: events.EventRank, topic: topic, key: topic, stamp: f.ranked, data: encode(rankFrame{
		frameHead: head(events.EventRank, topic, f.show, f.ranked, p.ServerTime),
		RequestID: f.request, Rank: p.Rank, Waiting: p.Waiting, ETA: p.ETA, Odds: p.Odds,
	})}
}

// rankedLine is what a RANK notification says of a show's line.
type rankedLine struct {
	show  domain.ShowID
	knots domain.RankKnots
	ranks []func(score int64) int64 // of the knots, by lane
	stats domain.Stats              // the latest known; they tell how fast the line moves
	stamp stamp
	at    time.Time
}

// offerRank computes the person's rank from the show's knots and tells it when it
// changed. The number told never grows: beyond the first hundred it is an estimate,
// and two estimates may disagree. It reports whether the place must be read again:
// when the line has moved past the person, a word about that was lost.
func (c *connection) offerRank(line rankedLine) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(line.show)
	if f == nil || !f.joined || line.stamp.before(f.ranked) {
		return false
	}
	knots, stats := line.knots.Lane(f.place.Lane), line.stats
	switch f.place.Status {
	case domain.StatusPrequeue: // nobody is told a rank while the draw is open
		open := stats.Phase == domain.PhaseOpen
		f.doubt = f.doubt || open
		return open
	case domain.StatusWaiting:
	default:
		return false
	}
	if f.place.Score == 0 || len(knots.Scores) == 0 || f.place.Score < knots.Scores[0] {
		f.doubt = true
		return true
	}
	rank := line.ranks[f.place.Lane](f.place.Score)
	if rank == 0 {
		return false
	}
	f.ranked = line.stamp
	before := f.place
	if before.Rank > 0 {
		rank = min(rank, before.Rank)
	}
	f.place.Rank, f.place.Waiting, f.place.Active = rank, max(knots.Waiting, rank), stats.Active
	turn := stats.Turns(f.place.Lane, rank)
	f.place.ETA, f.place.Odds, f.place.ServerTime = domain.EstimateWait(turn, stats), domain.EstimateOdds(turn, stats), line.at
	if before.Rank == rank && before.Waiting == f.place.Waiting && sameETA(before.ETA, f.place.ETA) {
		return false
	}
	c.out.put(laneRank, rankPending(f))
	c.flush()
	return false
}

func sameETA(a, b *domain.ETA) bool { return a == b || a != nil && b != nil && *a == *b }

// shared is a frame of a show encoded once for all who hear it.
type shared struct {
	pending
	show    domain.ShowID
	numbers *domain.Stats // what stats say, without their version; nil for everything else
	asked   bool          // told even if it says the same as before
}

// offerShared tells something of a show that is the same for everybody. A value
// that is older than the one told before is dropped, and so are stats that say the
// same.
func (c *connection) offerShared(l lane, topic topicSet, s *shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(s.show)
	if f == nil || !f.hears(topic) {
		return
	}
	told := &f.stats
	if topic == wantShow {
		told = &f.showed
	}
	if s.stamp.before(*told) {
		return
	}
	*told = s.stamp
	if s.numbers != nil {
		if f.numbers != nil && *f.numbers == *s.numbers && !s.asked {
			return
		}
		f.numbers = s.numbers
	}
	c.out.put(l, &s.pending)
	c.flush()
}

// offerSoldOut tells that a show sold out, or that seats came back, if that is not
// what was told before or if they asked.
func (c *connection) offerSoldOut(s *shared, soldOut, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(s.show)
	if f == nil || !f.hears(wantSoldOut) || s.stamp.before(f.soldOut) || f.soldOutTold == soldOut && !asked {
		return
	}
	f.soldOut, f.soldOutTold = s.stamp, soldOut
	c.out.put(laneSoldOut, &s.pending)
	c.flush()
}
