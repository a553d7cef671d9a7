package recovery

import (
	"context"
	"math/rand/v2"
	"time"

	"foyer/domain"
)

const (
	// watchEvery is how often it is asked whether Redis was started again.
	watchEvery = 2 * time.Second
	// compareEvery is how often every show is compared, whatever has happened: a Redis
	// that was reset in place does not tell.
	compareEvery = time.Minute
	// endedShows is how long a show whose sale has ended is still looked after.
	endedShows = time.Hour
)

// Watch rebuilds shows by itself until ctx ends: after Redis was started again or
// another has taken over, and whenever a show's epoch or number of seats sold stays
// different from SQL's. It may run in any number of processes.
func (r *Rebuilder) Watch(ctx context.Context) {
	w := watcher{Rebuilder: r}
	clock := time.NewTicker(watchEvery)
	defer clock.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "comparing redis with sql failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
	}
}

// watcher remembers what one process has seen last.
type watcher struct {
	*Rebuilder
	run      string    // of Redis
	rebuild  time.Time // until when shows are rebuilt without doubting
	next     time.Time
	doubtful map[domain.ShowID]numbers // shows that differed
}

// numbers are a show's on both sides, as of one look.
type numbers struct {
	at              time.Time
	sold, soldInSQL int64
	olderEpoch      bool
}

func (n numbers) differ() bool { return n.olderEpoch || n.sold != n.soldInSQL }

// confirms reports whether a later look says that one side is wrong and not merely
// behind: in the meantime each should have reached what the other had.
func (n numbers) confirms(earlier numbers) bool {
	return n.olderEpoch && earlier.olderEpoch || n.sold < earlier.soldInSQL || n.soldInSQL < earlier.sold
}

func (w *watcher) look(ctx context.Context) error {
	run, err := w.Steps.ServerRun(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	due := now.After(w.next)
	if w.run != "" && run != w.run {
		w.rebuild = now.Add(2 * settling) // what was decided a moment ago is left to its worker at first
		w.Log.InfoContext(ctx, "redis was started again or another has taken over, comparing every show with sql")
	}
	w.run = run
	if restarted := now.Before(w.rebuild); restarted || due || len(w.doubtful) > 0 {
		if err := w.compare(ctx, restarted, due); err != nil {
			return err
		}
	}
	if due {
		w.next = now.Add(compareEvery/2 + rand.N(compareEvery))
	}
	return nil
}

// compare looks at the shows in doubt, or at every one. After a restart it rebuilds
// without doubting: where nothing is wrong that changes nothing.
func (w *watcher) compare(ctx context.Context, restarted, every bool) error {
	shows, err := w.Store.Shows(ctx)
	if err != nil {
		return err
	}
	doubtful := map[domain.ShowID]numbers{}
	for _, show := range shows {
		earlier, doubted := w.doubtful[show.ID]
		if show.ClosesAt != nil && time.Since(*show.ClosesAt) > endedShows || !restarted && !every && !doubted {
			continue
		}
		seen, err := w.numbers(ctx, show)
		if err != nil {
			return err
		}
		switch {
		case restarted || doubted && seen.at.Sub(earlier.at) > settling && seen.confirms(earlier):
			if _, err := w.Rebuild(ctx, show.ID); err != nil {
				return err
			}
		case doubted && seen.at.Sub(earlier.at) <= settling:
			doubtful[show.ID] = earlier
		case seen.differ() && (every || doubted && seen.confirms(earlier)):
			doubtful[show.ID] = seen
		}
	}
	w.doubtful = doubtful
	return nil
}

func (w *watcher) numbers(ctx context.Context, show domain.Show) (numbers, error) {
	stats, err := w.Steps.Stats(ctx, show.ID)
	if err != nil {
		return numbers{}, err
	}
	n := numbers{at: time.Now(), sold: stats[0].Sold, olderEpoch: stats[0].Epoch < show.Epoch}
	n.soldInSQL, err = w.Store.SoldCount(ctx, show.ID)
	return n, err
}
