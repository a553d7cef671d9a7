package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/store"
)

func TestLedgerTellsWhatWasSold(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show, other := newShow(t, db, 2, 5), newShow(t, db, 2, 5)
		confirmed := record(t, db, newBooking(show.ID, "A-1-1", "A-1-2"))
		rejected := record(t, db, newBooking(show.ID, "A-1-2"))
		cancelled := record(t, db, newBooking(show.ID, "A-2-1"))
		pending := record(t, db, newBooking(show.ID, "A-2-2"))
		elsewhere := record(t, db, newBooking(other.ID, "A-1-1"))
		for _, b := range []domain.Booking{confirmed, rejected, cancelled, elsewhere} {
			require.NoError(t, book(t, db, b).Err)
		}
		_, err := db.CancelBooking(t.Context(), "cancel-it", cancelled.BookingID)
		require.NoError(t, err)

		l, err := db.Ledger(t.Context(), show.ID)
		require.NoError(t, err)
		require.Equal(t, show.ID, l.Show.ID)
		require.Len(t, l.Bookings, 4)
		require.Equal(t, domain.BookingRejected, l.Bookings[rejected.BookingID].Status)
		require.Equal(t, domain.BookingPending, l.Bookings[pending.BookingID].Status)
		age := l.Bookings[pending.BookingID].Age
		require.True(t, age >= 0 && age < time.Minute, "%s", age)
		require.Equal(t, []domain.SoldSeat{
			{SeatID: "A-1-1", BookingID: confirmed.BookingID, RequestID: confirmed.RequestID},
			{SeatID: "A-1-2", BookingID: confirmed.BookingID, RequestID: confirmed.RequestID},
		}, l.Sold)
		require.ElementsMatch(t, []store.HandledCommand{
			{CommandID: confirmed.CommandID, Kind: "book", BookingID: confirmed.BookingID, Outcome: domain.BookingConfirmed},
			{CommandID: rejected.CommandID, Kind: "book", BookingID: rejected.BookingID, Outcome: domain.BookingRejected},
			{CommandID: cancelled.CommandID, Kind: "book", BookingID: cancelled.BookingID, Outcome: domain.BookingConfirmed},
			{CommandID: "cancel-it", Kind: "cancel", BookingID: cancelled.BookingID, Outcome: domain.BookingCancelled},
		}, l.Handled)

		waiting, err := db.PendingBookingsOf(t.Context(), show.ID, 10)
		require.NoError(t, err)
		require.Len(t, waiting, 1)
		require.Equal(t, pending.BookingID, waiting[0].BookingID)
		n, err := db.SoldCount(t.Context(), show.ID)
		require.NoError(t, err)
		require.Equal(t, int64(2), n)
		_, err = db.Ledger(t.Context(), testenv.ShowID(t))
		require.ErrorIs(t, err, domain.ErrShowNotFound)
	})
}
