package events

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// While acknowledgements cannot be written, what is done keeps its place once a
// batch waits, so that reading stops: nothing grows without a bound.
func TestUnacknowledgedEntriesKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	const size = ackBatch + 10
	r, l := newRoster(), newLane(size)
	finish := func() int {
		n := l.take(size)
		r.begin(n)
		for range n {
			r.finish(&entry{in: l})
		}
		return n
	}
	total := 0
	for n := finish(); n > 0; n = finish() {
		total += n
	}
	require.Equal(t, size+ackBatch, total)
	done := r.collect()
	require.Len(t, done, total)
	require.Zero(t, l.free(), "they are collected, and not yet acknowledged")
	for _, e := range done {
		e.depart()
	}
	require.Equal(t, size, l.free())
	require.True(t, isClosed(r.quiet()))
}

// What comes when nobody waits any more is not heard, and what was done before is
// still collected.
func TestDismissedHandlersAreNotHeard(t *testing.T) {
	t.Parallel()
	r := newRoster()
	r.begin(3)
	r.finish(&entry{id: "in time"})
	quiet := r.quiet()
	revived := make(chan struct{})
	r.revive(func() {
		r.rest()
		close(revived)
	})
	<-revived
	require.False(t, isClosed(quiet))
	r.dismiss()
	r.finish(&entry{id: "late"})
	r.revive(func() { t.Error("nobody may begin any more") })
	done := r.collect()
	require.Len(t, done, 1)
	require.Equal(t, "in time", done[0].id)
	require.Empty(t, r.collect())
}

// A handler that ends its goroutine, as a failed assertion does, has neither
// returned nor panicked. It counts as failed.
func TestHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book(1)
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		if d.Attempt < 5 {
			runtime.Goexit()
		}
		return errEnded
	}})
	w.eventually("it is dead", func() bool { return len(w.letters()) == 1 })
	require.Equal(t, errEnded.Error(), w.letters()[0].FirstError)
	w.settled()
}
