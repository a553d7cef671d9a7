package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
	"foyer/store"
	"foyer/workers"
)

const (
	bookings     = 10_000
	bookingBatch = 128
	sqlWriters   = 4
	aloneWriters = 16
)

// alone is a store that decides each booking in a transaction of its own.
type alone struct{ *store.DB }

func (a alone) Book(ctx context.Context, all []domain.Booking) ([]store.BookingOutcome, error) {
	outcomes, errs := make([]store.BookingOutcome, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for writer := range aloneWriters / sqlWriters { // the workers decide so many groups at once
		running.Go(func() {
			for i := writer; i < len(all); i += aloneWriters / sqlWriters {
				var one []store.BookingOutcome
				if one, errs[i] = a.DB.Book(ctx, all[i:i+1]); errs[i] == nil {
					outcomes[i] = one[0]
				}
			}
		})
	}
	running.Wait()
	return outcomes, errors.Join(errs...)
}

// BenchmarkBooking sells two seats each to ten thousand people.
func BenchmarkBooking(b *testing.B) {
	s := newStage(b)
	Comparison{
		Name: "streams-4-booking", Title: "Bookings, from the stream to acknowledged",
		About: fmt.Sprintf("%d bookings of two seats. Foyer: read from the stream, decided in SQL, settled in Redis, told to everybody, the freed slot announced, acknowledged. "+
			"The same with a transaction for each booking, %d at once. "+
			"The others do the SQL alone: rows inserted for %d bookings, their seats and their command ids in one transaction, on %d connections; "+
			"and the same effect as Foyer's in one transaction for each, a statement after the other, on %d connections.", bookings, aloneWriters, bookingBatch, sqlWriters, aloneWriters),
		Servers: s.servers,
		Metrics: []Metric{{"rate", "bookings/s"}, {"cpu", "CPU of the process, µs a booking"}, {"redis", "CPU of Redis, µs a booking"}},
		Variants: []Variant{
			{"Foyer", func(b *testing.B) Sample { return s.bookFromStream(b, s.store) }},
			{"Foyer, one transaction each", func(b *testing.B) Sample { return s.bookFromStream(b, alone{s.store}) }},
			{"store.Book alone, 4 callers", s.bookInStore},
			{"raw batched inserts", s.insertBatches}, {"one transaction each", s.insertEach},
		},
		Goals: []Goal{
			{Text: "at least 60 % of raw batched inserts", Metric: "rate", Variant: "Foyer", Against: "raw batched inserts", AtLeast: 0.6},
			{Text: "at least 4 times one transaction each, from the stream to acknowledged", Metric: "rate", Variant: "Foyer", Against: "Foyer, one transaction each", AtLeast: 4},
			{Text: "at least 4 times one transaction each, of the SQL alone", Metric: "rate", Variant: "Foyer", Against: "one transaction each", AtLeast: 4},
		},
	}.Run(b)
}

func bookingRate(m Meter) Sample {
	wall, cpu := m.Read()
	return Sample{"rate": bookings / wall.Seconds(), "cpu": cpu.Seconds() * 1e6 / bookings}
}

// pending are bookings on their way: recorded, their seats held for them.
func (s *stage) pending(b *testing.B, inRedis bool) []domain.Booking {
	b.Helper()
	show := s.newShow(b, nil)
	all := make([]domain.Booking, bookings)
	each(b, bookings, func(i int) error {
		person := fmt.Sprintf("%s-%d", show.ID, i)
		row, number := i/125+1, 2*(i%125)+1
		booking := domain.Booking{
			BookingID: domain.BookingID(domain.NewID()), CommandID: domain.CommandID(domain.NewID()), ShowID: show.ID,
			PersonID: domain.PersonID(person), RequestID: domain.RequestID("r" + person), HoldID: domain.HoldID(domain.NewID()),
			Seats: []domain.SeatID{domain.NewSeatID("A", row, number), domain.NewSeatID("A", row, number+1)}, Price: 2000,
			Status: domain.BookingPending,
		}
		if inRedis {
			if err := s.hold(b.Context(), booking); err != nil {
				return err
			}
		}
		var err error
		all[i], _, err = s.store.RecordBooking(b.Context(), domain.BookingRequest{Booking: booking, Key: "k", Fingerprint: "f"})
		return err
	})
	_, err := s.sql.Exec(b.Context(), "VACUUM ANALYZE")
	require.NoError(b, err)
	return all
}

func (s *stage) hold(ctx context.Context, booking domain.Booking) error {
	if _, _, err := s.steps.Join(ctx, lua.JoinRequest{ShowID: booking.ShowID, RequestID: booking.RequestID}); err != nil {
		return err
	}
	if _, err := s.steps.Claim(ctx, booking.ShowID, booking.RequestID); err != nil {
		return err
	}
	_, err := s.steps.Hold(ctx, lua.HoldRequest{
		ShowID: booking.ShowID, RequestID: booking.RequestID, HoldID: booking.HoldID, Candidates: [][]domain.SeatID{booking.Seats},
	})
	if err != nil {
		return err
	}
	_, _, err = s.steps.BeginBooking(ctx, booking.ShowID, booking.RequestID, booking.HoldID, booking.BookingID)
	return err
}

func (s *stage) bookFromStream(b *testing.B, on workers.Store) Sample {
	require.NoError(b, s.rdb.FlushDB(b.Context()).Err())
	all := s.pending(b, true)
	sender := s.client()
	defer sender.Close()
	commands, err := events.NewCommands(sender, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	each(b, len(all), func(i int) error {
		return commands.BookSeats(b.Context(), all[i].CommandID, events.BookSeats{Booking: all[i]})
	})
	before := s.redisTime(b)
	meter := StartMeter()
	stop := s.work(b, events.GroupBooking, on)
	s.settled(b, events.StreamBooking)
	sample := bookingRate(meter)
	sample["redis"] = (s.redisTime(b) - before).Seconds() * 1e6 / bookings
	stop()
	s.allSold(b, all)
	return sample
}

func (s *stage) bookInStore(b *testing.B) Sample {
	all := s.pending(b, false)
	meter := StartMeter()
	groups(b, all, sqlWriters, bookingBatch, func(group []domain.Booking) error {
		_, err := s.store.Book(b.Context(), group)
		return err
	})
	sample := bookingRate(meter)
	s.allSold(b, all)
	return sample
}

func (s *stage) allSold(b *testing.B, all []domain.Booking) {
	b.Helper()
	sold, err := s.store.SoldCount(b.Context(), all[0].ShowID)
	require.NoError(b, err)
	require.EqualValues(b, 2*len(all), sold)
}

// groups calls do with parts of all from several goroutines.
func groups(b *testing.B, all []domain.Booking, callers, size int, do func([]domain.Booking) error) {
	b.Helper()
	parts := slices.Collect(slices.Chunk(all, size))
	var running sync.WaitGroup
	failed := make(chan error, callers)
	for caller := range callers {
		running.Go(func() {
			for i := caller; i < len(parts); i += callers {
				if err := do(parts[i]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	running.Wait()
	close(failed)
	require.NoError(b, <-failed)
}

func (s *stage) insertBatches(b *testing.B) Sample {
	all := s.pending(b, false)
	for i := range all { // other rows than those that are there
		all[i].BookingID, all[i].CommandID = domain.BookingID(domain.NewID()), domain.CommandID(domain.NewID())
		all[i].HoldID = domain.HoldID(domain.NewID())
	}
	meter := StartMeter()
	groups(b, all, sqlWriters, bookingBatch, func(group []domain.Booking) error { return insertGroup(b.Context(), s.sql, group) })
	sample := bookingRate(meter)
	s.allSold(b, all)
	return sample
}

func insertGroup(ctx context.Context, pool *pgxpool.Pool, group []domain.Booking) error {
	var ids, commands, shows, persons, requests, holds, seats, seatShows, seatIDs, seatBookings []string
	for _, booking := range group {
		ids, commands, shows = append(ids, string(booking.BookingID)), append(commands, string(booking.CommandID)), append(shows, string(booking.ShowID))
		persons, requests = append(persons, string(booking.PersonID)), append(requests, string(booking.RequestID))
		holds = append(holds, string(booking.HoldID))
		text, err := json.Marshal(booking.Seats)
		if err != nil {
			return err
		}
		seats = append(seats, string(text))
		for _, seat := range booking.Seats {
			seatShows, seatIDs = append(seatShows, string(booking.ShowID)), append(seatIDs, string(seat))
			seatBookings = append(seatBookings, string(booking.BookingID))
		}
	}
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	batch.Queue(`INSERT INTO bookings (id, command_id, show_id, person_id, request_id, hold_id, fingerprint, seats, price, status, created_at, decided_at)
		SELECT id, command, show, person, request, hold, 'f', seats, 2000, 'CONFIRMED', now(), now()
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS r(id, command, show, person, request, hold, seats)`,
		ids, commands, shows, persons, requests, holds, seats)
	batch.Queue(`INSERT INTO booking_seats (show_id, seat_id, booking_id) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])`, seatShows, seatIDs, seatBookings)
	batch.Queue(`INSERT INTO handled_commands (id, kind, booking_id, outcome, handled_at)
		SELECT command, 'book', id, 'CONFIRMED', now() FROM unnest($1::text[], $2::text[]) AS r(command, id)`, commands, ids)
	batch.Queue("COMMIT")
	return pool.SendBatch(ctx, batch).Close()
}

func (s *stage) insertEach(b *testing.B) Sample {
	all := s.pending(b, false)
	meter := StartMeter()
	groups(b, all, aloneWriters, 1, func(one []domain.Booking) error {
		booking := one[0]
		return pgx.BeginFunc(b.Context(), s.sql, func(tx pgx.Tx) error {
			ctx := b.Context()
			var status string
			if err := tx.QueryRow(ctx, `SELECT status FROM bookings WHERE id = $1 FOR UPDATE`, booking.BookingID).Scan(&status); err != nil {
				return err
			}
			for _, seat := range booking.Seats {
				if _, err := tx.Exec(ctx, `INSERT INTO booking_seats (show_id, seat_id, booking_id) VALUES ($1, $2, $3)`, booking.ShowID, seat, booking.BookingID); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, `INSERT INTO handled_commands (id, kind, booking_id, outcome, handled_at) VALUES ($1, 'book', $2, 'CONFIRMED', now())`,
				booking.CommandID, booking.BookingID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE bookings SET status = 'CONFIRMED', decided_at = now() WHERE id = $1`, booking.BookingID)
			return err
		})
	})
	sample := bookingRate(meter)
	s.allSold(b, all)
	return sample
}
