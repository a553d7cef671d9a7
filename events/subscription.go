package events

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// subscription is one consumer of a group. It gives what its reader and its sweeper
// find to the router, whose handlers report back themselves; only an entry that
// failed has a goroutine, until it is tried again.
type subscription struct {
	stream   string
	group    string
	consumer string // never the name of two live consumers, nor used again after a restart
	limits   Limits
	timing   Timing
	readers  redis.UniversalClient
	commands redis.UniversalClient
	log      *slog.Logger
	metrics  *metrics
	counts   streamMetrics
	prepare  func(*receipt)
	dying    func(ctx context.Context, d Delivery, f fields, reason string) error

	out    chan *message.Message
	owned  ledger
	roster *roster
	nudge  chan struct{} // asks the sweeper to look now
	// The entries in hand have places in lanes. These are apart so
	// that a blocked read, which holds places for what it may bring, keeps neither
	// retries nor reclaimed entries waiting, and a storm of one not the other.
	fresh, retries, reclaimed *lane
	waiting                   *lane  // entries between two attempts
	cursor                    string // where the next sweep goes on; the sweeper's own
}

func newSubscription(s *subscriber, stream string) *subscription {
	limits := s.group.limits
	quarter := max(limits.InFlight/4, 1)
	return &subscription{
		stream:    stream,
		group:     s.group.group,
		consumer:  consumerName(),
		limits:    limits,
		timing:    s.timing,
		readers:   s.readers,
		commands:  s.commands,
		log:       s.log.With("stream", stream),
		metrics:   s.metrics,
		counts:    s.metrics.of(stream),
		prepare:   s.prepare,
		dying:     s.dying,
		out:       make(chan *message.Message, maxRead), // the router takes one at a time; meanwhile more can be read
		owned:     ledger{entries: map[string]*entry{}},
		roster:    newRoster(),
		nudge:     make(chan struct{}, 1),
		fresh:     newLane(limits.InFlight),
		retries:   newLane(quarter),
		reclaimed: newLane(quarter),
		waiting:   newLane(waitingShare * limits.InFlight),
		cursor:    "-",
	}
}

// run consumes until ctx ends, then drains. What keeps the books must outlive
// ctx, hence the WithoutCancel.
func (s *subscription) run(ctx context.Context) {
	after := context.WithoutCancel(ctx)
	flushing, giveUp := context.WithCancel(after)
	defer giveUp()
	renewing, stopRenewing := context.WithCancel(after)
	defer stopRenewing()

	var books, sources sync.WaitGroup
	books.Go(func() { s.acknowledge(flushing) })
	books.Go(func() { s.renew(renewing) })
	books.Go(func() { s.watch(renewing) })
	sources.Go(func() { s.read(ctx) })
	sources.Go(func() { s.sweep(ctx) })
	sources.Wait()

	s.handBack(after, slices.DeleteFunc(s.owned.all(), func(e *entry) bool { return !e.isLeft() }))
	s.drain()
	defer time.AfterFunc(flushTimeout, giveUp).Stop()
	stopRenewing()
	books.Wait()
	s.handBack(flushing, s.owned.all())
	if err := leaveScript.Run(flushing, s.commands, []string{s.stream}, s.group, s.consumer).Err(); err != nil {
		s.log.WarnContext(after, "consumer name stays behind", "error", err)
	}
	close(s.out)
}

// drain waits for running handlers, then cancels them, then lets go of them. It
// returns when no entry is worked on. The sources have ended before.
func (s *subscription) drain() {
	quiet := s.roster.quiet()
	if !within(quiet, s.timing.Drain) {
		for _, e := range s.owned.all() {
			e.interrupt(errStopping, false)
		}
		within(quiet, cancelGrace)
	}
	s.roster.dismiss()
}

func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
