package events

import (
	"sync"
	"time"
)

// roster is how many entries are worked on, and which are done and wait to be
// acknowledged. A handler reports to it when it returns, so that nobody need wait
// for each.
type roster struct {
	mu      sync.Mutex
	busy    int // entries that a handler, or a goroutine of reviving, has
	done    []*entry
	closed  bool          // nobody is waited for any more; what comes late is not heard
	idle    chan struct{} // closed when busy falls to 0; nil while nobody waits for that
	closing chan struct{}
	// some and full hold a token when there is something done, and a whole batch.
	some, full chan struct{}
	reviving   sync.WaitGroup
}

func newRoster() *roster {
	return &roster{closing: make(chan struct{}), some: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// begin notes that n entries more are worked on.
func (r *roster) begin(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy += n
}

// finish takes an entry that is done. Its place is free at once, unless more than
// a batch waits already: then it is free when the entry is acknowledged, so that a
// Redis which does not answer ends the reading too.
func (r *roster) finish(e *entry) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.done = append(r.done, e)
	waiting := len(r.done)
	var free *lane
	if waiting <= ackBatch {
		free, e.in = e.in, nil
	}
	switch waiting { // under the lock, so that no token is left of what has been collected
	case 1:
		put(r.some)
	case ackBatch:
		put(r.full)
	}
	r.restLocked()
	r.mu.Unlock()
	if free != nil {
		free.leave(1)
	}
}

// rest notes that an entry is worked on no more.
func (r *roster) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restLocked()
}

func (r *roster) restLocked() {
	if r.busy--; r.busy == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// revive works on an entry that a handler does not have, unless nobody waits any more.
func (r *roster) revive(work func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.reviving.Go(work)
	}
}

// quiet is closed when no entry is worked on. Nobody may begin one meanwhile.
func (r *roster) quiet() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	quiet := make(chan struct{})
	if r.busy == 0 {
		close(quiet)
	} else {
		r.idle = quiet
	}
	return quiet
}

// dismiss lets go of handlers that have not returned, and ends collect once
// everything that is done has been collected.
func (r *roster) dismiss() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.reviving.Wait()
	close(r.closing)
}

// collect waits until something is done, and a moment for company. It returns
// nothing when there will be no more.
func (r *roster) collect() []*entry {
	select {
	case <-r.some:
	case <-r.closing:
	}
	timer := time.NewTimer(ackWait)
	defer timer.Stop()
	select {
	case <-r.full:
	case <-timer.C:
	case <-r.closing:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.done
	r.done = make([]*entry, 0, ackBatch)
	select {
	case <-r.full: // of what is collected now
	default:
	}
	return done
}

// put leaves a token where there is none.
func put(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
