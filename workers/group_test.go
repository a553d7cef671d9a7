package workers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

func serveGroup[In, Out any](t *testing.T, g *group[In, Out]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); g.serve(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

var testGroup = groupConfig{most: 8, wait: 20 * time.Millisecond, runners: 2, timeout: time.Second}

func TestGroupSharesRunsAndKeepsOutcomesApart(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	var mu sync.Mutex
	runs := 0
	g := newGroup(testGroup, groupSizes(nil).WithLabelValues("test"), func(_ context.Context, ins []int) ([]result[int], error) {
		mu.Lock()
		runs++
		mu.Unlock()
		require.LessOrEqual(t, len(ins), testGroup.most)
		outs := make([]result[int], len(ins))
		for i, in := range ins {
			if outs[i].value = in * 10; in%2 == 1 {
				outs[i].err = odd
			}
		}
		return outs, nil
	})
	serveGroup(t, g)
	var callers sync.WaitGroup
	for in := range 200 {
		callers.Go(func() {
			out, err := g.do(t.Context(), in)
			if in%2 == 1 {
				require.ErrorIs(t, err, odd, "one bad command fails alone")
				return
			}
			require.NoError(t, err)
			require.Equal(t, in*10, out)
		})
	}
	callers.Wait()
	require.Less(t, runs, 100, "calls met in runs")
}

func TestGroupErrorOfTheRunIsEverybodys(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	g := newGroup(testGroup, groupSizes(nil).WithLabelValues("test"), func(context.Context, []int) ([]result[int], error) { return nil, down })
	serveGroup(t, g)
	_, err := g.do(t.Context(), 1)
	require.ErrorIs(t, err, down)
}

// A deploy must not cut a commit short: the run that has begun ends, its caller
// hears the outcome, and only calls that come later are refused.
func TestGroupFinishesWhatHasBegunWhenItStops(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	g := newGroup(testGroup, groupSizes(nil).WithLabelValues("test"), func(ctx context.Context, ins []int) ([]result[int], error) {
		close(begun)
		<-release
		return make([]result[int], len(ins)), ctx.Err()
	})
	stop := serveGroup(t, g)
	first := make(chan error, 1)
	go func() { _, err := g.do(t.Context(), 1); first <- err }()
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	testenv.Eventually(t, 5*time.Second, "new calls are refused", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.stopped
	})
	_, err := g.do(t.Context(), 2)
	require.ErrorIs(t, err, errStopped)
	close(release)
	require.NoError(t, <-first)
	<-stopped
}

func TestGroupCallerMayGiveUp(t *testing.T) {
	t.Parallel()
	g := newGroup(testGroup, groupSizes(nil).WithLabelValues("test"), func(_ context.Context, ins []int) ([]result[int], error) { return make([]result[int], len(ins)), nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.do(ctx, 1)
	require.ErrorIs(t, err, context.Canceled, "nobody serves, and the caller has left")
}

func TestGroupLeavesOutWhoHasGone(t *testing.T) {
	t.Parallel()
	var ran []int
	g := newGroup(testGroup, groupSizes(nil).WithLabelValues("test"), func(_ context.Context, ins []int) ([]result[int], error) {
		ran = append(ran, ins...)
		return make([]result[int], len(ins)), nil
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	for in := range 2 * testGroup.most { // more than a run takes
		_, err := g.do(gone, in)
		require.ErrorIs(t, err, context.Canceled)
	}
	stop := serveGroup(t, g)
	_, err := g.do(t.Context(), -1)
	require.NoError(t, err)
	stop()
	require.Equal(t, []int{-1}, ran)
}

func TestGroupAnswersWhoWaitsWhenItStops(t *testing.T) {
	t.Parallel()
	config := testGroup
	config.runners = 0 // nobody takes what waits
	g := newGroup(config, groupSizes(nil).WithLabelValues("test"), func(context.Context, []int) ([]result[int], error) { return nil, nil })
	waits := make(chan error, 1)
	go func() { _, err := g.do(t.Context(), 1); waits <- err }()
	testenv.Eventually(t, 5*time.Second, "the call waits", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.waiting) == 1
	})
	serveGroup(t, g)()
	require.ErrorIs(t, <-waits, errStopped)
}
