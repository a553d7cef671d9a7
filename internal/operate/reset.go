package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"foyer/domain"
	"foyer/events"
)

// Reset ends every place of a show and begins a new epoch. Seats sold stay sold; baskets
// run out by themselves; passes of before count no more. A draw whose seed is known gets
// a new one. change may set when the show opens again.
//
// SQL begins the epoch, then Redis takes over when the show opens, then one step in Redis
// ends all places. When it dies on the way, Resume does the rest: the action is written
// down as not done.
func (d *Desk) Reset(ctx context.Context, who domain.PersonID, id domain.ShowID, detail any, change func(*domain.Show) error) (domain.Show, error) {
	action := newAction(who, id, domain.ActionReset, detail)
	show, err := d.Store.ResetShow(ctx, action, func(show *domain.Show) error {
		if !time.Now().Before(show.DrawClosesAt()) {
			show.DrawSeed = domain.NewDrawSeed()
		}
		return change(show)
	})
	if err != nil {
		return domain.Show{}, err
	}
	return show, d.endPlaces(ctx, show, show.Epoch, action)
}

// endPlaces does the half of a reset that is Redis's. It is safe to repeat. Places of a
// later epoch are left alone. The times come first: between the two steps whoever joins
// has a place that ends, and not one of the new epoch by the times of the old, which
// would let them in before the draw.
func (d *Desk) endPlaces(ctx context.Context, show domain.Show, epoch int64, action domain.OperatorAction) error {
	if err := d.Steps.Configure(ctx, show); err != nil {
		return fmt.Errorf("configure show %s: %w", show.ID, err)
	}
	ended, done, err := d.Steps.Reset(ctx, show.ID, epoch)
	if err != nil {
		return fmt.Errorf("end the places of show %s: %w", show.ID, err)
	}
	d.announce(ctx, show)
	stats, err := d.Steps.Stats(ctx, show.ID)
	if err != nil {
		return err
	}
	d.tell(ctx, events.Notification{Event: events.EventStats, ShowID: show.ID, Epoch: stats[0].Epoch, Version: stats[0].Version, Stats: &stats[0]})
	d.end(ctx, action, map[string]any{"ended": ended, "epoch": epoch, "done": done})
	return nil
}

const (
	// resumeEvery is how often resets that died half-way are looked for, and resumeAge
	// how old they are: a younger one may be under way.
	resumeEvery = 10 * time.Second
	resumeAge   = 10 * time.Second
	// resumeLimit bounds those of one look.
	resumeLimit = 20
)

// Watch takes up resets that died half-way until ctx ends. Any number of processes may
// do so at once.
func (d *Desk) Watch(ctx context.Context) {
	clock := time.NewTicker(resumeEvery)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		if err := d.Resume(ctx, resumeAge); err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "resets were not taken up", "error", err)
		}
	}
}

// Resume takes up resets of that age which died half-way.
func (d *Desk) Resume(ctx context.Context, age time.Duration) error {
	undone, err := d.Store.UndoneActions(ctx, domain.ActionReset, age, resumeLimit)
	if err != nil {
		return err
	}
	for _, action := range undone {
		show, err := d.Store.Show(ctx, action.ShowID)
		if err != nil {
			return err
		}
		var begun struct{ Epoch int64 }
		if err := json.Unmarshal([]byte(action.Outcome), &begun); err != nil {
			return fmt.Errorf("read action %s: %w", action.ID, err)
		}
		d.Log.InfoContext(ctx, "reset taken up again", "show_id", show.ID, "epoch", begun.Epoch)
		if err := d.endPlaces(ctx, show, begun.Epoch, action); err != nil {
			return err
		}
	}
	return nil
}
