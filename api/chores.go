package api

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// chore is a reading that a notification asks for. Notifications are routed
// without waiting for anything, so what needs Redis or SQL is done afterwards.
type chore struct {
	kind choreKind
	id   string // of the show or chat room
}

type choreKind uint8

const (
	choreShow   choreKind = iota // tell a show and its numbers as they are now
	chorePlaces                  // read places that are in doubt again
	choreSeats                   // fill a gap in a show's seat deltas
	choreRoom                    // tell a chat room's newest messages
)

func (k choreKind) String() string {
	return [...]string{"show", "places", "seats", "room"}[k]
}

// choresAtOnce bounds the readings that run at the same time.
const choresAtOnce = 8

// chores is the set of chores to do, each with when it is due. A chore that is
// asked for again before it began is done once; one that is asked for while it
// runs is done again.
type chores struct {
	mu   sync.Mutex
	due  map[chore]time.Time
	wake chan struct{} // holds one token after a change
}

// add asks for a chore after a delay; the earlier of two delays counts.
func (cs *chores) add(c chore, delay time.Duration) {
	at := time.Now().Add(delay)
	cs.mu.Lock()
	if cs.due == nil {
		cs.due = map[chore]time.Time{}
	}
	if known, ok := cs.due[c]; !ok || at.Before(known) {
		cs.due[c] = at
	}
	cs.mu.Unlock()
	select {
	case cs.wake <- struct{}{}:
	default:
	}
}

// take removes what is due and tells how long until the next one is.
func (cs *chores) take(now time.Time) (due []chore, next time.Duration) {
	const idle = time.Hour
	next = idle
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c, at := range cs.due {
		if wait := at.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		due = append(due, c)
		delete(cs.due, c)
	}
	return due, next
}

// choresLoop does what is due, a few at a time, until ctx ends.
func (h *Hub) choresLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.chores.wake:
		}
		due, next := h.chores.take(time.Now())
		var group errgroup.Group
		group.SetLimit(choresAtOnce)
		for _, c := range due {
			group.Go(func() error {
				h.do(ctx, c)
				return nil
			})
		}
		_ = group.Wait() // the chores log for themselves
		if len(due) > 0 {
			next = 0 // some may have become due meanwhile
		}
		timer.Reset(next)
	}
}

// choreRetry is when a chore that failed is tried again.
const choreRetry = time.Second

// do runs a chore; one that fails is tried again until it succeeds, since nobody
// else will tell what was missed.
func (h *Hub) do(ctx context.Context, c chore) {
	ctx, cancel := context.WithTimeout(ctx, h.config.snapshotTime)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			h.metrics.panics.Inc()
			h.deps.log.ErrorContext(ctx, "chore panicked", "chore", c.kind.String(), "panic", value)
		}
	}()
	h.metrics.resynced(c.kind)
	if err := h.run(ctx, c); err != nil {
		h.metrics.unreadable(c.kind.String())
		h.deps.log.WarnContext(ctx, "state could not be read again, trying later", "chore", c.kind.String(), "error", err)
		h.chores.add(c, choreRetry)
	}
}
