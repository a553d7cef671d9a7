package store

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"foyer/domain"
)

// errNotPlain says that a group is not one of the plain ones. It never leaves the package.
var errNotPlain = errors.New("not every booking of the group is plain")

// bookPlainly decides a group of which each booking is stored as its command has it,
// waits, and gets all of its seats: as good as always that is every one of them, and two
// round trips do. It reports false when one is otherwise, and has changed nothing then.
//
// Rows are locked in the order that bookGroup has, as far as the database follows it;
// where it does not, it breaks a circle by itself and the group is decided again.
func (db *DB) bookPlainly(ctx context.Context, commands []domain.Booking) ([]BookingOutcome, bool, error) {
	index := make(map[domain.BookingID]int, len(commands))
	wanted := make(map[place]domain.BookingID, 2*len(commands))
	ids, decided := make([]domain.CommandID, len(commands)), slices.Clone(commands)
	for i, b := range commands {
		if checkBooking(domain.BookingRequest{Booking: b}) != nil {
			return nil, false, nil
		}
		index[b.BookingID], ids[i] = i, b.CommandID
		decided[i].Seats = inOrder(b.Seats) // as they are stored
		for _, seat := range decided[i].Seats {
			p := place{b.ShowID, seat}
			if wanted[p] != "" {
				return nil, false, nil
			}
			wanted[p] = b.BookingID
		}
		decided[i].Status, decided[i].Reason, decided[i].Conflicts = domain.BookingConfirmed, "", nil
		decided[i].DecidedAt, decided[i].CancelledAt = nil, nil
	}
	if len(index) < len(commands) {
		return nil, false, nil
	}
	err := db.engine.write(ctx, func(tx session) error {
		found := 0
		confirm := db.confirm(decided, func(id domain.BookingID, created, at instant) {
			b := &decided[index[id]]
			b.CreatedAt, b.DecidedAt = created.time(), at.at
			found++
		})
		if err := tx.run(ctx, confirm, db.sell(wanted), db.note("book", ids, decided)); err != nil {
			return err
		}
		if found < len(commands) {
			return errNotPlain
		}
		return nil
	})
	if errors.Is(err, errNotPlain) || err != nil && db.engine.refused(err) {
		return nil, false, nil
	}
	outcomes := make([]BookingOutcome, len(decided))
	for i, b := range decided {
		outcomes[i].Booking = b
	}
	return outcomes, true, err
}

// confirm makes the statement that confirms those bookings that wait and are stored just
// as given; row is called for each of them.
func (db *DB) confirm(bookings []domain.Booking, row func(id domain.BookingID, created, decided instant)) statement {
	sorted := slices.SortedFunc(slices.Values(bookings), func(a, b domain.Booking) int { return cmp.Compare(a.BookingID, b.BookingID) })
	columns := []struct {
		name string
		of   func(domain.Booking) string
	}{
		{"id", func(b domain.Booking) string { return string(b.BookingID) }},
		{"command_id", func(b domain.Booking) string { return string(b.CommandID) }},
		{"show_id", func(b domain.Booking) string { return string(b.ShowID) }},
		{"person_id", func(b domain.Booking) string { return string(b.PersonID) }},
		{"request_id", func(b domain.Booking) string { return string(b.RequestID) }},
		{"hold_id", func(b domain.Booking) string { return string(b.HoldID) }},
		{"seats", func(b domain.Booking) string { return encodeSeats(b.Seats) }},
	}
	prices := make([]int64, len(sorted))
	for i, b := range sorted {
		prices[i] = int64(b.Price)
	}
	given, same := []column{{"asked_price", prices}}, "price = r.asked_price"
	for _, c := range columns {
		values := make([]string, len(sorted))
		for i, b := range sorted {
			values[i] = c.of(b)
		}
		given = append(given, column{"asked_" + c.name, values})
		same += " AND " + c.name + " = r.asked_" + c.name
	}
	from, args := db.engine.rows(1, given...)
	return statement{
		sql: `UPDATE bookings SET status = 'CONFIRMED', decided_at = ` + db.engine.now() + ` FROM ` + from + `
			WHERE ` + same + ` AND decided_at IS NULL RETURNING id, created_at, decided_at`,
		args: args,
		row: func(scan scanner) error {
			var id domain.BookingID
			var created, decided instant
			err := scan(&id, &created, &decided)
			row(id, created, decided)
			return err
		},
	}
}

// sell makes the statement that gives seats to bookings; it fails when one is sold.
func (db *DB) sell(owners map[place]domain.BookingID) statement {
	from, args := db.engine.rows(1, ownerColumns(owners)...)
	return statement{sql: `INSERT INTO booking_seats (show_id, seat_id, booking_id) SELECT r.show, r.seat, r.booking FROM ` + from, args: args}
}
