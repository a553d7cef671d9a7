package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/store"
)

// A cancellation that was accepted stood on its stream alone, and was gone with it. Here
// it is recorded before it is sent, once, and found until it is done or given up on.
func TestACancellationIsFoundUntilItIsDone(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db, ctx := open(), t.Context()
		show, other := newShow(t, db, 1, 3), newShow(t, db, 1, 3)
		found := func(age time.Duration) (ids []domain.BookingID) {
			asked, err := db.Cancellations(ctx, age, 10)
			require.NoError(t, err)
			for _, b := range asked {
				ids = append(ids, b.BookingID)
			}
			return ids
		}
		waiting, kept := record(t, db, newBooking(show.ID, "A-1-1")), record(t, db, newBooking(other.ID, "A-1-1"))
		_, err := db.AskCancel(ctx, waiting.BookingID)
		require.ErrorIs(t, err, domain.ErrInProgress)
		_, err = db.AskCancel(ctx, "nothing")
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
		lost := record(t, db, newBooking(show.ID, "A-1-1"))
		require.Equal(t, domain.BookingConfirmed, book(t, db, waiting).Booking.Status)
		require.Equal(t, domain.BookingConfirmed, book(t, db, kept).Booking.Status)
		require.Equal(t, domain.BookingRejected, book(t, db, lost).Booking.Status)
		_, err = db.AskCancel(ctx, lost.BookingID)
		require.ErrorIs(t, err, domain.ErrNotCancellable)
		require.Empty(t, found(0))

		for _, b := range []domain.Booking{waiting, kept, waiting} {
			asked, err := db.AskCancel(ctx, b.BookingID)
			require.NoError(t, err)
			require.Equal(t, domain.BookingConfirmed, asked.Status, "it is not done by being asked for")
		}
		require.Equal(t, []domain.BookingID{waiting.BookingID, kept.BookingID}, found(0), "oldest first")
		require.Empty(t, found(time.Hour))
		of, err := db.CancellationsOf(ctx, show.ID, 10)
		require.NoError(t, err)
		require.Len(t, of, 1)
		ledger, err := db.Ledger(ctx, show.ID)
		require.NoError(t, err)
		require.True(t, ledger.Bookings[waiting.BookingID].Cancelling())
		require.False(t, ledger.Bookings[lost.BookingID].Cancelling())

		withdrawn, err := db.WithdrawCancel(ctx, kept.BookingID)
		require.NoError(t, err)
		require.Equal(t, domain.BookingConfirmed, withdrawn.Status)
		cancelled, err := db.CancelBooking(ctx, waiting.CancelCommand(), waiting.BookingID)
		require.NoError(t, err)
		require.Empty(t, found(0))
		for _, again := range []func() (domain.Booking, error){
			func() (domain.Booking, error) { return db.AskCancel(ctx, waiting.BookingID) },
			func() (domain.Booking, error) { return db.WithdrawCancel(ctx, waiting.BookingID) },
		} {
			b, err := again()
			require.NoError(t, err)
			require.Equal(t, cancelled, b)
		}
		ledger, err = db.Ledger(ctx, show.ID)
		require.NoError(t, err)
		require.False(t, ledger.Bookings[waiting.BookingID].Cancelling())
		require.Positive(t, ledger.Bookings[waiting.BookingID].CancelAsked)
	})
}
