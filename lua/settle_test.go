package lua

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// Bookings that are settled together end as if each were settled alone, in order:
// repeats change nothing, a person's slot comes free once, every changed seat is told
// once, and what the end of a place frees is told too.
func TestBookingsSettledTogetherEndAsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) {
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 4, SeatsPerRow: 10}
			s.Seating.SeatLimit, s.Queue.MaxActive, s.Queue.RatePerMinute = 10, 10, 1000
		})
		w.enter("ann", "bob", "cid")
		w.mustHold("ann", "kept", "A-4-1") // a plain hold besides what she books
		endings := []Ending{
			w.ending(domain.BookingConfirmed, "ann", "h1", "b1", "A-1-1", "A-1-2"),
			w.ending(domain.BookingConfirmed, "ann", "h2", "b2", "A-1-3"),
			w.ending(domain.BookingRejected, "bob", "h3", "b3", "A-2-1"),
			w.ending(domain.BookingConfirmed, "cid", "h4", "b4", "A-3-1"),
		}
		endings = append(endings, endings[0]) // told twice
		endings[4].Booking.Status = domain.BookingPending
		before := w.stats()
		settled, errs := w.SettleBookings(w.ctx(), append(endings, endings[3]))
		require.ErrorContains(t, errs[4], "after it was decided")
		for _, i := range []int{0, 1, 2, 3, 5} {
			require.NoError(t, errs[i], i)
		}
		require.Equal(t, []bool{true, true, true, true, false, false}, each(settled, func(s Settlement) bool { return s.Done }))
		require.Equal(t, []bool{true, false, false, true, false, false}, each(settled, func(s Settlement) bool { return s.FreedSlot }))
		require.ElementsMatch(t, []domain.Seat{
			{ID: "A-4-1", State: domain.SeatFree}, {ID: "A-1-1", State: domain.SeatSold}, {ID: "A-1-2", State: domain.SeatSold},
			{ID: "A-1-3", State: domain.SeatSold},
		}, settled[0].Seats)
		require.Empty(t, settled[1].Seats, "the first of one change tells of all")
		require.Equal(t, []domain.Seat{{ID: "A-2-1", State: domain.SeatFree}}, settled[2].Seats)
		versions := each(settled[:4], func(s Settlement) int64 { return s.Stats.SeatVersion - before.SeatVersion })
		require.Equal(t, versions[0], versions[1], "one change")
		slices.Sort(versions)
		require.Equal(t, []int64{1, 2, 3}, slices.Compact(versions)) // a script that the server did not know runs last
		after := w.stats()
		require.EqualValues(t, 4, after.Sold)
		require.EqualValues(t, 1, after.Active, "bob may choose again")
		require.Zero(t, after.Held)
	})
}

// More bookings than one script completes are all settled.
func TestManyBookingsAreSettledTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) {
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: 3*maxCompleted + 1}
		})
		var endings []Ending
		for i := range 3*maxCompleted + 1 {
			booking := w.booking(domain.RequestID(fmt.Sprint("r", i)), "none", domain.BookingID(fmt.Sprint("b", i)), domain.NewSeatID("A", 1, i+1))
			booking.Status = domain.BookingConfirmed
			endings = append(endings, Ending{Booking: booking})
		}
		settled, errs := w.SettleBookings(w.ctx(), endings)
		sold := map[domain.SeatID]int{}
		for i := range endings {
			require.NoError(t, errs[i])
			require.True(t, settled[i].Done)
			require.Equal(t, i == len(endings)-1, settled[i].SoldOutChanged, "the last one sells the show out")
			for _, seat := range settled[i].Seats {
				require.Equal(t, domain.SeatSold, seat.State)
				sold[seat.ID]++
			}
		}
		require.Len(t, sold, len(endings), "every seat is told of")
	})
}

// ending holds seats, begins their booking and decides it.
func (w *world) ending(status domain.BookingStatus, request domain.RequestID, hold domain.HoldID, booking domain.BookingID, seats ...domain.SeatID) Ending {
	w.t.Helper()
	w.mustHold(request, hold, seats...)
	_, err := w.begin(request, hold, booking)
	require.NoError(w.t, err)
	decided := w.booking(request, hold, booking, seats...)
	decided.Status = status
	return Ending{Booking: decided}
}

func each[V, Out any](values []V, of func(V) Out) []Out {
	outs := make([]Out, len(values))
	for i, value := range values {
		outs[i] = of(value)
	}
	return outs
}
