package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"foyer/domain"
)

// Ledger is all that SQL knows of a show's sales, for comparison with itself and with
// Redis. Its parts are read one after the other: what is booked meanwhile may stand
// in one of them and not yet in another.
type Ledger struct {
	Show     domain.Show
	Bookings map[domain.BookingID]LedgerBooking
	Sold     []domain.SoldSeat // rows that say what is sold; the request is empty where the booking is unknown
	Handled  []HandledCommand
}

// LedgerBooking is a booking with its ages by the database's clock.
type LedgerBooking struct {
	domain.Booking
	Age     time.Duration // since it was made
	Decided time.Duration // since it was decided, or cancelled; 0 while it is PENDING
	// CancelAsked is the time since it was asked to be cancelled; 0 when nobody did.
	CancelAsked time.Duration
}

// Cancelling reports whether it was asked to be cancelled and is not.
func (b LedgerBooking) Cancelling() bool {
	return b.Status == domain.BookingConfirmed && b.CancelAsked > 0
}

// HandledCommand is a command that has had its effect.
type HandledCommand struct {
	CommandID domain.CommandID
	Kind      string // book or cancel
	BookingID domain.BookingID
	Outcome   domain.BookingStatus
}

// Ledger reads a show's sales whole, for operators and tests. It fails with
// domain.ErrShowNotFound.
func (db *DB) Ledger(ctx context.Context, id domain.ShowID) (Ledger, error) {
	l := Ledger{Bookings: map[domain.BookingID]LedgerBooking{}}
	var err error
	if l.Show, err = findShow(ctx, db.engine, id, ""); err != nil {
		return Ledger{}, fmt.Errorf("read ledger of show %s: %w", id, err)
	}
	var asked, now instant
	bookings := statement{
		sql: `SELECT ` + bookingColumns + `, cancel_asked_at, ` + db.engine.now() + ` FROM bookings WHERE show_id = $1`, args: []any{id},
		row: func(scan scanner) error {
			b, err := scanBooking(func(dest ...any) error { return scan(append(dest, &asked, &now)...) })
			entry := LedgerBooking{Booking: b, Age: now.time().Sub(b.CreatedAt)}
			if last := cmp.Or(b.CancelledAt, b.DecidedAt); last != nil {
				entry.Decided = now.time().Sub(*last)
			}
			if asked.at != nil {
				entry.CancelAsked = now.time().Sub(asked.time())
			}
			l.Bookings[b.BookingID] = entry
			return err
		},
	}
	sold := statement{
		sql: `SELECT s.show_id, s.seat_id, s.booking_id, COALESCE(b.request_id, '')
			FROM booking_seats s LEFT JOIN bookings b ON b.id = s.booking_id WHERE s.show_id = $1 ORDER BY s.seat_id`, args: []any{id},
		row: func(scan scanner) error {
			s, err := scanSold(scan)
			l.Sold = append(l.Sold, s.SoldSeat)
			return err
		},
	}
	handled := statement{
		sql: `SELECT h.id, h.kind, h.booking_id, h.outcome FROM handled_commands h JOIN bookings b ON b.id = h.booking_id
			WHERE b.show_id = $1 ORDER BY h.id`, args: []any{id},
		row: func(scan scanner) error {
			var h HandledCommand
			err := scan(&h.CommandID, &h.Kind, &h.BookingID, &h.Outcome)
			l.Handled = append(l.Handled, h)
			return err
		},
	}
	if err := db.engine.run(ctx, bookings, sold, handled); err != nil {
		return Ledger{}, fmt.Errorf("read ledger of show %s: %w", id, err)
	}
	return l, nil
}

// PendingBookingsOf lists a show's bookings that wait for a worker, oldest first,
// however young. limit bounds them.
func (db *DB) PendingBookingsOf(ctx context.Context, show domain.ShowID, limit int) ([]domain.Booking, error) {
	pending, err := query(ctx, db.engine, scanBooking, `SELECT `+bookingColumns+` FROM `+waiting+`
		WHERE show_id = $1 ORDER BY since, booking_id LIMIT $2`, show, limit)
	if err != nil {
		return nil, fmt.Errorf("list pending bookings of show %s: %w", show, err)
	}
	return pending, nil
}

// SoldCount counts a show's seats sold.
func (db *DB) SoldCount(ctx context.Context, show domain.ShowID) (int64, error) {
	n, _, err := first(ctx, db.engine, one[int64], `SELECT count(*) FROM booking_seats WHERE show_id = $1`, show)
	if err != nil {
		return 0, fmt.Errorf("count seats sold of show %s: %w", show, err)
	}
	return n, nil
}
