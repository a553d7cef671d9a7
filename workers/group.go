package workers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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
	config groupConfig
	size   prometheus.Observer // of runs, in calls
	run    func(context.Context, []In) ([]result[Out], error)
	turn   chan struct{} // of gathering; a run that gathers alone is a full one

	mu      sync.Mutex
	waiting []*call[In, Out] // for a run, in the order that they came
	stopped bool
	// some and full hold a token while calls wait, and while as many wait as a run takes.
	some, full chan struct{}
}

type call[In, Out any] struct {
	in   In
	done chan result[Out] // buffered: the run never waits for its callers
	gone atomic.Bool      // its caller does not wait any more
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
	return &group[In, Out]{
		config: config, size: size, run: run,
		turn: make(chan struct{}, 1), some: make(chan struct{}, 1), full: make(chan struct{}, 1),
	}
}

// do hands one call in and waits for its outcome.
func (g *group[In, Out]) do(ctx context.Context, in In) (Out, error) {
	mine := &call[In, Out]{in: in, done: make(chan result[Out], 1)}
	var none Out
	if !g.enter(mine) {
		return none, errStopped
	}
	select {
	case outcome := <-mine.done:
		return outcome.value, outcome.err
	case <-ctx.Done():
		mine.gone.Store(true)
		return none, ctx.Err()
	}
}

// enter adds a call to those that wait; false when there will be no more runs.
func (g *group[In, Out]) enter(c *call[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	g.waiting = append(g.waiting, c)
	g.tell()
	return true
}

// tell makes the tokens true. The caller has the lock.
func (g *group[In, Out]) tell() {
	hold(g.some, len(g.waiting) > 0)
	hold(g.full, len(g.waiting) >= g.config.most)
}

// hold has a channel hold a token, or none.
func hold(token chan struct{}, wanted bool) {
	if wanted {
		select {
		case token <- struct{}{}:
		default:
		}
		return
	}
	select {
	case <-token:
	default:
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
	g.stop()
	runners.Wait()
}

// stop answers whoever waits still, and refuses whoever comes.
func (g *group[In, Out]) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	for _, c := range g.waiting {
		c.done <- result[Out]{err: errStopped}
	}
	g.waiting = nil
}

// gather waits for a first call, then takes what is there and what comes within the
// wait. It returns nothing when ctx has ended.
func (g *group[In, Out]) gather(ctx context.Context) []*call[In, Out] {
	select {
	case <-ctx.Done():
		return nil
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.some:
		}
		if g.config.wait > 0 {
			g.await(ctx)
		}
		if calls := g.take(); len(calls) > 0 {
			return calls
		}
	}
}

// await waits until a run is full, or as long as its first call may wait for others.
func (g *group[In, Out]) await(ctx context.Context) {
	timer := time.NewTimer(g.config.wait)
	defer timer.Stop()
	select {
	case <-g.full:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// take takes the calls of one run, leaving out those that nobody waits for.
func (g *group[In, Out]) take() []*call[In, Out] {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := make([]*call[In, Out], 0, min(len(g.waiting), g.config.most))
	taken := 0
	for ; taken < len(g.waiting) && len(calls) < g.config.most; taken++ {
		if c := g.waiting[taken]; !c.gone.Load() {
			calls = append(calls, c)
		}
	}
	g.waiting = slices.Delete(g.waiting, 0, taken)
	g.tell()
	return calls
}

func (g *group[In, Out]) finish(ctx context.Context, calls []*call[In, Out]) {
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
