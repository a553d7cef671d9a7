package api

import (
	"context"
	"sync"
	"time"
)

// afterwards runs what an answer does not wait for. It is bounded, and its owner
// waits for all of it before going away.
type afterwards struct {
	running sync.WaitGroup
	slots   chan struct{}
}

func newAfterwards(most int) *afterwards { return &afterwards{slots: make(chan struct{}, most)} }

// do runs a task behind the answer, or before it when too many run already: a
// crowd is slowed down then, and nothing is lost. The task outlives the request.
func (a *afterwards) do(ctx context.Context, task func(context.Context)) {
	bounded := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwardsTime)
		defer cancel()
		task(ctx)
	}
	select {
	case a.slots <- struct{}{}:
		a.running.Go(func() {
			defer func() { <-a.slots }()
			bounded()
		})
	default:
		bounded()
	}
}

// goFor runs a task beside everything else, for at most as long as is said. It must be
// one of few: its caller sees to that.
func (a *afterwards) goFor(ctx context.Context, most time.Duration, task func(context.Context)) {
	a.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		defer cancel()
		task(ctx)
	})
}

// wait returns when everything has run. Nothing may be added any more.
func (a *afterwards) wait() { a.running.Wait() }
