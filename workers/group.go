package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// errStopped is returned to a call that comes after its group has stopped; its
// command stays pending and is taken up again.
var errStopped = errors.New("worker is stopping")

// result is one call's own outcome of a shared run.
type result[Out any] struct {
	value Out
	err   error
}

// groupConfig says how far calls are gathered.
type groupConfig struct {
	most    int           // calls of one run
	wait    time.Duration // longest that a call waits for others; 0: not at all
	runners int           // runs at the same time
	timeout time.Duration // of one run
}

// group commits together: concurrent calls of do meet in one run, which costs
// one round trip for all. Each call has its own outcome; only an error of the
// run itself is everybody's. A call that gives up waiting may have had its
// effect all the same, which is why handlers are safe to run twice.
type group[In, Out any] struct {
	config  groupConfig
	size    prometheus.Observer // of runs, in calls
	run     func(context.Context, []In) ([]result[Out], error)
	calls   chan call[In, Out]
	turn    chan struct{} // of gathering; a run that gathers alone is a full one
	stopped chan struct{}
}

type call[In, Out any] struct {
	in   In
	done chan result[Out] // buffered: the run never waits for its callers
}

// groupSizes is how many commands shared a round trip to SQL, by stream.
func groupSizes(reg prometheus.Registerer) *prometheus.HistogramVec {
	sizes := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "foyer", Subsystem: "sql", Name: "group_size", Help: "Commands of one round trip to SQL.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 10),
	}, []string{"stream"})
	if reg == nil {
		return sizes
	}
	err := reg.Register(sizes)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(*prometheus.HistogramVec); ok {
			return existing
		}
	}
	return sizes
}

func newGroup[In, Out any](config groupConfig, size prometheus.Observer, run func(context.Context, []In) ([]result[Out], error)) *group[In, Out] {
	return &group[In, Out]{config: config, size: size, run: run, calls: make(chan call[In, Out]), turn: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// do hands one call in and waits for its outcome.
func (g *group[In, Out]) do(ctx context.Context, in In) (Out, error) {
	mine := call[In, Out]{in: in, done: make(chan result[Out], 1)}
	var none Out
	select {
	case g.calls <- mine:
	case <-g.stopped:
		return none, errStopped
	case <-ctx.Done():
		return none, ctx.Err()
	}
	select {
	case outcome := <-mine.done:
		return outcome.value, outcome.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// serve runs calls until ctx ends, then refuses new ones and returns when the
// last run is over. A run that has begun is not cancelled: its callers wait.
func (g *group[In, Out]) serve(ctx context.Context) {
	var runners sync.WaitGroup
	for range g.config.runners {
		runners.Go(func() {
			for {
				calls := g.gather(ctx)
				if len(calls) == 0 {
					return
				}
				g.finish(ctx, calls)
			}
		})
	}
	<-ctx.Done()
	close(g.stopped)
	runners.Wait()
}

// gather waits for a first call, then takes what is there and what comes within the
// wait.
func (g *group[In, Out]) gather(ctx context.Context) []call[In, Out] {
	select {
	case <-ctx.Done():
		return nil
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	}
	calls := make([]call[In, Out], 0, g.config.most)
	select {
	case <-ctx.Done():
		return nil
	case first := <-g.calls:
		calls = append(calls, first)
	}
	if calls = g.takeWaiting(calls); g.config.wait == 0 {
		return calls
	}
	timer := time.NewTimer(g.config.wait)
	defer timer.Stop()
	for len(calls) < g.config.most {
		select {
		case next := <-g.calls:
			calls = append(calls, next)
		case <-timer.C:
			return calls
		}
	}
	return calls
}

// takeWaiting adds the calls that are there already.
func (g *group[In, Out]) takeWaiting(calls []call[In, Out]) []call[In, Out] {
	for len(calls) < g.config.most {
		select {
		case next := <-g.calls:
			calls = append(calls, next)
		default:
			return calls
		}
	}
	return calls
}

func (g *group[In, Out]) finish(ctx context.Context, calls []call[In, Out]) {
	// A stop must not cut a commit short: its outcome would be unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.timeout)
	defer cancel()
	ins := make([]In, len(calls))
	for i, c := range calls {
		ins[i] = c.in
	}
	g.size.Observe(float64(len(calls)))
	outcomes, err := g.run(ctx, ins)
	for i, c := range calls {
		switch {
		case err != nil:
			c.done <- result[Out]{err: err}
		default:
			c.done <- outcomes[i]
		}
	}
}
