package api

import (
	"context"
	"sync"
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

// wait returns when everything has run. Nothing may be added any more.
func (a *afterwards) wait() { a.running.Wait() }
