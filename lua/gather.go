package lua

import (
	"context"
	"errors"
	"slices"
	"sync"

	"foyer/domain"
)

// gatherer lets calls that come while one is under way travel together: one script
// serves some hundred joins in little more time than one. There is no timer and no
// goroutine of its own. A caller who finds nobody at it goes at once with itself
// alone; who comes meanwhile waits, and the first of those leads the next batch.
type gatherer[In, Out any] struct {
	limit int // most calls in one batch
	run   func(ctx context.Context, show domain.ShowID, in []In) ([]outcome[Out], error)

	mu    sync.Mutex
	lines map[domain.ShowID]*line[In, Out]
}

type outcome[Out any] struct {
	value Out
	err   error
}

// line is the calls for one show that wait for the batch under way to end.
type line[In, Out any] struct{ waiting []*ticket[In, Out] }

type ticket[In, Out any] struct {
	in   In
	done chan outcome[Out] // the answer; room for one, so nobody waits to give it
	lead chan struct{}     // closed when it is this caller's duty to run the next batch
}

var errBatchFailed = errors.New("the batch that carried this call failed")

func newGatherer[In, Out any](limit int, run func(context.Context, domain.ShowID, []In) ([]outcome[Out], error)) *gatherer[In, Out] {
	return &gatherer[In, Out]{limit: limit, run: run, lines: map[domain.ShowID]*line[In, Out]{}}
}

// do answers one call. A caller who gives up may still have its call run.
func (g *gatherer[In, Out]) do(ctx context.Context, show domain.ShowID, in In) (Out, error) {
	t := &ticket[In, Out]{in: in, done: make(chan outcome[Out], 1), lead: make(chan struct{})}
	g.mu.Lock()
	l, busy := g.lines[show]
	if !busy {
		l = &line[In, Out]{}
		g.lines[show] = l
		close(t.lead)
	}
	l.waiting = append(l.waiting, t)
	g.mu.Unlock()

	select {
	case o := <-t.done:
		return o.value, o.err
	case <-t.lead:
		g.lead(ctx, show, l)
		o := <-t.done
		return o.value, o.err
	case <-ctx.Done():
		g.abandon(show, l, t)
		var none Out
		return none, ctx.Err()
	}
}

// lead runs one batch, of which the leader is the first, and passes the duty on.
func (g *gatherer[In, Out]) lead(ctx context.Context, show domain.ShowID, l *line[In, Out]) {
	g.mu.Lock()
	n := min(g.limit, len(l.waiting))
	batch := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	g.mu.Unlock()

	in := make([]In, n)
	for i, t := range batch {
		in[i] = t.in
	}
	outcomes, err := []outcome[Out](nil), errBatchFailed
	// Deferred, so that even a panic leaves nobody waiting and the line moving.
	defer func() {
		for i, t := range batch {
			o := outcome[Out]{err: err}
			if err == nil {
				o = outcomes[i]
			}
			t.done <- o
		}
		g.mu.Lock()
		g.passOn(show, l)
		g.mu.Unlock()
	}()
	// The others must not fail because the leader's caller hung up.
	outcomes, err = g.run(context.WithoutCancel(ctx), show, in)
}

// passOn makes the first who waits the leader; the caller has the lock.
func (g *gatherer[In, Out]) passOn(show domain.ShowID, l *line[In, Out]) {
	if len(l.waiting) == 0 {
		delete(g.lines, show)
		return
	}
	close(l.waiting[0].lead)
}

// abandon takes a caller out of the line. If the duty to lead had just come to it,
// the duty goes to the next.
func (g *gatherer[In, Out]) abandon(show domain.ShowID, l *line[In, Out], t *ticket[In, Out]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(l.waiting, t)
	if at < 0 {
		return // on its way already
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	select {
	case <-t.lead:
		g.passOn(show, l)
	default:
	}
}
