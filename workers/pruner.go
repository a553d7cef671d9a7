package workers

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	// pruneEvery is about how often each worker process looks for what may be forgotten.
	pruneEvery = time.Hour
	// pruneBatch bounds the rows of one transaction, and prunePause leaves room for
	// others between two.
	pruneBatch = 1000
	prunePause = 100 * time.Millisecond
)

// pruner forgets commands that had their effect so long ago that they cannot come back.
// It runs in every worker process; several at once share the work.
type pruner struct {
	keep  time.Duration // 0: for ever
	store Store
	log   *slog.Logger
}

func (p *pruner) run(ctx context.Context) {
	if p.keep == 0 {
		return
	}
	for {
		clock := time.NewTimer(pruneEvery/2 + rand.N(pruneEvery))
		select {
		case <-ctx.Done():
			clock.Stop()
			return
		case <-clock.C:
		}
		forgotten, err := p.prune(ctx, pruneBatch, prunePause)
		switch {
		case err != nil && ctx.Err() == nil:
			p.log.WarnContext(ctx, "forgetting old commands failed", "error", err)
		case forgotten > 0:
			p.log.InfoContext(ctx, "old commands forgotten", "count", forgotten)
		}
	}
}

// prune forgets batch after batch until none is full.
func (p *pruner) prune(ctx context.Context, batch int, wait time.Duration) (forgotten int, err error) {
	for {
		n, err := p.store.ForgetHandled(ctx, p.keep, batch)
		forgotten += n
		if err != nil || n < batch {
			return forgotten, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return forgotten, nil
		case <-timer.C:
		}
	}
}
