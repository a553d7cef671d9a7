package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"foyer/domain"
)

const bookingColumns = `id, command_id, show_id, person_id, request_id, hold_id, seats, price, status, reason, conflicts,
	created_at, decided_at, cancelled_at`

func scanBooking(scan scanner) (domain.Booking, error) {
	var b domain.Booking
	var seats, conflicts string
	var created, decided, cancelled instant
	err := scan(&b.BookingID, &b.CommandID, &b.ShowID, &b.PersonID, &b.RequestID, &b.HoldID, &seats, &b.Price,
		&b.Status, &b.Reason, &conflicts, &created, &decided, &cancelled)
	if err != nil {
		return domain.Booking{}, err
	}
	b.CreatedAt, b.DecidedAt, b.CancelledAt = created.time(), decided.at, cancelled.at
	var errSeats, errConflicts error
	b.Seats, errSeats = decodeSeats(seats)
	b.Conflicts, errConflicts = decodeSeats(conflicts)
	return b, errors.Join(errSeats, errConflicts)
}

func scanRequest(scan scanner) (domain.BookingRequest, error) {
	var r domain.BookingRequest
	var err error
	r.Booking, err = scanBooking(func(dest ...any) error { return scan(append(dest, &r.Key, &r.Fingerprint)...) })
	return r, err
}

const requestColumns = bookingColumns + `, COALESCE(idempotency_key, ''), fingerprint`

// RecordBooking stores a booking as PENDING, created now by the database's clock.
// The person's key and the hold stand for one intent each: when either is there
// already, the booking stored with it is returned and created is false. It fails
// with domain.ErrIdempotencyMismatch when the key came with another fingerprint,
// domain.ErrHoldNotFound when the hold was booked by somebody else, and
// domain.ErrShowNotFound. An empty key matches no other.
func (db *DB) RecordBooking(ctx context.Context, r domain.BookingRequest) (b domain.Booking, created bool, err error) {
	// One statement records it; what is read after a conflict was committed by others.
	err = db.engine.writeSingly(ctx, func(tx session) error {
		b, created, err = db.recordBooking(ctx, tx, r)
		return err
	})
	if err != nil {
		return domain.Booking{}, false, fmt.Errorf("record booking %s: %w", r.Booking.BookingID, err)
	}
	return b, created, nil
}

func checkBooking(r domain.BookingRequest) error {
	b := r.Booking
	fields := []field{
		{"bookingId", string(b.BookingID)}, {"commandId", string(b.CommandID)}, {"showId", string(b.ShowID)},
		{"person", string(b.PersonID)}, {"requestId", string(b.RequestID)}, {"holdId", string(b.HoldID)},
	}
	var missing []domain.Problem
	for _, f := range fields {
		if f.value == "" {
			missing = append(missing, domain.Problem{Field: f.name, Detail: "must not be empty"})
		}
	}
	if len(b.Seats) == 0 {
		missing = append(missing, domain.Problem{Field: "seats", Detail: "must not be empty"})
	}
	if len(missing) > 0 {
		return &domain.InvalidError{Problems: missing}
	}
	for _, seat := range b.Seats {
		fields = append(fields, field{"seats", string(seat)})
	}
	return checkText(append(fields, field{"key", r.Key}, field{"fingerprint", r.Fingerprint})...)
}

func (db *DB) recordBooking(ctx context.Context, tx session, r domain.BookingRequest) (domain.Booking, bool, error) {
	if err := checkBooking(r); err != nil {
		return domain.Booking{}, false, err
	}
	b := r.Booking
	stored, inserted, err := first(ctx, tx, scanBooking, `
		INSERT INTO bookings (id, command_id, show_id, person_id, request_id, hold_id, idempotency_key, fingerprint,
			seats, price, status, created_at)
		SELECT $1, $2, id, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, 'PENDING', `+db.engine.now()+`
		FROM shows WHERE id = $3
		ON CONFLICT DO NOTHING RETURNING `+bookingColumns,
		b.BookingID, b.CommandID, b.ShowID, b.PersonID, b.RequestID, b.HoldID, r.Key, r.Fingerprint,
		encodeSeats(b.Seats), int64(b.Price))
	if err != nil || inserted {
		return stored, inserted, err
	}
	stored, err = sameIntent(ctx, tx, r)
	return stored, false, err
}

// sameIntent finds why a booking could not be inserted. Whoever was first has
// committed by now: the insert waited for that.
func sameIntent(ctx context.Context, tx session, r domain.BookingRequest) (domain.Booking, error) {
	b := r.Booking
	byKey, found, err := first(ctx, tx, scanRequest,
		`SELECT `+requestColumns+` FROM bookings WHERE person_id = $1 AND idempotency_key = $2`, b.PersonID, r.Key)
	switch {
	case err != nil:
		return domain.Booking{}, err
	case found && byKey.Fingerprint != r.Fingerprint:
		return domain.Booking{}, domain.ErrIdempotencyMismatch
	case found:
		return byKey.Booking, nil
	}
	byHold, err := bookingBy(ctx, tx, "hold_id", b.HoldID)
	switch {
	case err == nil && byHold.PersonID != b.PersonID:
		return domain.Booking{}, domain.ErrHoldNotFound
	case err == nil || !errors.Is(err, domain.ErrBookingNotFound):
		return byHold, err
	}
	if _, err := findShow(ctx, tx, b.ShowID, ""); err != nil {
		return domain.Booking{}, err
	}
	return domain.Booking{}, fmt.Errorf("%w: the booking id is taken", domain.ErrIdempotencyMismatch)
}

// bookingBy finds a booking by one of its unique columns.
func bookingBy[ID ~string](ctx context.Context, s session, unique string, id ID) (domain.Booking, error) {
	if checkText(field{unique, string(id)}) != nil {
		return domain.Booking{}, domain.ErrBookingNotFound
	}
	b, found, err := first(ctx, s, scanBooking, `SELECT `+bookingColumns+` FROM bookings WHERE `+unique+` = $1`, id)
	if err == nil && !found {
		err = domain.ErrBookingNotFound
	}
	return b, err
}

// BookingByKey returns what a person recorded under a key, or domain.ErrBookingNotFound.
func (db *DB) BookingByKey(ctx context.Context, person domain.PersonID, key string) (domain.BookingRequest, error) {
	if err := checkText(field{"person", string(person)}, field{"key", key}); err != nil {
		return domain.BookingRequest{}, fmt.Errorf("read booking by key: %w", err)
	}
	r, found, err := first(ctx, db.engine, scanRequest,
		`SELECT `+requestColumns+` FROM bookings WHERE person_id = $1 AND idempotency_key = $2`, person, key)
	if err == nil && !found {
		err = domain.ErrBookingNotFound
	}
	if err != nil {
		return domain.BookingRequest{}, fmt.Errorf("read booking by key: %w", err)
	}
	return r, nil
}

// BookingByHold returns the booking of a hold, or domain.ErrBookingNotFound.
func (db *DB) BookingByHold(ctx context.Context, hold domain.HoldID) (domain.Booking, error) {
	b, err := bookingBy(ctx, db.engine, "hold_id", hold)
	if err != nil {
		return domain.Booking{}, fmt.Errorf("read booking of hold %s: %w", hold, err)
	}
	return b, nil
}

// Booking returns one booking, whoever's it is, or domain.ErrBookingNotFound.
func (db *DB) Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error) {
	b, err := bookingBy(ctx, db.engine, "id", id)
	if err != nil {
		return domain.Booking{}, fmt.Errorf("read booking %s: %w", id, err)
	}
	return b, nil
}

// Bookings lists a person's bookings, newest first, from the one after before on;
// before "" begins with the newest. A limit outside 1 to domain.MaxBookingPage is
// that maximum. Pages do not shift when bookings are added meanwhile. It fails
// with domain.ErrBookingNotFound when before is no booking of the person.
func (db *DB) Bookings(ctx context.Context, person domain.PersonID, before domain.BookingID, limit int) ([]domain.Booking, error) {
	if limit < 1 || limit > domain.MaxBookingPage {
		limit = domain.MaxBookingPage
	}
	page, err := db.bookingPage(ctx, person, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list bookings: %w", err)
	}
	return page, nil
}

func (db *DB) bookingPage(ctx context.Context, person domain.PersonID, before domain.BookingID, limit int) ([]domain.Booking, error) {
	if before == "" {
		return query(ctx, db.engine, scanBooking, `SELECT `+bookingColumns+` FROM bookings
			WHERE person_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`, person, limit)
	}
	last, err := bookingBy(ctx, db.engine, "id", before)
	if err == nil && last.PersonID != person {
		err = domain.ErrBookingNotFound
	}
	if err != nil {
		return nil, err
	}
	return query(ctx, db.engine, scanBooking, `SELECT `+bookingColumns+` FROM bookings
		WHERE person_id = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4`,
		person, last.CreatedAt, before, limit)
}

// waiting is the bookings that wait for a worker, each with the instant since when it does.
// The database keeps pending_bookings in step with them.
const waiting = `pending_bookings JOIN bookings ON id = booking_id AND status = 'PENDING'`

// PendingBookings lists bookings that have waited for a worker for at least
// olderThan by the database's clock, oldest first. It looks at all of them each
// time and keeps no position, so that one that was committed late is not skipped.
func (db *DB) PendingBookings(ctx context.Context, olderThan time.Duration, limit int) ([]domain.Booking, error) {
	pending, err := query(ctx, db.engine, scanBooking, `SELECT `+bookingColumns+` FROM `+waiting+`
		WHERE since <= `+db.engine.ago("$1")+` ORDER BY since, booking_id LIMIT $2`,
		olderThan.Microseconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("list pending bookings: %w", err)
	}
	return pending, nil
}

// FailBooking gives a PENDING booking up: REJECTED for the reason, nothing sold.
// A booking that was decided before is returned as it is.
func (db *DB) FailBooking(ctx context.Context, id domain.BookingID, reason string) (domain.Booking, error) {
	var b domain.Booking
	err := db.engine.write(ctx, func(tx session) error {
		failed, changed, err := first(ctx, tx, scanBooking, `
			UPDATE bookings SET status = 'REJECTED', reason = $2, decided_at = `+db.engine.now()+`
			WHERE id = $1 AND status = 'PENDING' RETURNING `+bookingColumns, id, reason)
		if err != nil || changed {
			b = failed
			return err
		}
		b, err = bookingBy(ctx, tx, "id", id)
		return err
	})
	if err != nil {
		return domain.Booking{}, fmt.Errorf("fail booking %s: %w", id, err)
	}
	return b, nil
}

// noteHandled records commands with their outcome, each for its booking. It fails
// with domain.ErrIdempotencyMismatch when one of them has had an effect before:
// these bookings were not decided, so it was on another booking.
func (db *DB) noteHandled(ctx context.Context, tx session, kind string, commands []domain.CommandID, bookings []domain.Booking) error {
	noted := 0
	if err := tx.run(ctx, db.handled(kind, commands, bookings, &noted)); err != nil {
		return err
	}
	return allHandled(commands, noted)
}

// handled is the statement of noteHandled; it counts the commands that it records.
func (db *DB) handled(kind string, commands []domain.CommandID, bookings []domain.Booking, noted *int) statement {
	s := db.note(kind, commands, bookings)
	s.sql += ` ON CONFLICT (id) DO NOTHING RETURNING id`
	s.row = func(scanner) error {
		*noted++
		return nil
	}
	return s
}

// note makes the statement that records commands with their effects; it fails when one
// is recorded already.
func (db *DB) note(kind string, commands []domain.CommandID, bookings []domain.Booking) statement {
	ids, outcomes := make([]string, len(bookings)), make([]string, len(bookings))
	for i, b := range bookings {
		ids[i], outcomes[i] = string(b.BookingID), string(b.Status)
	}
	from, args := db.engine.rows(2, column{"command", texts(commands)}, column{"booking", ids}, column{"outcome", outcomes})
	return statement{
		sql: `INSERT INTO handled_commands (id, kind, booking_id, outcome, handled_at)
			SELECT r.command, $1, r.booking, r.outcome, ` + db.engine.now() + ` FROM ` + from + ` WHERE true`,
		args: append([]any{kind}, args...),
	}
}

func allHandled(commands []domain.CommandID, noted int) error {
	if noted < len(commands) {
		return fmt.Errorf("%w: a command had its effect on another booking", domain.ErrIdempotencyMismatch)
	}
	return nil
}
