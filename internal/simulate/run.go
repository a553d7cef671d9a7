package simulate

import (
	"context"
	"errors"

	"foyer/domain"
)

// Kinds of what people do, in the order in which they are done at one instant.
const (
	doVanish = iota // closes the page without a word
	doClaim
	doPick // chooses seats
	doEnd  // pays or leaves
)

// act is one thing that one person will do.
type act struct {
	at   int64
	kind uint8
	id   int32
}

func (a act) before(b act) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.kind != b.kind:
		return a.kind < b.kind
	}
	return a.id < b.id
}

// visitor is what the model knows of one person besides their place.
type visitor struct {
	since   int64 // from when they wait; 0: never came to have a place
	until   int64 // when they were let in or ceased to wait
	seats   int16 // in their hands; below 0: as many are wanted and none were free
	online  bool  // their page is open
	in      bool  // was let in
	lane    uint8
	claimed bool
}

// sale is one run.
type sale struct {
	plan     Plan
	crowd    Crowd
	dice     dice
	room     *Room
	opens    int64
	ends     int64
	visitors []visitor
	acts     heap
	step     Step
	held     int
	gauge    *gauge
}

// birth is the virtual instant at which the show comes to be, in ms: on a whole second,
// as far from 0 as no rule looks back.
const birth = 3_600_000

// Run plays a sale. It ends when it is sold out or over and nobody is inside, or when
// nobody is left. It fails when plan or crowd make no sense, and with the context.
func Run(ctx context.Context, plan Plan, crowd Crowd, seed uint64) (*Result, error) {
	if err := errors.Join(plan.check(), crowd.check(), crowd.checkLanes(plan)); err != nil {
		return nil, err
	}
	s := newSale(plan, crowd, seed)
	if err := s.play(ctx, crowd.arrivals(plan.Prequeue, s.dice)); err != nil {
		return nil, err
	}
	return s.result(seed), nil
}

func newSale(plan Plan, crowd Crowd, seed uint64) *sale {
	opens := birth + ms(plan.Prequeue)
	rules := Rules{
		JoinAt: birth, OpensAt: opens + int64(plan.Queue.LateJoinSeconds)*1000, ClosesAt: opens + ms(plan.Sale),
		Turn: ms(plan.Queue.Turn()), Session: ms(plan.Queue.Session()), Grace: ms(plan.Queue.Grace()),
		MaxActive: plan.Queue.MaxActive, RatePerMinute: plan.Queue.RatePerMinute,
		OverAdmit: plan.Queue.OverAdmitPercent, Capacity: plan.Seats, LaneWeights: plan.Queue.LaneWeights(),
	}
	return &sale{
		plan: plan, crowd: crowd, dice: newDice(seed), opens: opens, ends: rules.ClosesAt,
		room:     NewRoom(rules, crowd.People, birth),
		visitors: make([]visitor, crowd.People),
		gauge:    newGauge(plan, opens),
	}
}

// play lets time pass from tick to tick, and does between two what people do.
func (s *sale) play(ctx context.Context, arrivals []int64) error {
	every := ms(s.plan.Tick)
	next := 0
	for tick := int64(birth); ; tick += every {
		if err := ctx.Err(); err != nil {
			return err
		}
		for {
			arrival := next < len(arrivals) && s.opens+arrivals[next] <= tick
			if act, ok := s.acts.first(); ok && act.at <= tick && (!arrival || act.at < s.opens+arrivals[next]) {
				s.acts.pop()
				s.do(act)
				continue
			}
			if !arrival {
				break
			}
			s.arrive(s.opens+arrivals[next], int32(next))
			next++
		}
		s.admit(tick, every)
		s.gauge.sample(tick, s.room.Waiting(), s.room.Inside(tick), s.room.Sold())
		if s.over(tick, next == len(arrivals)) {
			s.gauge.end = tick
			s.gauge.refused += len(arrivals) - next // they find it sold out or over
			return nil
		}
	}
}

// over tells whether nothing can happen any more that counts.
func (s *sale) over(now int64, allCame bool) bool {
	if s.room.Inside(now) > 0 {
		return false
	}
	stands := s.room.Phase(now)
	return stands == domain.PhaseSoldOut || stands == domain.PhaseClosed || allCame && s.room.Waiting() == 0
}

// arrive brings one person to the show.
func (s *sale) arrive(now int64, id int32) {
	drawn := s.dice.Int64N(domain.DrawCeiling-1) + 1
	givesUp := s.dice.chance(s.crowd.GiveUpShare)
	patience := s.dice.about(s.crowd.Patience)
	lane := s.dice.lane(s.crowd.LaneShares)
	if !s.room.Join(now, id, drawn, lane) {
		s.gauge.refused++
		return
	}
	v := &s.visitors[id]
	v.since, v.online, v.lane = max(now, s.opens), true, uint8(lane)
	s.gauge.join(now, s.room.Waiting())
	if s.room.Standing(now, id) == Admitted {
		s.letIn(now, id)
		return
	}
	s.room.Stay(id)
	if givesUp {
		s.acts.push(act{v.since + patience, doVanish, id})
	}
}

// admit is what a worker does, at a tick or because a slot was freed.
func (s *sale) admit(now, interval int64) {
	s.room.Admit(now, interval, &s.step)
	s.gauge.admitted(now, interval > 0, len(s.step.Admitted), s.room.Waiting())
	for _, id := range s.step.Ended {
		s.end(now, id)
	}
	for _, id := range s.step.Admitted {
		s.letIn(now, id)
	}
}

// letIn begins a turn.
func (s *sale) letIn(now int64, id int32) {
	v := &s.visitors[id]
	v.until, v.in = now, true
	s.gauge.letIn(now, s.room.Inside(now))
	noShow, after := s.dice.chance(s.crowd.NoShowShare), s.dice.about(s.crowd.ClaimAfter)
	if v.online && !noShow {
		s.acts.push(act{now + after, doClaim, id})
	}
}

// do lets one person do what they set out to do, if they still can.
func (s *sale) do(a act) {
	switch standing := s.room.Standing(a.at, a.id); {
	case a.kind == doVanish:
		if standing == Waiting {
			s.room.Touch(a.at, a.id)
			s.visitors[a.id].until = a.at
			s.offline(a.id)
		}
	case a.kind == doClaim && standing == Admitted:
		s.claim(a.at, a.id)
	case a.kind == doPick && standing == Active:
		s.pick(a.id, s.dice.seats(s.crowd.Seats))
	case a.kind == doEnd && standing == Active:
		s.leave(a.at, a.id)
	}
}

// claim begins a session.
func (s *sale) claim(now int64, id int32) {
	s.room.Claim(now, id)
	s.visitors[id].claimed = true
	s.gauge.claim(now)
	inside := s.dice.inside(s.crowd.Inside)
	if !s.dice.chance(s.crowd.LookShare) {
		s.acts.push(act{now + inside/2, doPick, id})
	}
	s.acts.push(act{now + inside, doEnd, id})
}

// pick takes seats into somebody's hands, fewer than wanted where there are not enough;
// who finds none goes on wanting.
func (s *sale) pick(id int32, want int) {
	got := want
	if s.plan.Seats > 0 {
		got = min(want, s.plan.Seats-s.room.Sold()-s.held)
	}
	s.held += got
	s.visitors[id].seats = int16(got)
	if got == 0 {
		s.visitors[id].seats = int16(-want)
	}
}

// leave is the end of somebody's time inside: they pay for what they hold, or go.
func (s *sale) leave(now int64, id int32) {
	v := &s.visitors[id]
	if v.seats < 0 {
		s.pick(id, int(-v.seats))
	}
	if v.seats > 0 {
		s.held -= int(v.seats)
		s.room.Buy(now, id, int(v.seats))
		s.gauge.buy(now, s.room.Phase(now) == domain.PhaseSoldOut)
		v.seats = 0
	} else {
		s.room.Leave(now, id)
		s.gauge.leave(now)
	}
	s.offline(id)
	s.admit(now, 0)
}

// end is what follows when a place ran out.
func (s *sale) end(now int64, id int32) {
	v := &s.visitors[id]
	if v.in && !v.claimed {
		s.gauge.noShows++
	}
	s.held -= max(int(v.seats), 0)
	v.seats = 0
	if v.until == 0 {
		v.until = now
	}
	s.offline(id)
}

func (s *sale) offline(id int32) {
	if s.visitors[id].online {
		s.visitors[id].online = false
		s.gauge.sockets--
	}
}
