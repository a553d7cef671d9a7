package lua

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// D1, D2: the last seats in carts looked sold out, and cancelling did not bring seats back.
func TestAllHeldIsNotSoldOutAndCancellingComesBack(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) {
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: 2}
		})
		w.enter("me", "you")
		w.mustHold("me", "h1", "A-1-1", "A-1-2")
		require.Equal(t, domain.AllHeld, w.stats().Availability())
		require.Equal(t, domain.PhaseOpen, w.stats().Phase)
		_, err := w.begin("me", "h1", "b1")
		require.NoError(t, err)
		booking := w.booking("me", "h1", "b1", "A-1-1", "A-1-2")
		settled, err := w.CompleteBooking(t.Context(), booking)
		require.NoError(t, err)
		require.True(t, settled.Done && settled.FreedSlot && settled.SoldOutChanged)
		require.Equal(t, domain.PhaseSoldOut, settled.Stats.Phase)
		require.EqualValues(t, 1, rdb.Exists(t.Context(), SoldOutKey(string(w.show.ID))).Val())

		cancelled, err := w.CancelBooking(t.Context(), booking)
		require.NoError(t, err)
		require.True(t, cancelled.Done && cancelled.SoldOutChanged)
		require.ElementsMatch(t, []domain.Seat{{ID: "A-1-1", State: domain.SeatFree}, {ID: "A-1-2", State: domain.SeatFree}}, cancelled.Seats)
		require.Equal(t, domain.PhaseOpen, cancelled.Stats.Phase)
		require.EqualValues(t, 0, rdb.Exists(t.Context(), SoldOutKey(string(w.show.ID))).Val())
		w.mustHold("you", "h2", "A-1-1")
		w.enter("me")
		w.mustHold("me", "h3", "A-1-2") // no longer counted for the limit
	})
}

// D7: a counter that was replayed drifted. Each booking settles once, in any order of
// repeats, and a completion that comes after the cancellation is void.
func TestSettlingIsIdempotent(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("me")
		w.buy("me", "b1", "A-1-1", "A-1-2")
		booking := w.booking("me", "hold-of-b1", "b1", "A-1-1", "A-1-2")
		w.enter("me") // a new visit must not be ended by the repeat
		for range 3 {
			again, err := w.CompleteBooking(t.Context(), booking)
			require.NoError(t, err)
			require.False(t, again.Done || again.FreedSlot)
			require.Empty(t, again.Seats)
			require.EqualValues(t, 2, again.Stats.Sold)
		}
		require.Equal(t, domain.StatusActive, w.status("me"))
		for i := range 3 {
			cancelled, err := w.CancelBooking(t.Context(), booking)
			require.NoError(t, err)
			require.Equal(t, i == 0, cancelled.Done)
			require.EqualValues(t, 0, cancelled.Stats.Sold)
		}
		late, err := w.CompleteBooking(t.Context(), booking)
		require.NoError(t, err)
		require.False(t, late.Done)
		require.Empty(t, w.seatStates(0, ""))

		w.mustHold("me", "h2", "A-2-1")
		_, err = w.begin("me", "h2", "b2")
		require.NoError(t, err)
		refused := w.booking("me", "h2", "b2", "A-2-1")
		for i := range 2 {
			rejected, err := w.RejectBooking(t.Context(), refused, nil)
			require.NoError(t, err)
			require.Equal(t, i == 0, rejected.Done)
		}
		require.Empty(t, w.seatStates(0, ""))
		require.Equal(t, domain.StatusActive, w.status("me"), "who was refused may try again")
	})
}

// A hold being booked cannot lapse; beginning again is the same intent, and a call
// that was given up on does not block it for ever.
func TestBeginningABookingAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 90 })
		w.enter("me")
		w.mustHold("me", "h1", "A-1-1")
		for range 2 { // the same call sent twice
			begun, err := w.begin("me", "h1", "b1")
			require.NoError(t, err)
			require.Equal(t, domain.BookingID("b1"), begun)
		}
		_, err := w.begin("me", "h1", "b2")
		require.ErrorIs(t, err, domain.ErrInProgress)
		w.travel(10 * time.Second)
		begun, err := w.begin("me", "h1", "b3")
		require.NoError(t, err)
		require.Equal(t, domain.BookingID("b1"), begun)
		require.NoError(t, w.BookingPublished(t.Context(), w.show.ID, "h1", "b1"))
		require.ErrorIs(t, w.AbortBooking(t.Context(), w.show.ID, "h1", "b1"), domain.ErrInProgress)
		w.travel(2 * time.Minute) // hold time and session are over
		w.admit()
		begun, err = w.begin("me", "h1", "b4")
		require.NoError(t, err)
		require.Equal(t, domain.BookingID("b1"), begun)
		require.Equal(t, map[domain.SeatID]string{"A-1-1": "HELD h1"}, w.seatStates(0, "me"))
		stuck, err := w.StuckBookings(t.Context(), w.show.ID, time.Minute, 10)
		require.NoError(t, err)
		require.Equal(t, []StuckBooking{{HoldID: "h1", BookingID: "b1", RequestID: "me", Seats: []domain.SeatID{"A-1-1"}}}, stuck)
		settled, err := w.CompleteBooking(t.Context(), w.booking("me", "h1", "b1", "A-1-1"))
		require.NoError(t, err)
		require.True(t, settled.Done)
		require.False(t, settled.FreedSlot, "the session was over already")
		require.NoError(t, w.BookingPublished(t.Context(), w.show.ID, "h1", "b1"), "settled meanwhile")
		stuck, err = w.StuckBookings(t.Context(), w.show.ID, 0, 10)
		require.NoError(t, err)
		require.Empty(t, stuck)
	})
}

// Aborting gives the old deadline back, not a new one, and leaves nothing held for
// somebody who is gone.
func TestAbortingABooking(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me", "you")
		hold := w.mustHold("me", "h1", "A-1-1")
		_, err := w.begin("me", "h1", "b1")
		require.NoError(t, err)
		w.travel(20 * time.Second)
		for range 2 {
			require.NoError(t, w.AbortBooking(t.Context(), w.show.ID, "h1", "b1"))
		}
		holds, err := w.Holds(t.Context(), w.show.ID, "me")
		require.NoError(t, err)
		require.Equal(t, hold.ExpiresAt, holds[0].ExpiresAt)
		w.travel(40 * time.Second)
		require.Empty(t, w.seatStates(0, "me"))

		w.mustHold("you", "h2", "A-1-2")
		_, err = w.begin("you", "h2", "b2")
		require.NoError(t, err)
		require.Empty(t, w.leave("you").FreedSeats, "what is being booked stays")
		require.NoError(t, w.AbortBooking(t.Context(), w.show.ID, "h2", "b2"))
		require.NotContains(t, w.seatStates(0, ""), domain.SeatID("A-1-2"))
	})
}

// SQL refused a booking because others had its seats: they are marked sold by whom SQL
// says, the rest is free, and the others' own completion does not count them twice.
func TestRejectionTellsWhoseSeatsTheyAre(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me", "you")
		w.mustHold("me", "h1", "A-1-1", "A-1-2")
		_, err := w.begin("me", "h1", "b1")
		require.NoError(t, err)
		rejected, err := w.RejectBooking(t.Context(), w.booking("me", "h1", "b1", "A-1-1", "A-1-2"),
			[]domain.SoldSeat{{SeatID: "A-1-2", BookingID: "b7", RequestID: "you"}})
		require.NoError(t, err)
		require.True(t, rejected.Done)
		require.ElementsMatch(t, []domain.Seat{{ID: "A-1-1", State: domain.SeatFree}, {ID: "A-1-2", State: domain.SeatSold}}, rejected.Seats)
		_, err = w.CompleteBooking(t.Context(), w.booking("you", "h7", "b7", "A-1-2"))
		require.NoError(t, err)
		require.EqualValues(t, 1, w.stats().Sold)
	})
}

// Redis was lost in mid-sale: sold seats and limits come back from SQL, places do not,
// and a completion that was under way counts nothing twice.
func TestRestoringAShow(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me")
		w.buy("me", "b1", "A-1-1", "A-1-2")
		w.enter("you")
		w.mustHold("you", "h2", "A-2-1")
		_, err := w.begin("you", "h2", "b2")
		require.NoError(t, err)
		id := string(w.show.ID)
		require.NoError(t, rdb.Del(t.Context(), "show:{"+id+"}").Err(), "even if only a part was lost")

		loads := 0
		w.load = nil
		steps := New(rdb, WithLoader(func(ctx context.Context, show domain.ShowID) error {
			loads++
			w.show.Epoch++
			restored, err := w.Restore(ctx, w.show, append(soldTo("me", "b1", "A-1-1", "A-1-2"), soldTo("you", "b2", "A-2-1")...))
			require.True(t, restored)
			return err
		}))
		_, err = steps.Place(t.Context(), w.show.ID, "you")
		require.ErrorIs(t, err, domain.ErrNotJoined)
		require.Equal(t, 1, loads)
		stats := w.stats()
		require.EqualValues(t, 2, stats.Epoch)
		require.EqualValues(t, 3, stats.Sold)
		require.EqualValues(t, 0, stats.Held)
		settled, err := w.CompleteBooking(t.Context(), w.booking("you", "h2", "b2", "A-2-1"))
		require.NoError(t, err)
		require.False(t, settled.Done, "it was sold when the show was restored; a session begun since goes on")
		require.EqualValues(t, 3, settled.Stats.Sold)
		w.enter("me")
		_, err = w.hold("me", "h3", "A-1-3", "A-1-4", "A-1-5")
		require.True(t, isA[*domain.LimitError](err), "two were bought before")
		w.enter("new")
		_, err = w.hold("new", "h4", "A-1-1")
		require.True(t, isA[*domain.SeatsUnavailableError](err))
		restored, err := w.Restore(t.Context(), w.show, nil)
		require.NoError(t, err)
		require.False(t, restored, "it is there")
	})
}
