package workers

import (
	"context"
	"log/slog"
	"time"

	"foyer/domain"
	"foyer/events"
)

const (
	// holdSweep bounds the lapsed holds that one call frees.
	holdSweep = 500
	// maxHoldSweeps bounds the calls of one tick; the rest waits for the next.
	maxHoldSweeps = 20
	// closedShowsTick is how long a closed show goes on ticking, so that its last
	// sessions and holds are swept.
	closedShowsTick = time.Hour
)

// ticker asks for the admission tick of every show that is on sale. It runs in
// every worker process; Redis lets one of them through per show and interval, so
// that the rate is the same however many there are, and the end of any of them
// delays no tick by more than one interval.
type ticker struct {
	every    time.Duration
	steps    Steps
	store    Store
	commands Commands
	notify   Notifier
	log      *slog.Logger
	lapses   lapses
}

// run ticks until ctx ends, and between ticks passes on what lapses. A failing tick is logged and tried again at the next
// interval: it is only the backstop of what freed slots do at once.
func (t *ticker) run(ctx context.Context) {
	clock := time.NewTicker(t.every)
	defer clock.Stop()
	for {
		if err := t.tick(ctx); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "tick failed", "error", err)
		}
		if !t.passOnUntil(ctx, clock.C) {
			return
		}
	}
}

func (t *ticker) tick(ctx context.Context) error {
	shows, err := t.store.Shows(ctx)
	if err != nil {
		return err
	}
	for _, show := range shows {
		if ctx.Err() != nil {
			return nil
		}
		if show.ClosesAt != nil && time.Since(*show.ClosesAt) > closedShowsTick {
			continue
		}
		if err := t.tickShow(ctx, show.ID); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "tick of a show failed", "show_id", show.ID, "error", err)
		}
	}
	return nil
}

func (t *ticker) tickShow(ctx context.Context, show domain.ShowID) error {
	due, err := t.steps.DueTick(ctx, show, t.every)
	if err != nil || !due {
		return err
	}
	if err := t.sweepHolds(ctx, show); err != nil {
		return err
	}
	if err := t.commands.AdmitShow(ctx, events.AdmitShow{ShowID: show, Reason: events.ReasonTick, Tick: t.every}); err != nil {
		return err
	}
	return t.expectLapse(ctx, show)
}

// sweepHolds takes lapsed holds away and tells the seats. Nothing waits for it:
// a lapsed hold counts as free from its deadline on, wherever it is judged.
func (t *ticker) sweepHolds(ctx context.Context, show domain.ShowID) error {
	var freed []domain.SeatID
	more := true
	for round := 0; more && round < maxHoldSweeps; round++ {
		seats, _, again, err := t.steps.SweepHolds(ctx, show, holdSweep)
		if err != nil {
			return err
		}
		freed, more = append(freed, seats...), again
	}
	if len(freed) == 0 {
		return nil
	}
	stats, err := t.steps.Stats(ctx, show)
	if err != nil {
		return err
	}
	return publish(ctx, t.notify, []events.Notification{seatsFreed(stats[0], freed)})
}
