package events

import (
	"context"
	"runtime"
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
				runtime.Gosched() // so that others find it full
				in.Add(-int64(places))
				l.leave(places)
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, most.Load(), int64(size))
	require.Equal(t, size, l.free())
}

// Places that come free together wake all who wait for them, and one who stops waiting
// takes none along.
func TestPlacesThatComeFreeTogetherWakeAll(t *testing.T) {
	t.Parallel()
	for range 100 {
		const size = 3
		l := newLane(size)
		require.Equal(t, size, l.take(5))
		require.Zero(t, l.take(1))
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { l.enter(ctx, 1) })
		for range size - 1 {
			waiting.Go(func() { l.enter(t.Context(), 1) })
		}
		for waits := 0; waits < size; runtime.Gosched() {
			l.mu.Lock()
			waits = l.waiting
			l.mu.Unlock()
		}
		go cancel()
		l.leave(size)
		waiting.Wait()
		require.LessOrEqual(t, l.free(), 1)
	}
}
