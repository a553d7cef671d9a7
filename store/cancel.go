package store

import (
	"context"
	"fmt"
	"time"

	"foyer/domain"
)

// AskCancel records that a confirmed booking shall be taken back, as of now, before
// anybody is asked to do so: until it is done, Cancellations finds it. Asking again
// keeps the first time. A booking that is cancelled already is returned as it is. It
// fails with domain.ErrInProgress while the booking is PENDING, with
// domain.ErrNotCancellable when it was rejected, and with domain.ErrBookingNotFound.
func (db *DB) AskCancel(ctx context.Context, id domain.BookingID) (domain.Booking, error) {
	var b domain.Booking
	err := db.engine.write(ctx, func(tx session) error {
		asked, confirmed, err := first(ctx, tx, scanBooking, `
			UPDATE bookings SET cancel_asked_at = COALESCE(cancel_asked_at, `+db.engine.now()+`)
			WHERE id = $1 AND status = 'CONFIRMED' RETURNING `+bookingColumns, id)
		if err != nil || confirmed {
			b = asked
			return err
		}
		if b, err = bookingBy(ctx, tx, "id", id); err != nil {
			return err
		}
		return notCancellable(b.Status)
	})
	if err != nil {
		return domain.Booking{}, fmt.Errorf("ask for booking %s to be cancelled: %w", id, err)
	}
	return b, nil
}

// notCancellable is why a booking in that state cannot be taken back, or nil.
func notCancellable(status domain.BookingStatus) error {
	switch status {
	case domain.BookingPending:
		return domain.ErrInProgress
	case domain.BookingRejected:
		return domain.ErrNotCancellable
	}
	return nil
}

// WithdrawCancel gives up on taking a booking back: it stays as it is, and may be asked
// for again.
func (db *DB) WithdrawCancel(ctx context.Context, id domain.BookingID) (domain.Booking, error) {
	var b domain.Booking
	err := db.engine.write(ctx, func(tx session) (err error) {
		withdrawn := statement{sql: `UPDATE bookings SET cancel_asked_at = NULL WHERE id = $1 AND status = 'CONFIRMED'`, args: []any{id}}
		if err := tx.run(ctx, withdrawn); err != nil {
			return err
		}
		b, err = bookingBy(ctx, tx, "id", id)
		return err
	})
	if err != nil {
		return domain.Booking{}, fmt.Errorf("give up cancelling booking %s: %w", id, err)
	}
	return b, nil
}

// Cancellations lists bookings that were asked to be cancelled at least olderThan ago
// by the database's clock and are not, oldest first.
func (db *DB) Cancellations(ctx context.Context, olderThan time.Duration, limit int) ([]domain.Booking, error) {
	asked, err := query(ctx, db.engine, scanBooking, `SELECT `+bookingColumns+` FROM bookings
		WHERE cancelled_at IS NULL AND cancel_asked_at <= `+db.engine.ago("$1")+` ORDER BY cancel_asked_at, id LIMIT $2`,
		olderThan.Microseconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("list cancellations: %w", err)
	}
	return asked, nil
}

// CancellationsOf lists a show's bookings that were asked to be cancelled and are not,
// oldest first, however young. limit bounds them.
func (db *DB) CancellationsOf(ctx context.Context, show domain.ShowID, limit int) ([]domain.Booking, error) {
	asked, err := query(ctx, db.engine, scanBooking, `SELECT `+bookingColumns+` FROM bookings
		WHERE cancelled_at IS NULL AND cancel_asked_at IS NOT NULL AND show_id = $1 ORDER BY cancel_asked_at, id LIMIT $2`, show, limit)
	if err != nil {
		return nil, fmt.Errorf("list cancellations of show %s: %w", show, err)
	}
	return asked, nil
}

// CancelBooking takes a confirmed booking back and frees its seats, once for all
// repeats of the command. A booking that is cancelled already is returned as it
// is. It fails with domain.ErrInProgress while the booking is PENDING and with
// domain.ErrNotCancellable when it was rejected.
func (db *DB) CancelBooking(ctx context.Context, command domain.CommandID, id domain.BookingID) (domain.Booking, error) {
	var b domain.Booking
	err := db.engine.write(ctx, func(tx session) error {
		stored, found, err := first(ctx, tx, scanBooking,
			`SELECT `+bookingColumns+` FROM bookings WHERE id = $1`+db.engine.locked("bookings"), id)
		switch {
		case err != nil:
			return err
		case !found:
			return domain.ErrBookingNotFound
		case stored.Status == domain.BookingCancelled:
			b = stored
			return nil
		}
		if err := notCancellable(stored.Status); err != nil {
			return err
		}
		b, err = db.cancel(ctx, tx, command, stored)
		return err
	})
	if err != nil {
		return domain.Booking{}, fmt.Errorf("cancel booking %s: %w", id, err)
	}
	return b, nil
}

func (db *DB) cancel(ctx context.Context, tx session, command domain.CommandID, b domain.Booking) (domain.Booking, error) {
	seats, args := db.engine.rows(3, column{"seat", texts(b.Seats)})
	freed := statement{
		sql:  `DELETE FROM booking_seats WHERE show_id = $1 AND booking_id = $2 AND seat_id IN (SELECT seat FROM ` + seats + `)`,
		args: append([]any{b.ShowID, b.BookingID}, args...),
	}
	if err := tx.run(ctx, freed); err != nil {
		return domain.Booking{}, err
	}
	b.Status = domain.BookingCancelled
	if err := db.noteHandled(ctx, tx, "cancel", []domain.CommandID{command}, []domain.Booking{b}); err != nil {
		return domain.Booking{}, err
	}
	cancelled, _, err := first(ctx, tx, scanBooking, `
		UPDATE bookings SET status = 'CANCELLED', cancelled_at = `+db.engine.now()+`
		WHERE id = $1 RETURNING `+bookingColumns, b.BookingID)
	return cancelled, err
}
