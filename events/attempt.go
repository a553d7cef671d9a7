package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// take begins to work on entries, each of which has a place in a lane.
func (s *subscription) take(ctx context.Context, entries []*entry, in *lane) {
	places := len(entries)
	entries = s.owned.add(entries)
	in.leave(places - len(entries)) // those run here already; whoever runs them will acknowledge them
	now := time.Now()
	s.roster.begin(len(entries))
	for _, e := range entries {
		e.in = in
		switch {
		case ctx.Err() != nil:
			s.abandon(e)
		case e.reason != "":
			s.roster.revive(func() { s.revive(ctx, e) })
		default:
			s.start(ctx, e, now)
		}
	}
}

// start gives an entry to the router, which runs handle on it.
func (s *subscription) start(ctx context.Context, e *entry, now time.Time) {
	r := s.newReceipt(ctx, e, now)
	s.prepare(r)
	e.begin(r, now)
	s.out <- &r.msg
}

// handle is the router's handler of every message. It reports what came of the
// attempt before it returns; the router's own verdict, which it gives afterwards,
// is waited for by nobody.
func handle(msg *message.Message) error { return receiptOf(msg.Context()).handle() }

func (r *receipt) handle() (err error) {
	began, returned := time.Now(), false
	r.sub.counts.waited.Observe(began.Sub(r.sent).Seconds())
	r.sub.counts.inFlight.Inc()
	defer func() {
		if !returned {
			err = panicked(recover())
		}
		r.sub.settle(r, began, err)
	}()
	err = r.run(r)
	returned = true
	return err
}

// settle deals with what came of an attempt.
func (s *subscription) settle(r *receipt, began time.Time, err error) {
	s.counts.inFlight.Dec()
	s.counts.handled.Observe(time.Since(began).Seconds())
	cause := r.ended()
	r.end(context.Canceled) // what a handler has left behind ends too
	lost := r.entry.end()
	switch {
	case err == nil: // also when the entry is another's by now: what is done need not be done again
		s.roster.finish(r.entry)
	case lost:
		s.forget(r.entry)
		s.let(r.entry)
	case cause != nil:
		s.failed(r, fmt.Errorf("%w: %w", cause, err))
	default:
		s.failed(r, err)
	}
}

// failed has an entry tried again or buried.
func (s *subscription) failed(r *receipt, err error) {
	e := r.entry
	e.reason = s.givenUp(e, err)
	s.log.WarnContext(r.within, "command failed", "command_id", e.commandID(), "entry_id", e.id,
		"attempt", e.attempt, "given_up", e.reason, "error", err)
	e.failed(err, e.reason == "")
	s.roster.revive(func() { s.revive(r.within, e) })
}

// revive buries an entry that is given up, and starts any other again after its
// delay. Either is tried until it is done or ctx ends; then the entry is handed back.
func (s *subscription) revive(ctx context.Context, e *entry) {
	for {
		if e.reason != "" && !s.bury(ctx, e) {
			s.let(e)
			return
		}
		if !s.wait(ctx, e) {
			s.abandon(e)
			return
		}
		if e.reason != "" {
			continue
		}
		counted, again := s.count(ctx, e)
		if counted {
			s.start(ctx, e, time.Now())
			return
		}
		if !again {
			s.let(e)
			return
		}
	}
}

// wait waits until an entry may be tried again, and for a place among those that
// are. It reports false when ctx ended first.
func (s *subscription) wait(ctx context.Context, e *entry) bool {
	if ctx.Err() != nil || s.waiting.enter(ctx, 1) == 0 {
		return false
	}
	e.depart()
	err := pause(ctx, backoff(s.timing.Retry, e.failures))
	s.waiting.leave(1)
	if err != nil || s.retries.enter(ctx, 1) == 0 {
		return false
	}
	e.in = s.retries
	return true
}

// let ends the work on an entry that needs no more of it here.
func (s *subscription) let(e *entry) {
	e.depart()
	s.roster.rest()
}

// abandon ends the work on an entry that is not done, to be handed back.
func (s *subscription) abandon(e *entry) {
	e.leave()
	s.let(e)
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
