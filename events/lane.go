package events

import (
	"context"
	"sync"
)

// lane bounds how many may be in it. It is no channel because leaving it is the
// deepest that a handler's goroutine gets, and a channel's depth would grow the
// stack of each.
type lane struct {
	size int

	mu      sync.Mutex
	used    int
	waiting int           // who wait for a place
	freed   chan struct{} // holds a token when one of them may look again
}

func newLane(size int) *lane { return &lane{size: size, freed: make(chan struct{}, 1)} }

// enter takes a place, or as many as there are up to most, waiting for the first.
// It returns how many: 0 when ctx ended before there was one.
func (l *lane) enter(ctx context.Context, most int) int {
	if taken := l.take(most); taken > 0 {
		return taken
	}
	l.wait(1)
	defer l.wait(-1)
	for {
		if taken := l.take(most); taken > 0 {
			return taken
		}
		select {
		case <-l.freed:
		case <-ctx.Done():
			return 0
		}
	}
}

// wait notes one more, or one less, who waits. Who goes wakes the next where there
// are places left: several that come free together leave one token.
func (l *lane) wait(change int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting += change
	l.tell()
}

// take takes what places there are, up to most, without waiting for any.
func (l *lane) take(most int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := min(most, l.size-l.used)
	l.used += taken
	return taken
}

// leave gives n places back.
func (l *lane) leave(n int) {
	l.mu.Lock()
	l.used -= n
	l.tell()
	l.mu.Unlock()
}

// tell wakes one who waits where there is a place. The caller has the lock.
func (l *lane) tell() {
	if l.waiting > 0 && l.used < l.size {
		put(l.freed)
	}
}

// free is how many places there are.
func (l *lane) free() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size - l.used
}
