package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// subscription is one consumer of a group: a reader, a sweeper and one goroutine
// for each entry that it owns.
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
	prepare  func(*receipt, *message.Message) // nil where nothing runs by the receipt
	dying    func(ctx context.Context, msg *message.Message, reason string) error

	out   chan *message.Message
	owned ledger
	acks  chan *entry
	gone  chan struct{} // closed when stopping waits for handlers no longer
	nudge chan struct{} // asks the sweeper to look now
	// Each lane holds a token for every handler running in it. They are apart so
	// that a blocked read, which holds tokens for what it may bring, keeps neither
	// retries nor reclaimed entries waiting, and a storm of one not the other.
	fresh, retries, reclaimed lane
	waiting                   lane // entries between two attempts
	working                   sync.WaitGroup
	hands                     chan job // to goroutines that have nothing to do
	cursor                    string   // where the next sweep goes on; the sweeper's own
}

// lane bounds how many may be in it.
type lane chan struct{}

func (l lane) leave() { <-l }

// enter waits for a place; it reports false when ctx ended first.
func (l lane) enter(ctx context.Context) bool {
	select {
	case l <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// tryEnter takes a place if there is one.
func (l lane) tryEnter() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
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
		out:       make(chan *message.Message),
		owned:     ledger{entries: map[string]*entry{}},
		acks:      make(chan *entry, ackBatch),
		gone:      make(chan struct{}),
		nudge:     make(chan struct{}, 1),
		hands:     make(chan job),
		fresh:     make(lane, limits.InFlight),
		retries:   make(lane, quarter),
		reclaimed: make(lane, quarter),
		waiting:   make(lane, waitingShare*limits.InFlight),
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
	sources.Go(func() { s.read(ctx) })
	sources.Go(func() { s.sweep(ctx) })
	sources.Wait()

	s.handBack(after, slices.DeleteFunc(s.owned.all(), func(e *entry) bool { return !e.isLeft() }))
	s.drain()
	close(s.hands)
	defer time.AfterFunc(flushTimeout, giveUp).Stop()
	close(s.acks)
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
	done := make(chan struct{})
	go func() {
		s.working.Wait()
		close(done)
	}()
	if !within(done, s.timing.Drain) {
		for _, e := range s.owned.all() {
			e.interrupt(errStopping, false)
		}
		within(done, cancelGrace)
	}
	close(s.gone)
	<-done
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

// take starts work on an entry in a lane that the caller has a token of.
func (s *subscription) take(ctx context.Context, e *entry, in lane) {
	if !s.owned.add(e) {
		in.leave() // it runs here already; whoever runs it will acknowledge it
		return
	}
	s.working.Add(1)
	select {
	case s.hands <- job{ctx, e, in}:
	default:
		go s.work(job{ctx, e, in})
	}
}

// job is an entry to be worked on, in a lane that it has a token of.
type job struct {
	ctx context.Context //nolint:containedctx // handed over with the entry it is for
	e   *entry
	in  lane
}

// work does one job after the other until there will be no more. It is worth its
// waiting: a goroutine that is begun for each entry grows its stack each time.
func (s *subscription) work(first job) {
	for next, more := first, true; more; next, more = <-s.hands {
		if s.process(next.ctx, next.e, next.in) {
			next.e.leave()
		}
		s.working.Done()
	}
}

// process tries an entry until it is done with or ctx ends. It reports an entry
// that was not finished; nobody works on it then, and it is handed back.
func (s *subscription) process(ctx context.Context, e *entry, in lane) (unfinished bool) {
	for ctx.Err() == nil {
		if !s.step(ctx, e) {
			in.leave()
			return false
		}
		if !s.waiting.enter(ctx) {
			break
		}
		in.leave()
		in = s.retries
		again := pause(ctx, backoff(s.timing.Retry, e.failures)) == nil
		s.waiting.leave()
		if !again || !in.enter(ctx) {
			return true
		}
	}
	in.leave()
	return true
}

// step tries an entry once and reports whether it must be tried again.
func (s *subscription) step(ctx context.Context, e *entry) (again bool) {
	if e.reason == "" {
		if counted, again := s.count(ctx, e); !counted {
			return again
		}
		if s.try(ctx, e) {
			return false
		}
	}
	return e.reason == "" || s.bury(ctx, e)
}

// count writes a further attempt's number to Redis before the attempt is made,
// so that an attempt which ends the process counts. Without it there is none.
func (s *subscription) count(ctx context.Context, e *entry) (counted, again bool) {
	if !e.uncounted {
		return true, false
	}
	owned, err := s.own(ctx, 0, []*entry{e}, true)
	switch {
	case err != nil:
		e.failures++
		return false, true // Redis is in trouble; the delay grows
	case owned[0] == entryAnother:
		s.forget(e)
		return false, false
	}
	e.uncounted = false
	s.metrics.retried.WithLabelValues(s.stream).Inc()
	return true, false
}

// forget drops an entry that has become another consumer's.
func (s *subscription) forget(e *entry) {
	s.metrics.lost.WithLabelValues(s.stream).Inc()
	s.owned.remove(e)
}

// try runs the handler once. It reports true when the entry needs nothing more
// from this consumer; otherwise the entry has failed, perhaps for good.
func (s *subscription) try(ctx context.Context, e *entry) (done bool) {
	err := s.attempt(ctx, e)
	switch {
	case err == nil: // also when the entry is another's by now: what is done need not be done again
		select {
		case s.acks <- e:
		case <-s.gone:
		}
		return true
	case errors.Is(err, errGone):
		return true
	case e.isLost():
		s.forget(e)
		return true
	}
	e.reason = s.givenUp(e, err)
	s.log.WarnContext(ctx, "command failed", "command_id", e.commandID(), "entry_id", e.id,
		"attempt", e.attempt, "given_up", e.reason, "error", err)
	e.failed(err, e.reason == "")
	return false
}

// attempt gives the entry to the router and waits for the verdict.
func (s *subscription) attempt(ctx context.Context, e *entry) error {
	// Stopping must not end the handler's context: it has the drain to finish in.
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	began := time.Now()
	defer time.AfterFunc(s.limits.Timeout, func() { cancel(errHandlerTimeout) }).Stop()
	msg, r := newReceipt(running, began.Add(s.limits.Timeout), e)
	if s.prepare != nil {
		s.prepare(r, msg)
	}
	e.begin(cancel)
	defer e.end()
	s.counts.inFlight.Inc()
	defer func() {
		s.counts.inFlight.Dec()
		s.counts.handled.Observe(time.Since(began).Seconds())
	}()
	select {
	case s.out <- msg:
	case <-s.gone:
		return errGone
	}
	select {
	case <-msg.Acked():
		return nil
	case <-msg.Nacked():
		if running.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(running), cmp.Or(r.err, errNacked))
		}
		return cmp.Or(r.err, errNacked)
	case <-s.gone:
		return errGone
	}
}

// givenUp says why an entry that failed is not tried again, or nothing.
func (s *subscription) givenUp(e *entry, err error) string {
	var refused refusedError
	var permanent permanentError
	var unavailable unavailableError
	switch {
	case errors.As(err, &refused):
		return refused.reason
	case errors.As(err, &permanent):
		return DeadPermanent
	case errors.As(err, &unavailable), errors.Is(err, errStopping):
		return ""
	case e.attempt >= s.limits.Deliveries:
		return DeadExhausted
	}
	return ""
}
