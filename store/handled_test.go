package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/store"
)

// What has had its effect long ago is forgotten, so many at once, and a command that comes
// back all the same still changes nothing.
func TestHandledCommandsAreForgottenInBatches(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db, ctx := open(), t.Context()
		show := newShow(t, db, 1, 10)
		kept, taken := record(t, db, newBooking(show.ID, "A-1-1")), record(t, db, newBooking(show.ID, "A-1-2"))
		lost := record(t, db, newBooking(show.ID, "A-1-1"))
		for _, b := range []domain.Booking{kept, taken, lost} {
			require.NoError(t, book(t, db, b).Err)
		}
		_, err := db.CancelBooking(ctx, taken.CancelCommand(), taken.BookingID)
		require.NoError(t, err)
		forget := func(age time.Duration, limit int) int {
			n, err := db.ForgetHandled(ctx, age, limit)
			require.NoError(t, err)
			return n
		}
		require.Zero(t, forget(time.Hour, 100), "what is young is kept")
		require.Equal(t, 3, forget(0, 3))
		require.Equal(t, 1, forget(0, 3))
		require.Zero(t, forget(0, 3))

		next := record(t, db, newBooking(show.ID, "A-1-2"))
		require.NoError(t, book(t, db, next).Err)
		for b, status := range map[*domain.Booking]domain.BookingStatus{
			&kept: domain.BookingConfirmed, &taken: domain.BookingCancelled, &lost: domain.BookingRejected,
		} {
			again := book(t, db, *b)
			require.NoError(t, again.Err)
			require.True(t, again.Repeated)
			require.Equal(t, status, again.Booking.Status)
		}
		again, err := db.CancelBooking(ctx, taken.CancelCommand(), taken.BookingID)
		require.NoError(t, err)
		require.Equal(t, domain.BookingCancelled, again.Status)
		require.Equal(t, 2, sold(t, db, show.ID), "nobody's seat was sold again or freed")
	})
}
