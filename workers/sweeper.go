package workers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"foyer/domain"
	"foyer/events"
)

const (
	// sweepEvery is how often bookings that got stuck are looked for.
	sweepEvery = 5 * time.Second
	// bookingOverdue is when the command of a PENDING booking, or of a cancellation that
	// is not done, is published again: its process may have died before publishing, or
	// Redis may have lost it.
	bookingOverdue = 15 * time.Second
	// holdOverdue is when seats that are being booked are compared with SQL.
	holdOverdue = 30 * time.Second
	// sweepLimit bounds the bookings of one sweep.
	sweepLimit = 200
)

// sweeper takes up bookings that stopped half way, wherever their process died.
// It runs in every worker process; doing the same twice is harmless, since a
// command that is published again carries its first id.
type sweeper struct {
	steps    Steps
	store    Store
	commands Commands
	bookings *booking
	log      *slog.Logger
}

func (s *sweeper) run(ctx context.Context) {
	clock := time.NewTicker(sweepEvery)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		if err := errors.Join(s.republishOlder(ctx, bookingOverdue), s.recancelOlder(ctx, bookingOverdue), s.unstickOlder(ctx, holdOverdue)); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "sweep failed", "error", err)
		}
	}
}

// republishOlder sends the command of every PENDING booking of that age again.
func (s *sweeper) republishOlder(ctx context.Context, age time.Duration) error {
	overdue, err := s.store.PendingBookings(ctx, age, sweepLimit)
	if err != nil {
		return err
	}
	for _, booking := range overdue {
		s.log.InfoContext(ctx, "booking taken up again", "booking_id", booking.BookingID, "show_id", booking.ShowID)
		if err := s.commands.BookSeats(ctx, booking.CommandID, events.BookSeats{Booking: booking}); err != nil {
			return err
		}
	}
	return nil
}

// recancelOlder sends the command of every cancellation of that age again.
func (s *sweeper) recancelOlder(ctx context.Context, age time.Duration) error {
	overdue, err := s.store.Cancellations(ctx, age, sweepLimit)
	if err != nil {
		return err
	}
	for _, booking := range overdue {
		s.log.InfoContext(ctx, "cancellation taken up again", "booking_id", booking.BookingID, "show_id", booking.ShowID)
		command := events.CancelBooking{BookingID: booking.BookingID, ShowID: booking.ShowID}
		if err := s.commands.CancelBooking(ctx, booking.CancelCommand(), command); err != nil {
			return err
		}
	}
	return nil
}

// unstickOlder compares seats that have been in booking for so long with SQL. Where SQL
// knows no booking, the process died before recording it: the hold goes back to
// its holder. Where SQL has decided, Redis is brought to it.
func (s *sweeper) unstickOlder(ctx context.Context, age time.Duration) error {
	shows, err := s.store.Shows(ctx)
	if err != nil {
		return err
	}
	for _, show := range shows {
		stuck, err := s.steps.StuckBookings(ctx, show.ID, age, sweepLimit)
		if err != nil {
			return err
		}
		for _, hold := range stuck {
			booking, err := s.store.Booking(ctx, hold.BookingID)
			switch {
			case errors.Is(err, domain.ErrBookingNotFound):
				err = s.steps.AbortBooking(ctx, show.ID, hold.HoldID, hold.BookingID)
			case err == nil && booking.Status != domain.BookingPending:
				_, err = s.bookings.settle(ctx, booking)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
