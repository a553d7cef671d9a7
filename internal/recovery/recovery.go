// Package recovery brings a show in Redis to what SQL has. A show that Redis does not
// have comes back whole in what SQL knows: settings, seats sold, what each person
// bought, bookings that wait for a worker. What only Redis knew is gone: places and
// holds, but for those of bookings. A show that Redis has in an older state, from an old
// file or a replica that was behind, is corrected in place, and people keep their places.
// Either way the show's epoch grows, so that every page sees that it must ask anew.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
	"foyer/store"
)

// Store is the SQL that a show is restored from. *store.DB has it.
type Store interface {
	NextEpoch(ctx context.Context, show domain.ShowID) (domain.Show, error)
	SoldSeats(ctx context.Context, show domain.ShowID) ([]domain.SoldSeat, error)
	PendingBookingsOf(ctx context.Context, show domain.ShowID, limit int) ([]domain.Booking, error)
}

// Steps is the atomic step that restores. *lua.Steps has it.
type Steps interface {
	Restore(ctx context.Context, show domain.Show, sold []domain.SoldSeat, pending ...domain.Booking) (restored bool, err error)
}

// Load restores a show whose keys Redis does not have. Several processes may
// load one show at once: the first wins, the others change nothing. A booking
// that is committed while the sold seats are read is not lost: its worker
// completes it in Redis after the commit, on top of what was restored.
// It fails with domain.ErrShowNotFound when SQL does not know the show either.
func Load(ctx context.Context, store Store, steps Steps, id domain.ShowID, log *slog.Logger) error {
	_, _, err := load(ctx, store, steps, id, log)
	return err
}

func load(ctx context.Context, store Store, steps Steps, id domain.ShowID, log *slog.Logger) (show domain.Show, restored bool, err error) {
	if show, err = store.NextEpoch(ctx, id); err != nil {
		return show, false, fmt.Errorf("load show %s: %w", id, err)
	}
	sold, err := store.SoldSeats(ctx, id)
	if err != nil {
		return show, false, fmt.Errorf("load seats of show %s: %w", id, err)
	}
	// Read after the seats sold: one that is decided in between is in neither, and not in
	// both; its worker completes it on top of what was restored.
	pending, err := store.PendingBookingsOf(ctx, id, maxRepublished)
	if err != nil {
		return show, false, fmt.Errorf("load pending bookings of show %s: %w", id, err)
	}
	if restored, err = steps.Restore(ctx, show, sold, pending...); err != nil {
		return show, false, fmt.Errorf("restore show %s: %w", id, err)
	}
	if restored {
		log.InfoContext(ctx, "show restored into redis", "show_id", id, "epoch", show.Epoch, "sold", len(sold))
	}
	return show, restored, nil
}

// FullStore is the SQL that rebuilding reads. *store.DB has it.
type FullStore interface {
	Store
	Show(ctx context.Context, show domain.ShowID) (domain.Show, error)
	Shows(ctx context.Context) ([]domain.Show, error)
	Ledger(ctx context.Context, show domain.ShowID) (store.Ledger, error)
	SoldCount(ctx context.Context, show domain.ShowID) (int64, error)
	CancellationsOf(ctx context.Context, show domain.ShowID, limit int) ([]domain.Booking, error)
}

// FullSteps are the steps in Redis that rebuilding takes. *lua.Steps has them.
type FullSteps interface {
	Steps
	Audit(ctx context.Context, show domain.ShowID) (lua.Audit, error)
	Stats(ctx context.Context, shows ...domain.ShowID) ([]domain.Stats, error)
	Reconcile(ctx context.Context, show domain.ShowID, epoch int64, corrections []lua.Correction) (lua.Reconciled, error)
	CompleteBooking(ctx context.Context, booking domain.Booking) (lua.Settlement, error)
	RejectBooking(ctx context.Context, booking domain.Booking, soldBy []domain.SoldSeat) (lua.Settlement, error)
	CancelBooking(ctx context.Context, booking domain.Booking) (lua.Settlement, error)
	ServerRun(ctx context.Context) (string, error)
}

// Commands publishes what follows from a rebuild. *events.Commands does.
type Commands interface {
	AdmitShow(ctx context.Context, command events.AdmitShow) error
	BookSeats(ctx context.Context, id domain.CommandID, command events.BookSeats) error
	CancelBooking(ctx context.Context, id domain.CommandID, command events.CancelBooking) error
}

// Notifier tells every API process that a show must be read anew. *events.Bus does.
type Notifier interface {
	Publish(ctx context.Context, notifications ...events.Notification) error
}

// Rebuilder restores and corrects shows. All of it belongs to the caller.
type Rebuilder struct {
	Store    FullStore
	Steps    FullSteps
	Commands Commands
	Notifier Notifier
	Log      *slog.Logger
}

// maxRepublished bounds the commands of each kind that are taken up at once; the sweeper
// has the rest a few seconds later.
const maxRepublished = 5000

// Load is the function Load, and takes up at once the bookings and cancellations whose
// commands may have been lost with Redis.
func (r *Rebuilder) Load(ctx context.Context, id domain.ShowID) error {
	show, restored, err := load(ctx, r.Store, r.Steps, id, r.Log)
	if err != nil {
		return err
	}
	if !restored {
		// Another process has restored it under an epoch that was taken earlier. Both
		// must say the same in the end.
		if _, err := r.Steps.Reconcile(ctx, id, show.Epoch, nil); err != nil {
			return fmt.Errorf("pass on epoch of show %s: %w", id, err)
		}
		return nil
	}
	if _, err := r.republish(ctx, id); err != nil {
		r.Log.WarnContext(ctx, "commands that may be lost are left to the sweeper", "show_id", id, "error", err)
	}
	return nil
}

// republish sends the command of every pending booking of a show, and of everything
// that is to be cancelled, again. One that was not lost is sent twice and takes effect
// once, by its command id.
func (r *Rebuilder) republish(ctx context.Context, id domain.ShowID) (int, error) {
	pending, err := r.Store.PendingBookingsOf(ctx, id, maxRepublished)
	if err != nil {
		return 0, err
	}
	for n, booking := range pending {
		r.Log.InfoContext(ctx, "booking taken up again", "booking_id", booking.BookingID, "command_id", booking.CommandID, "show_id", id)
		if err := r.Commands.BookSeats(ctx, booking.CommandID, events.BookSeats{Booking: booking}); err != nil {
			return n, err
		}
	}
	cancelling, err := r.Store.CancellationsOf(ctx, id, maxRepublished)
	if err != nil {
		return len(pending), err
	}
	for n, booking := range cancelling {
		r.Log.InfoContext(ctx, "cancellation taken up again", "booking_id", booking.BookingID, "show_id", id)
		command := events.CancelBooking{BookingID: booking.BookingID, ShowID: id}
		if err := r.Commands.CancelBooking(ctx, booking.CancelCommand(), command); err != nil {
			return len(pending) + n, err
		}
	}
	return len(pending) + len(cancelling), nil
}

// Result is what rebuilding a show came to.
type Result struct {
	ShowID      domain.ShowID `json:"showId"`
	Restored    bool          `json:"restored"` // Redis did not have it
	Epoch       int64         `json:"epoch"`
	Settled     int           `json:"settled"`     // decided bookings that Redis had not heard of
	Corrected   int           `json:"corrected"`   // other corrections
	Republished int           `json:"republished"` // commands of pending bookings and cancellations sent again
}

// Changed reports whether there was anything to do.
func (r Result) Changed() bool { return r.Restored || r.Settled+r.Corrected > 0 }

// Rebuild brings a show in Redis to what SQL has sold, and takes up its pending
// bookings. Where nothing is wrong it changes nothing but sending those. It may run
// beside others of its kind and while people buy. It fails with
// domain.ErrShowNotFound.
func (r *Rebuilder) Rebuild(ctx context.Context, id domain.ShowID) (Result, error) {
	result := Result{ShowID: id}
	before, err := r.Store.Show(ctx, id)
	if err != nil {
		return result, err
	}
	if _, err := r.Steps.Stats(ctx, id); err != nil && !errors.Is(err, domain.ErrNotLoaded) {
		return result, fmt.Errorf("rebuild show %s: %w", id, err)
	}
	after, err := r.Store.Show(ctx, id)
	if err != nil {
		return result, err
	}
	result.Restored, result.Epoch = after.Epoch > before.Epoch, after.Epoch
	if err := r.correct(ctx, &result); err != nil {
		return result, fmt.Errorf("rebuild show %s: %w", id, err)
	}
	result.Republished, err = r.republish(ctx, id)
	if err != nil {
		return result, fmt.Errorf("rebuild show %s: %w", id, err)
	}
	if !result.Changed() {
		return result, nil
	}
	r.Log.InfoContext(ctx, "show rebuilt", "show_id", id, "epoch", result.Epoch, "restored", result.Restored,
		"settled", result.Settled, "corrected", result.Corrected, "republished", result.Republished)
	return result, r.announce(ctx, id)
}

// announce has every process read the show anew, and lets people into slots that came
// free.
func (r *Rebuilder) announce(ctx context.Context, id domain.ShowID) error {
	stats, err := r.Steps.Stats(ctx, id)
	if err != nil {
		return err
	}
	fact := events.Notification{ShowID: id, Epoch: stats[0].Epoch, Version: stats[0].Version}
	changed, counts, seats := fact, fact, fact
	changed.Event = events.EventShow
	counts.Event, counts.Stats = events.EventStats, &stats[0]
	seats.Event, seats.SeatVersion = events.EventSeats, stats[0].SeatVersion
	if err := r.Notifier.Publish(ctx, changed, counts, seats); err != nil {
		return fmt.Errorf("tell of rebuilt show %s: %w", id, err)
	}
	return r.Commands.AdmitShow(ctx, events.AdmitShow{ShowID: id, Reason: events.ReasonFreed})
}
