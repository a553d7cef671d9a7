package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"foyer/domain"
)

// maxBookGroup is how many bookings are decided in one transaction.
const maxBookGroup = 128

// BookingOutcome is what became of one command given to Book.
type BookingOutcome struct {
	Booking  domain.Booking    // as it is stored now
	SoldBy   []domain.SoldSeat // who has the conflicting seats now, of a rejected booking
	Repeated bool              // the booking had been decided before; nothing was changed
	Err      error             // this command failed, and by itself: the others are not affected
}

// Book decides bookings: each is CONFIRMED with all its seats, or REJECTED with
// domain.ReasonSeatUnavailable and every seat in conflict. Those given first win.
// A booking that was decided before, or given twice, is returned as it is. One
// that SQL does not have is recorded from the command first.
//
// The outcomes stand in the order of the commands. The error is not nil when the
// database failed: then nothing is known of any command, and all may be repeated.
func (db *DB) Book(ctx context.Context, commands []domain.Booking) ([]BookingOutcome, error) {
	outcomes := make([]BookingOutcome, 0, len(commands))
	for group := range slices.Chunk(commands, maxBookGroup) {
		part, err := db.bookGroup(ctx, group)
		if err != nil {
			return nil, fmt.Errorf("book %d commands: %w", len(group), err)
		}
		outcomes = append(outcomes, part...)
	}
	return outcomes, nil
}

func (db *DB) bookGroup(ctx context.Context, commands []domain.Booking) ([]BookingOutcome, error) {
	outcomes, done, err := db.bookPlainly(ctx, commands)
	if done {
		return outcomes, err
	}
	err = db.engine.write(ctx, func(tx session) error {
		g := &bookGroup{db: db, tx: tx, commands: commands, outcomes: make([]BookingOutcome, len(commands))}
		outcomes = g.outcomes
		return g.decide(ctx)
	})
	switch {
	case err == nil:
		return outcomes, nil
	case !errors.Is(err, domain.ErrIdempotencyMismatch) && !db.engine.refused(err):
		return nil, err
	case len(commands) == 1:
		return []BookingOutcome{{Booking: commands[0], Err: fmt.Errorf("book %s: %w", commands[0].BookingID, err)}}, nil
	}
	// One of them spoils the transaction of all. Alone, only that one fails.
	outcomes = nil
	for i := range commands {
		alone, err := db.bookGroup(ctx, commands[i:i+1])
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, alone...)
	}
	return outcomes, nil
}

// bookGroup decides bookings in one transaction. Rows are locked in the order of
// booking ids, then seats in the order of (show, seat): whoever follows this
// order never waits in a circle.
type bookGroup struct {
	db       *DB
	tx       session
	commands []domain.Booking
	outcomes []BookingOutcome // one for each command

	pending []int // indexes of the commands to decide, in order, each booking once
}

// place names a seat among those of all shows.
type place struct {
	show domain.ShowID
	seat domain.SeatID
}

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(a.show, b.show), cmp.Compare(a.seat, b.seat))
}

func (g *bookGroup) decide(ctx context.Context) error {
	if err := g.load(ctx); err != nil {
		return err
	}
	if len(g.pending) > 0 {
		claims := g.claims()
		won, err := g.claim(ctx, claims)
		if err != nil {
			return err
		}
		owners := g.resolve(won)
		if err := g.correct(ctx, claims, won, owners); err != nil {
			return err
		}
		if err := g.settle(ctx); err != nil {
			return err
		}
	}
	return g.nameBuyers(ctx)
}

// load locks the stored bookings, recording those that are missing, and finds
// which are to be decided. The status is read under the lock: what it was before
// says nothing.
func (g *bookGroup) load(ctx context.Context) error {
	for i, b := range g.commands {
		if err := checkBooking(domain.BookingRequest{Booking: b}); err != nil {
			g.fail(i, err)
		}
	}
	stored, err := g.lock(ctx)
	if err != nil {
		return err
	}
	recorded, err := g.recordMissing(ctx, stored)
	if err != nil {
		return err
	}
	if recorded {
		// Another may have recorded it in the same moment, so lock these too.
		if stored, err = g.lock(ctx); err != nil {
			return err
		}
	}
	taken := map[domain.BookingID]bool{} // by an earlier command of the group
	for i, command := range g.commands {
		if g.outcomes[i].Err != nil {
			continue
		}
		b := stored[command.BookingID]
		repeated := b.Status != domain.BookingPending || taken[b.BookingID]
		g.outcomes[i] = BookingOutcome{Booking: b, Repeated: repeated}
		if !repeated {
			g.pending = append(g.pending, i)
		}
		taken[b.BookingID] = true
	}
	return nil
}

func (g *bookGroup) fail(i int, err error) {
	b := g.commands[i]
	g.outcomes[i] = BookingOutcome{Booking: b, Err: fmt.Errorf("book %s: %w", b.BookingID, err)}
}

// lock returns the stored bookings of the commands that have not failed.
func (g *bookGroup) lock(ctx context.Context) (map[domain.BookingID]domain.Booking, error) {
	var ids []string
	for i, b := range g.commands {
		if g.outcomes[i].Err == nil {
			ids = append(ids, string(b.BookingID))
		}
	}
	from, args := g.db.engine.rows(1, column{"booking", ids})
	found, err := query(ctx, g.tx, scanBooking, `SELECT `+bookingColumns+` FROM bookings
		WHERE id IN (SELECT booking FROM `+from+`) ORDER BY id`+g.db.engine.locked("bookings"), args...)
	stored := make(map[domain.BookingID]domain.Booking, len(found))
	for _, b := range found {
		stored[b.BookingID] = b
	}
	return stored, err
}

// recordMissing records bookings from their commands, in the order of their ids
// like all locking; it reports whether it had to.
func (g *bookGroup) recordMissing(ctx context.Context, stored map[domain.BookingID]domain.Booking) (bool, error) {
	var missing []int
	for i, command := range g.commands {
		if _, ok := stored[command.BookingID]; !ok && g.outcomes[i].Err == nil {
			missing = append(missing, i)
		}
	}
	slices.SortStableFunc(missing, func(a, b int) int {
		return cmp.Compare(g.commands[a].BookingID, g.commands[b].BookingID)
	})
	for _, i := range missing {
		command := g.commands[i]
		b, _, err := g.db.recordBooking(ctx, g.tx, domain.BookingRequest{Booking: command})
		switch {
		case errors.Is(err, domain.ErrShowNotFound), errors.Is(err, domain.ErrHoldNotFound), errors.Is(err, domain.ErrIdempotencyMismatch):
			g.fail(i, err)
		case err != nil:
			return false, err
		case b.BookingID != command.BookingID:
			g.fail(i, fmt.Errorf("%w: the hold is booked as %s", domain.ErrIdempotencyMismatch, b.BookingID))
		}
	}
	return len(missing) > 0, nil
}

// claims says for every seat wanted which booking asked for it first.
func (g *bookGroup) claims() map[place]domain.BookingID {
	claims := map[place]domain.BookingID{}
	for _, i := range g.pending {
		b := g.outcomes[i].Booking
		for _, seat := range b.Seats {
			if p := (place{b.ShowID, seat}); claims[p] == "" {
				claims[p] = b.BookingID
			}
		}
	}
	return claims
}

// claim inserts every seat that is free for the booking that asked first, and
// returns those. A seat that another transaction is selling is waited for.
func (g *bookGroup) claim(ctx context.Context, owners map[place]domain.BookingID) (map[place]bool, error) {
	from, args := g.db.engine.rows(1, ownerColumns(owners)...)
	inserted, err := query(ctx, g.tx, scanPlace, `
		INSERT INTO booking_seats (show_id, seat_id, booking_id)
		SELECT r.show, r.seat, r.booking FROM `+from+` WHERE true
		ON CONFLICT (show_id, seat_id) DO NOTHING RETURNING show_id, seat_id`, args...)
	won := make(map[place]bool, len(inserted))
	for _, p := range inserted {
		won[p] = true
	}
	return won, err
}

func scanPlace(scan scanner) (place, error) {
	var p place
	err := scan(&p.show, &p.seat)
	return p, err
}

// ownerColumns lists seats and their bookings in the order of locking.
func ownerColumns(owners map[place]domain.BookingID) []column {
	places := slices.SortedFunc(maps.Keys(owners), place.compare)
	shows, seats, bookings := make([]string, len(places)), make([]string, len(places)), make([]string, len(places))
	for i, p := range places {
		shows[i], seats[i], bookings[i] = string(p.show), string(p.seat), string(owners[p])
	}
	return []column{{"show", shows}, {"seat", seats}, {"booking", bookings}}
}

// resolve gives the seats won to bookings in the order of the commands, to each
// all of its seats or none, and returns who has which.
func (g *bookGroup) resolve(won map[place]bool) map[place]domain.BookingID {
	owners := map[place]domain.BookingID{}
	for _, i := range g.pending {
		b := &g.outcomes[i].Booking
		b.Conflicts = nil
		for _, seat := range b.Seats {
			if p := (place{b.ShowID, seat}); !won[p] || owners[p] != "" {
				b.Conflicts = append(b.Conflicts, seat)
			}
		}
		if len(b.Conflicts) > 0 {
			b.Status, b.Reason = domain.BookingRejected, domain.ReasonSeatUnavailable
			continue
		}
		b.Status = domain.BookingConfirmed
		for _, seat := range b.Seats {
			owners[place{b.ShowID, seat}] = b.BookingID
		}
	}
	return owners
}

// correct takes seats back from bookings that asked for them first and then were
// rejected for another seat, and gives them to whoever came next in the group.
func (g *bookGroup) correct(ctx context.Context, claims map[place]domain.BookingID, won map[place]bool, owners map[place]domain.BookingID) error {
	wrong, right := map[place]domain.BookingID{}, map[place]domain.BookingID{}
	for p := range won {
		if owners[p] == claims[p] {
			continue
		}
		wrong[p] = claims[p]
		if owners[p] != "" {
			right[p] = owners[p]
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	from, args := g.db.engine.rows(1, ownerColumns(wrong)...)
	back := statement{
		sql:  `DELETE FROM booking_seats WHERE (show_id, seat_id, booking_id) IN (SELECT show, seat, booking FROM ` + from + `)`,
		args: args,
	}
	if err := g.tx.run(ctx, back); err != nil {
		return err
	}
	_, err := g.claim(ctx, right)
	return err
}

// settle writes the decisions and, with them, that the commands had their effect.
func (g *bookGroup) settle(ctx context.Context) error {
	index := make(map[domain.BookingID]int, len(g.pending))
	decided := make([]domain.Booking, len(g.pending))
	commands := make([]domain.CommandID, len(g.pending))
	for n, i := range g.pending {
		decided[n], commands[n] = g.outcomes[i].Booking, g.commands[i].CommandID
		index[decided[n].BookingID] = i
	}
	noted := 0
	from, args := g.db.engine.rows(1, decisionColumns(decided)...)
	update := statement{
		sql: `UPDATE bookings SET status = r.outcome, reason = r.why, conflicts = r.against, decided_at = ` + g.db.engine.now() + `
			FROM ` + from + ` WHERE id = r.booking RETURNING id, decided_at`,
		args: args,
		row: func(scan scanner) error {
			var id domain.BookingID
			var at instant
			err := scan(&id, &at)
			g.outcomes[index[id]].Booking.DecidedAt = at.at
			return err
		},
	}
	if err := g.tx.run(ctx, g.db.handled("book", commands, decided, &noted), update); err != nil {
		return err
	}
	if err := allHandled(commands, noted); err != nil {
		return err
	}
	for i, o := range g.outcomes { // those given twice show the same decision
		if at, ok := index[o.Booking.BookingID]; ok && o.Err == nil {
			g.outcomes[i].Booking = g.outcomes[at].Booking
		}
	}
	return nil
}

func decisionColumns(decided []domain.Booking) []column {
	ids, outcomes := make([]string, len(decided)), make([]string, len(decided))
	reasons, conflicts := make([]string, len(decided)), make([]string, len(decided))
	for i, b := range decided {
		ids[i], outcomes[i] = string(b.BookingID), string(b.Status)
		reasons[i], conflicts[i] = b.Reason, encodeSeats(b.Conflicts)
	}
	return []column{{"booking", ids}, {"outcome", outcomes}, {"why", reasons}, {"against", conflicts}}
}

// nameBuyers tells rejected bookings who has their seats now. A seat that was
// freed since is named by nobody.
func (g *bookGroup) nameBuyers(ctx context.Context) error {
	conflicts := map[place]domain.BookingID{}
	for _, o := range g.outcomes {
		for _, seat := range o.Booking.Conflicts {
			conflicts[place{o.Booking.ShowID, seat}] = ""
		}
	}
	if len(conflicts) == 0 {
		return nil
	}
	from, args := g.db.engine.rows(1, ownerColumns(conflicts)...)
	sold, err := query(ctx, g.tx, scanSold, `
		SELECT s.show_id, s.seat_id, s.booking_id, b.request_id
		FROM `+from+` JOIN booking_seats s ON s.show_id = r.show AND s.seat_id = r.seat
		JOIN bookings b ON b.id = s.booking_id`, args...)
	if err != nil {
		return err
	}
	buyers := make(map[place]domain.SoldSeat, len(sold))
	for _, s := range sold {
		buyers[place{s.show, s.SeatID}] = s.SoldSeat
	}
	for i, o := range g.outcomes {
		for _, seat := range o.Booking.Conflicts {
			if buyer, ok := buyers[place{o.Booking.ShowID, seat}]; ok {
				g.outcomes[i].SoldBy = append(g.outcomes[i].SoldBy, buyer)
			}
		}
	}
	return nil
}
