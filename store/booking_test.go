package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/store"
)

// t0 has microseconds, so that a database that keeps fewer is found out.
var t0 = time.Date(2031, 3, 4, 19, 30, 15, 123456000, time.UTC)

func TestBookConfirmsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 4)
		b := record(t, db, newBooking(show.ID, "A-1-2", "A-1-1"))
		require.Equal(t, []domain.SeatID{"A-1-1", "A-1-2"}, b.Seats)
		done := book(t, db, b)
		require.NoError(t, done.Err)
		require.False(t, done.Repeated)
		require.Equal(t, domain.BookingConfirmed, done.Booking.Status)
		again := book(t, db, b)
		require.True(t, again.Repeated)
		require.Equal(t, done.Booking, again.Booking)

		second := record(t, db, newBooking(show.ID, "A-1-2", "A-1-3"))
		lost := book(t, db, second)
		require.NoError(t, lost.Err)
		require.Equal(t, domain.BookingRejected, lost.Booking.Status)
		require.Equal(t, domain.ReasonSeatUnavailable, lost.Booking.Reason)
		require.Equal(t, []domain.SeatID{"A-1-2"}, lost.Booking.Conflicts)
		require.Equal(t, []domain.SoldSeat{{SeatID: "A-1-2", BookingID: b.BookingID, RequestID: b.RequestID}}, lost.SoldBy)
		require.Equal(t, 2, sold(t, db, show.ID))
	})
}
