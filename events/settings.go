package events

import (
	"time"

	"foyer/domain"
)

// The groups of commands that a Consumer may take.
const (
	GroupAdmission = "admission"
	GroupBooking   = "booking"
	GroupChat      = "chat"
)

// Limits bound how one group's commands are run. A zero field is the default.
type Limits struct {
	InFlight   int           // commands at once per consumer; retried and reclaimed ones may run beside them, a quarter as many each
	Timeout    time.Duration // after which a handler's context ends, at most an eighth of it late
	Deliveries int           // tries before a command becomes a dead letter
}

// Timing holds the intervals of a Consumer. A zero field is the default. All
// workers of a group should use the same Idle.
type Timing struct {
	Block   time.Duration // one blocking read; bounds how long stopping waits for it; shorter than the reader clients' ReadTimeout (500 ms)
	Idle    time.Duration // silence after which an entry is taken from its consumer; renewed at a third of it (30 s)
	Sweep   time.Duration // between looks for such entries (5 s)
	Retry   time.Duration // delay after the first failure, doubled each time (100 ms)
	Drain   time.Duration // how long stopping waits for running handlers (20 s)
	Janitor time.Duration // between trimming, measuring and tidying (10 s)
}

// group is one kind of work: a stream, the consumer group on it, and its limits.
type group struct {
	name   string
	stream string
	group  string
	limits Limits
}

// allGroups lists every group with its defaults. Bookings and read marks meet in
// round trips to the database: so many at once fill a few of those. Admission steps
// are few and long.
func allGroups() []group {
	return []group{
		{GroupAdmission, StreamAdmission, "admission-workers", Limits{InFlight: 8, Timeout: 10 * time.Second, Deliveries: 5}},
		{GroupBooking, StreamBooking, "booking-workers", Limits{InFlight: 1024, Timeout: 10 * time.Second, Deliveries: 5}},
		{GroupChat, StreamChatRead, "group1", Limits{InFlight: 1024, Timeout: 5 * time.Second, Deliveries: 10}},
	}
}

func (l Limits) or(d Limits) Limits {
	return Limits{
		InFlight:   positive(l.InFlight, d.InFlight),
		Timeout:    positive(l.Timeout, d.Timeout),
		Deliveries: positive(l.Deliveries, d.Deliveries),
	}
}

func (t Timing) withDefaults() Timing {
	return Timing{
		Block:   positive(t.Block, 500*time.Millisecond),
		Idle:    positive(t.Idle, 30*time.Second),
		Sweep:   positive(t.Sweep, 5*time.Second),
		Retry:   positive(t.Retry, 100*time.Millisecond),
		Drain:   positive(t.Drain, 20*time.Second),
		Janitor: positive(t.Janitor, 10*time.Second),
	}
}

func positive[N int | time.Duration](value, otherwise N) N {
	if value > 0 {
		return value
	}
	return otherwise
}

// Numbers that nobody needs to tune.
const (
	maxRead  = 256                  // entries of one read or reclaim page
	ackBatch = 256                  // entries of one acknowledgement
	ackWait  = 2 * time.Millisecond // how long an acknowledgement waits for company
	ownBatch = 200                  // entries of one renewal
	readWait = time.Millisecond     // how long a busy reader waits for more places
	// waitingShare times InFlight entries may wait for another try before no new
	// ones are read.
	waitingShare = 4
	// immortal times the handler timeout is how long a handler that ignores its
	// context keeps its entry.
	immortal     = 2
	cancelGrace  = time.Second     // for handlers to return once stopping has cancelled them
	flushTimeout = 5 * time.Second // for acknowledging and handing back at the end
	// handedBack is the idle time that a given-up entry is left with: longer than
	// any Idle, so that the next sweep of anybody takes it.
	handedBack = time.Hour
	// staleConsumer is how long a consumer without entries is silent before its
	// name is removed. A living one that is merely quiet comes back by reading.
	staleConsumer = 24 * time.Hour
	deadRetention = domain.DeadLetterRetention
	maxDeadFields = 64  // fields of a foreign entry that a dead letter keeps
	maxErrorText  = 500 // bytes of an error in a dead letter
)
