package events

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many want in, no more are in at once than there are places, and all of
// them get in.
func TestLaneIsNeverTooFull(t *testing.T) {
	t.Parallel()
	const size, wanting, rounds = 3, 16, 500
	l := newLane(size)
	var in, most atomic.Int64
	var all sync.WaitGroup
	for n := range wanting {
		all.Go(func() {
			for range rounds {
				places := l.enter(t.Context(), 1+n%3)
				now := in.Add(int64(places))
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				in.Add(-int64(places))
				l.leave(places)
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, most.Load(), int64(size))
	require.Equal(t, size, l.free())
}

// One who stops waiting does not take the place with it that came free for it.
func TestWhoStopsWaitingPassesThePlaceOn(t *testing.T) {
	t.Parallel()
	for range 200 {
		l := newLane(1)
		require.Equal(t, 1, l.take(5))
		require.Zero(t, l.take(1))
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { l.leave(l.enter(ctx, 1)) })
		waiting.Go(func() { l.leave(l.enter(t.Context(), 1)) })
		waiting.Go(cancel)
		l.leave(1)
		waiting.Wait()
		require.Equal(t, 1, l.free())
	}
}
