package domain

import (
	"strings"
	"time"
)

// Limits of what an operator may set. Lengths are in characters.
const (
	MaxTitleLength   = 200
	MaxVenueLength   = 200
	MaxMessageLength = 500
)

// Phase is where a show's sale stands; it is derived, never stored.
type Phase string

// The phases of a sale.
const (
	PhaseScheduled Phase = "SCHEDULED"
	PhasePrequeue  Phase = "PREQUEUE"
	PhaseOpen      Phase = "OPEN"
	PhasePaused    Phase = "PAUSED"
	PhaseSoldOut   Phase = "SOLD_OUT"
	PhaseClosed    Phase = "CLOSED"
)

// Availability says whether seats can be had. All seats in carts is not sold
// out: a hold that lapses brings seats back.
type Availability string

// The three public states of a show's seats.
const (
	Available           Availability = "AVAILABLE"
	AllHeld             Availability = "ALL_HELD"
	AvailabilitySoldOut Availability = "SOLD_OUT"
)

// Show is the thing on sale as SQL keeps it. What changes by the second (who
// waits, what is held) is in Stats.
type Show struct {
	ID         ShowID
	Title      string
	Venue      string
	StartsAt   *time.Time // when the show itself begins
	PrequeueAt *time.Time // from when people may enter the draw; nil: no pre-queue
	OpensAt    time.Time  // when admission begins, unless people may join the draw a while longer
	ClosesAt   *time.Time // when the sale ends; nil: when sold out or closed by hand
	Paused     bool       // admission stands still by operator control
	Closed     bool       // ended by operator control
	Message    string     // shown to everybody at the show
	Queue      QueueSettings
	Seating    Seating
	DrawSeed   string // hex; secret until the draw closes at OpensAt
	Revision   int64  // grows with every change, guards stale copies
	Epoch      int64  // grows when all places were lost or reset
	CreatedAt  time.Time
}

// QueueSettings are the limits and times of a show's waiting room. Fields named
// Seconds are whole seconds on the wire.
type QueueSettings struct {
	MaxActive      int `json:"maxActive"`      // people inside at any instant
	RatePerMinute  int `json:"ratePerMinute"`  // admissions in any 60 seconds
	TurnSeconds    int `json:"turnSeconds"`    // time to claim a turn
	SessionSeconds int `json:"sessionSeconds"` // time inside after the claim
	GraceSeconds   int `json:"graceSeconds"`   // silence after which a waiter is dropped

	// LateJoinSeconds is for how long after the opening people may still join the
	// draw; admission begins when it closes. 0: the draw closes at the opening.
	LateJoinSeconds int `json:"lateJoinSeconds"`
	// OverAdmitPercent bounds the turns beyond RatePerMinute that make up for turns
	// which nobody claims. 0: never more turns than RatePerMinute.
	OverAdmitPercent int `json:"overAdmitPercent"`

	// Lanes are lines of their own for people with a code; none: everybody waits in one.
	Lanes []Lane `json:"lanes,omitempty"`
	// OrdinaryWeight is the weight of the line without a lane; 0 stands for 1.
	OrdinaryWeight int `json:"ordinaryWeight,omitempty"`
}

// DefaultQueue returns the settings of a show that names none.
func DefaultQueue() QueueSettings {
	return QueueSettings{MaxActive: 1000, RatePerMinute: 60_000, TurnSeconds: 120, SessionSeconds: 900, GraceSeconds: 60}
}

func (q QueueSettings) check(p *problems) {
	p.between("queue.maxActive", q.MaxActive, 1, 1_000_000)
	p.between("queue.ratePerMinute", q.RatePerMinute, 1, 1_000_000)
	p.between("queue.turnSeconds", q.TurnSeconds, 5, 3600)
	p.between("queue.sessionSeconds", q.SessionSeconds, 10, 86_400)
	p.between("queue.graceSeconds", q.GraceSeconds, 1, 3600)
	p.between("queue.lateJoinSeconds", q.LateJoinSeconds, 0, 3600)
	p.between("queue.overAdmitPercent", q.OverAdmitPercent, 0, 100)
	q.checkLanes(p)
}

// Turn is the time an admitted person has to claim.
func (q QueueSettings) Turn() time.Duration { return time.Duration(q.TurnSeconds) * time.Second }

// Session is the time inside after a claim.
func (q QueueSettings) Session() time.Duration { return time.Duration(q.SessionSeconds) * time.Second }

// Grace is the silence after which a waiter is dropped.
func (q QueueSettings) Grace() time.Duration { return time.Duration(q.GraceSeconds) * time.Second }

// Validate reports everything wrong with a show at once as an *InvalidError.
func (s *Show) Validate() error {
	var p problems
	if !s.ID.Valid() {
		p.add("id", "must match [a-z0-9-]{1,64}")
	}
	text(&p, "title", s.Title, 1, MaxTitleLength)
	text(&p, "venue", s.Venue, 0, MaxVenueLength)
	text(&p, "message", s.Message, 0, MaxMessageLength)
	if s.PrequeueAt != nil && s.PrequeueAt.After(s.OpensAt) {
		p.add("prequeueAt", "must not be after opensAt")
	}
	if s.ClosesAt != nil && !s.ClosesAt.After(s.DrawClosesAt()) {
		p.add("closesAt", "must be after opensAt, and after the draw closes")
	}
	s.Queue.check(&p)
	s.Seating.check(&p)
	return p.err()
}

func text(p *problems, field, value string, low, high int) {
	n := len([]rune(value))
	switch {
	case n < low || low > 0 && strings.TrimSpace(value) == "":
		p.add(field, "must not be empty")
	case n > high:
		p.add(field, "must have at most %d characters", high)
	}
}

// JoinOpensAt is the instant from which people may join.
func (s *Show) JoinOpensAt() time.Time {
	if s.PrequeueAt != nil {
		return *s.PrequeueAt
	}
	return s.OpensAt
}

// DrawClosesAt is the instant from which nobody is drawn any more and admission
// begins: the opening, or the end of the time to join late. Before it nobody is let
// in or told a rank, so that all who are drawn have the same chance.
func (s *Show) DrawClosesAt() time.Time {
	return s.OpensAt.Add(time.Duration(s.Queue.LateJoinSeconds) * time.Second)
}

// HasDraw tells whether any place of the show is drawn.
func (s *Show) HasDraw() bool { return s.JoinOpensAt().Before(s.DrawClosesAt()) }

// Phase derives where the sale stands at an instant. An ended sale is ended
// whatever else is set; before the opening a pause has nothing to stand still.
func (s *Show) Phase(now time.Time, sold int) Phase {
	switch {
	case s.Closed || s.ClosesAt != nil && !now.Before(*s.ClosesAt):
		return PhaseClosed
	case s.Seating.Capacity() > 0 && sold >= s.Seating.Capacity():
		return PhaseSoldOut
	case now.Before(s.JoinOpensAt()):
		return PhaseScheduled
	case now.Before(s.DrawClosesAt()):
		return PhasePrequeue
	case s.Paused:
		return PhasePaused
	}
	return PhaseOpen
}

// Stats are a show's live numbers as Redis knows them at one version.
type Stats struct {
	ShowID             ShowID `json:"showId"`
	Waiting            int64  `json:"waiting"`
	Active             int64  `json:"active"`
	MaxActive          int64  `json:"maxActive"`
	RatePerMinute      int64  `json:"ratePerMinute"`
	AdmittedLastMinute int64  `json:"admittedLastMinute"`
	Joined             int64  `json:"joined"` // places ever given in this epoch
	Ended              int64  `json:"ended"`  // places left, expired or used up
	Sold               int64  `json:"sold"`
	Held               int64  `json:"held"` // seats in live holds or being booked
	Capacity           int64  `json:"capacity"`
	Phase              Phase  `json:"phase"`
	Epoch              int64  `json:"epoch"`
	Version            int64  `json:"version"`
	SeatVersion        int64  `json:"seatVersion"`
	// NoShowPercent is the share of recent turns that nobody claimed, and
	// SeatsPerBuyer what recent buyers took each; 0 until there were any.
	NoShowPercent float64 `json:"noShowPercent,omitempty"`
	SeatsPerBuyer float64 `json:"seatsPerBuyer,omitempty"`
	// Lanes are the lines one by one; zero for a show without lanes.
	Lanes LaneLines `json:"lanes,omitzero"`
}

// Availability tells whether a seat can be had, will perhaps come back, or is gone.
func (s Stats) Availability() Availability {
	switch {
	case s.Capacity > 0 && s.Sold >= s.Capacity:
		return AvailabilitySoldOut
	case s.Capacity > 0 && s.Sold+s.Held >= s.Capacity:
		return AllHeld
	}
	return Available
}
