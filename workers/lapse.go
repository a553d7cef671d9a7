package workers

import (
	"context"
	"time"

	"foyer/domain"
	"foyer/events"
)

// lapseSpacing is the least time between two commands for what lapses at one show: a
// crowd whose turns run out one after the other is passed on in few steps.
const lapseSpacing = 100 * time.Millisecond

// lapses are the instants, between this tick and the next, at which a turn or a session
// runs out for which somebody waits. They belong to the ticker's goroutine. Losing them
// with their process costs no more than the time to the next tick.
type lapses map[domain.ShowID]time.Time

// next is the earliest of them.
func (l lapses) next() (at time.Time, found bool) {
	for _, lapse := range l {
		if !found || lapse.Before(at) {
			at, found = lapse, true
		}
	}
	return at, found
}

// expectLapse notes when the show's next lapse is, unless a tick comes first.
func (t *ticker) expectLapse(ctx context.Context, show domain.ShowID) error {
	delete(t.lapses, show)
	in, waited, err := t.steps.NextLapse(ctx, show)
	if err != nil || !waited || in >= t.every {
		return err
	}
	if t.lapses == nil {
		t.lapses = lapses{}
	}
	t.lapses[show] = time.Now().Add(max(in, lapseSpacing))
	return nil
}

// passOnUntil gives lapsed turns and sessions to the next person at the instant at which
// they lapse, until the tick comes; it is false when ctx has ended.
func (t *ticker) passOnUntil(ctx context.Context, tick <-chan time.Time) bool {
	for {
		alarm := time.NewTimer(t.every)
		if at, found := t.lapses.next(); found {
			alarm.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			alarm.Stop()
			return false
		case <-tick:
			alarm.Stop()
			return true
		case <-alarm.C:
			t.passOn(ctx, time.Now())
		}
	}
}

// passOn asks for an admission step at every show of which something has lapsed.
func (t *ticker) passOn(ctx context.Context, now time.Time) {
	for show, at := range t.lapses {
		if at.After(now) {
			continue
		}
		err := t.commands.AdmitShow(ctx, events.AdmitShow{ShowID: show, Reason: events.ReasonFreed})
		if err == nil {
			err = t.expectLapse(ctx, show)
		}
		if err != nil {
			delete(t.lapses, show) // the tick is not far
			if ctx.Err() == nil {
				t.log.WarnContext(ctx, "lapsed turn waits for the tick", "show_id", show, "error", err)
			}
		}
	}
}
