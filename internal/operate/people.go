package operate

import (
	"context"
	"fmt"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// Limits that stopped an admission by hand before all had come in.
const (
	LimitedByActive  = "maxActive"
	LimitedByRate    = "ratePerMinute"
	LimitedByWaiting = "waiting" // nobody is left in the line
)

// Admission is what came of letting people in by hand.
type Admission struct {
	Asked     int    `json:"asked"`
	Admitted  int    `json:"admitted"`
	LimitedBy string `json:"limitedBy,omitempty"` // empty: as many as asked for
}

// Bounds of one admission by hand: people in a step, and steps.
const (
	admitBatch    = 625 // as many as a step lets in
	maxAdmitSteps = 100
)

// Admit lets up to count people in now, in the order of the line, also while the show is
// paused. It passes neither maxActive nor ratePerMinute, and tells which of them stopped
// it. It fails with *domain.NotOpenError, domain.ErrSoldOut or domain.ErrClosed.
func (d *Desk) Admit(ctx context.Context, who domain.PersonID, id domain.ShowID, count int) (Admission, error) {
	done := Admission{Asked: count}
	show, err := d.Store.Show(ctx, id)
	if err != nil {
		return done, err
	}
	stats, err := d.Steps.Stats(ctx, id)
	if err != nil {
		return done, err
	}
	switch stats[0].Phase {
	case domain.PhaseScheduled, domain.PhasePrequeue:
		return done, &domain.NotOpenError{OpensAt: show.DrawClosesAt()}
	case domain.PhaseSoldOut:
		return done, domain.ErrSoldOut
	case domain.PhaseClosed:
		return done, domain.ErrClosed
	}
	action := newAction(who, id, domain.ActionAdmit, map[string]int{"count": count})
	if err := d.Store.BeginAction(ctx, action); err != nil {
		return done, err
	}
	err = d.admit(ctx, id, &done)
	d.end(ctx, action, done)
	return done, err
}

func (d *Desk) admit(ctx context.Context, show domain.ShowID, done *Admission) error {
	for range maxAdmitSteps {
		batch := min(done.Asked-done.Admitted, admitBatch)
		result, err := d.Steps.Admit(ctx, show, lua.AdmitOptions{Batch: batch, ByOperator: true})
		if err != nil {
			return fmt.Errorf("admit to show %s: %w", show, err)
		}
		done.Admitted += len(result.Admitted)
		d.tell(ctx, admissionFacts(result)...)
		switch stats := result.Stats; {
		case done.Admitted == done.Asked:
			return nil
		case len(result.Admitted) == batch || result.More && len(result.Admitted) > 0:
		case stats.Waiting == 0:
			done.LimitedBy = LimitedByWaiting
			return nil
		case stats.Active >= stats.MaxActive:
			done.LimitedBy = LimitedByActive
			return nil
		case !result.More:
			done.LimitedBy = LimitedByRate
			return nil
		}
	}
	return nil
}

func admissionFacts(result lua.AdmitResult) []events.Notification {
	stats := result.Stats
	fact := events.Notification{ShowID: stats.ShowID, Epoch: stats.Epoch, Version: stats.Version}
	counts := fact
	counts.Event, counts.Stats = events.EventStats, &stats
	facts := []events.Notification{counts}
	if len(result.Admitted)+len(result.Expired) > 0 {
		fact.Event, fact.Admitted, fact.Ended = events.EventAdmission, result.Admitted, result.Expired
		facts = append(facts, fact)
	}
	if len(result.FreedSeats) > 0 {
		facts = append(facts, seatsFreed(stats.ShowID, stats.Epoch, stats.SeatVersion, result.FreedSeats))
	}
	return facts
}

func seatsFreed(show domain.ShowID, epoch, version int64, freed []domain.SeatID) events.Notification {
	seats := make([]domain.Seat, len(freed))
	for i, id := range freed {
		seats[i] = domain.Seat{ID: id, State: domain.SeatFree}
	}
	return events.Notification{Event: events.EventSeats, ShowID: show, Epoch: epoch, SeatsChanged: seats, SeatVersion: version}
}

// Remove ends one person's place, waiting or inside, and gives what it frees on. Seats
// that are being booked stay theirs. They may join again, at the end of the line. It
// fails with domain.ErrNotJoined when they have no place.
func (d *Desk) Remove(ctx context.Context, who domain.PersonID, id domain.ShowID, request domain.RequestID) error {
	if _, err := d.Store.Show(ctx, id); err != nil {
		return err
	}
	action := newAction(who, id, domain.ActionRemove, map[string]domain.RequestID{"requestId": request})
	if err := d.Store.BeginAction(ctx, action); err != nil {
		return err
	}
	departure, err := d.Steps.Remove(ctx, id, request)
	if err != nil {
		return fmt.Errorf("remove a person from show %s: %w", id, err)
	}
	d.end(ctx, action, map[string]bool{"removed": departure.Left, "freedSlot": departure.FreedSlot})
	if !departure.Left {
		return domain.ErrNotJoined
	}
	told := []events.Notification{{
		Event: events.EventAdmission, ShowID: id, Epoch: departure.Epoch, Version: departure.Version, Ended: []domain.RequestID{request},
	}}
	if len(departure.FreedSeats) > 0 {
		told = append(told, seatsFreed(id, departure.Epoch, departure.SeatVersion, departure.FreedSeats))
	}
	d.tell(ctx, told...)
	if departure.FreedSlot {
		d.slotFreed(ctx, id)
	}
	return nil
}
