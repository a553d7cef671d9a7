package simulate

import (
	"math"

	"foyer/domain"
)

// Rules are a show's settings. Instants and durations are in ms.
type Rules struct {
	JoinAt   int64 // places are given from here on; before OpensAt they are drawn
	OpensAt  int64 // when the draw closes and admission begins
	ClosesAt int64 // 0: never
	Turn     int64
	Session  int64
	Grace    int64

	MaxActive     int
	RatePerMinute int
	OverAdmit     int // percent: bound of the turns that make up for those nobody claims
	Capacity      int // seats; 0: the show never sells out

	LaneWeights []int // of the ordinary line and the lanes, by number; nil: there are no lanes
}

// The constants of the steps in Redis; the test in package lua holds them equal.
const (
	rateWindow = 60 // s; with the running one 61 buckets, so that no 60 s see more than the rate
	outage     = 10_000
	renewal    = 30_000
)

// Standing is where one person is.
type Standing uint8

// The standings of a person. NoPlace is that of whoever never joined.
const (
	NoPlace Standing = iota
	Waiting
	Admitted
	Active
	Expired
	Left
)

// place is what is known of one person. score and contact count while waiting,
// deadline while inside.
type place struct {
	score    int64
	contact  int64
	deadline int64
	standing Standing
	lane     uint8 // while waiting

	unswept   bool // expired, and no step has told so yet
	unclaimed bool // it was a turn that expired
}

// present is the contact of somebody whose page renews it all the time.
const present = math.MaxInt64

// due is somebody at an instant. In a queue of them an entry is void when the person's
// place has moved on since.
type due struct {
	at int64
	id int32
}

// Room is the waiting room of one show under its rules. People are numbers from 0.
// Instants must not go back from call to call.
type Room struct {
	rules  Rules
	people []place
	lanes  []lane

	turns    queue   // deadlines of turns, in order
	sessions queue   // deadlines of sessions, in order
	contacts queue   // last contacts of those who wait, in order
	overdue  []int32 // who expired since the last admit step; some are unswept no more
	unswept  int
	rate     [rateWindow + 4]bucket

	seq       int64
	claimed   int // turns, for the share that nobody claims
	unclaimed int
	waiting   int
	inside    int // whose deadline is not over
	sold      int
	lastTick  int64
	dropAfter int64
}

type bucket struct {
	second int64
	n      int
}

// NewRoom returns the empty room of a show that came to be at an instant, for people
// numbered below n.
func NewRoom(rules Rules, n int, now int64) *Room {
	return &Room{rules: rules, lanes: newLanes(rules.LaneWeights), people: make([]place, n), dropAfter: now + rules.Grace + renewal}
}

// SetLimits changes the limits that an operator may change during a sale.
func (r *Room) SetLimits(maxActive, ratePerMinute int) {
	r.rules.MaxActive, r.rules.RatePerMinute = maxActive, ratePerMinute
}

// pass lets time go on: whose deadline is over is outside, swept or not.
func (r *Room) pass(now int64) {
	for _, q := range []*queue{&r.turns, &r.sessions} {
		for d, ok := q.over(now); ok; d, ok = q.over(now) {
			p := &r.people[d.id]
			if p.deadline == d.at && (p.standing == Admitted || p.standing == Active) {
				p.unclaimed = p.standing == Admitted
				p.standing, p.unswept = Expired, true
				r.inside--
				r.unswept++
				r.overdue = append(r.overdue, d.id)
			}
		}
	}
}

func (r *Room) soldOut() bool { return r.rules.Capacity > 0 && r.sold >= r.rules.Capacity }

// Phase is where the sale stands.
func (r *Room) Phase(now int64) domain.Phase {
	switch {
	case r.rules.ClosesAt != 0 && now >= r.rules.ClosesAt:
		return domain.PhaseClosed
	case r.soldOut():
		return domain.PhaseSoldOut
	case now < r.rules.JoinAt:
		return domain.PhaseScheduled
	case now < r.rules.OpensAt:
		return domain.PhasePrequeue
	}
	return domain.PhaseOpen
}

// Waiting is how many stand in the line, silent or not.
func (r *Room) Waiting() int { return r.waiting }

// Inside is how many are inside or have a turn.
func (r *Room) Inside(now int64) int {
	r.pass(now)
	return r.inside
}

// Sold is how many seats were bought.
func (r *Room) Sold() int { return r.sold }

// Standing tells where somebody is.
func (r *Room) Standing(now int64, id int32) Standing {
	r.pass(now)
	return r.people[id].standing
}

func (r *Room) admittedLately(now int64) int {
	sum, second := 0, now/1000
	for _, b := range r.rate {
		if b.second >= second-rateWindow {
			sum += b.n
		}
	}
	return sum
}

// learnTurns counts turns that were claimed or not. Beyond the turns of some minutes the
// older ones weigh less and less.
func (r *Room) learnTurns(claimed, unclaimed int) {
	r.claimed, r.unclaimed = r.claimed+claimed, r.unclaimed+unclaimed
	if r.claimed+r.unclaimed > max(256, 4*r.rules.RatePerMinute) {
		r.claimed, r.unclaimed = r.claimed-r.claimed/2, r.unclaimed-r.unclaimed/2
	}
}

// noShow is the share of turns that nobody claims; the first 20 are taken as claimed.
func (r *Room) noShow() float64 { return float64(r.unclaimed) / float64(r.claimed+r.unclaimed+20) }

// allowance is how many turns may be given in a minute.
func (r *Room) allowance() int {
	rate := float64(r.rules.RatePerMinute)
	most := rate * float64(100+r.rules.OverAdmit) / 100
	return int(math.Floor(min(most, rate/(1-r.noShow()))))
}

// vacancy is how many may come in at this instant.
func (r *Room) vacancy(now int64) int {
	if r.Phase(now) != domain.PhaseOpen {
		return 0
	}
	return max(0, min(r.rules.MaxActive-r.inside, r.allowance()-r.admittedLately(now)))
}

// admit gives a turn to somebody who is no longer in the line.
func (r *Room) admit(now int64, id int32) {
	p := &r.people[id]
	p.standing, p.deadline = Admitted, now+r.rules.Turn
	r.turns.push(due{p.deadline, id})
	r.inside++
	second := now / 1000
	b := &r.rate[second%int64(len(r.rate))]
	if b.second != second {
		*b = bucket{second: second}
	}
	b.n++
}

// sweep tells whether an expired place was still to be told of, once.
func (r *Room) sweep(id int32) bool {
	p := &r.people[id]
	if !p.unswept {
		return false
	}
	p.unswept = false
	r.unswept--
	return true
}

// expire sweeps somebody who is about to have another place, or none.
func (r *Room) expire(id int32) {
	if r.sweep(id) && r.people[id].unclaimed {
		r.learnTurns(0, 1)
	}
}

// finish ends a place.
func (r *Room) finish(id int32, as Standing) {
	p := &r.people[id]
	switch p.standing {
	case Waiting:
		r.waiting--
		r.lanes[p.lane].waiting--
	case Admitted, Active:
		r.inside--
	}
	p.standing = as
}
