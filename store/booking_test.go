package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/store"
)

// G6: the same key came twice at once and both made a booking. Here exactly one
// does, and the other is answered with it.
func TestG6SameKeyAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 1, 4)
		person := domain.PersonID(domain.NewID())
		const callers = 12
		ids, made := make([]domain.BookingID, callers), make([]bool, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				b := newBooking(show.ID, "A-1-1") // a new booking and hold each time: only the key is the same
				b.PersonID = person
				stored, created, err := dbs[i%2].RecordBooking(t.Context(), domain.BookingRequest{Booking: b, Key: "k", Fingerprint: "f"})
				if err != nil {
					t.Errorf("record: %v", err)
				}
				ids[i], made[i] = stored.BookingID, created
			})
		}
		wg.Wait()
		created := 0
		for i := range callers {
			require.Equal(t, ids[0], ids[i])
			if made[i] {
				created++
			}
		}
		require.Equal(t, 1, created)

		r, err := dbs[0].BookingByKey(t.Context(), person, "k")
		require.NoError(t, err)
		require.Equal(t, ids[0], r.Booking.BookingID)
		require.Equal(t, "f", r.Fingerprint)
	})
}

func TestIdempotencyMismatch(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 4)
		b := newBooking(show.ID, "A-1-1")
		_, _, err := db.RecordBooking(t.Context(), domain.BookingRequest{Booking: b, Key: "k", Fingerprint: "one"})
		require.NoError(t, err)
		other := newBooking(show.ID, "A-1-2")
		other.PersonID = b.PersonID
		_, _, err = db.RecordBooking(t.Context(), domain.BookingRequest{Booking: other, Key: "k", Fingerprint: "two"})
		require.ErrorIs(t, err, domain.ErrIdempotencyMismatch)
		// Another person's equal key is another key.
		_, created, err := db.RecordBooking(t.Context(), domain.BookingRequest{Booking: newBooking(show.ID, "A-1-3"), Key: "k", Fingerprint: "two"})
		require.NoError(t, err)
		require.True(t, created)
	})
}

// G7: a double click made two bookings wherever two seats were free, because the
// capacity was what stopped the second. Here the hold is the intent.
func TestG7OneBookingForOneHold(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 4)
		b := record(t, db, newBooking(show.ID, "A-1-1"))
		again := newBooking(show.ID, "A-1-1")
		again.PersonID, again.HoldID = b.PersonID, b.HoldID
		stored, created, err := db.RecordBooking(t.Context(), domain.BookingRequest{Booking: again, Key: "another key", Fingerprint: "f"})
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, b, stored)

		byHold, err := db.BookingByHold(t.Context(), b.HoldID)
		require.NoError(t, err)
		require.Equal(t, b, byHold)

		thief := newBooking(show.ID, "A-1-1")
		thief.HoldID = b.HoldID
		_, _, err = db.RecordBooking(t.Context(), domain.BookingRequest{Booking: thief, Key: "k", Fingerprint: "f"})
		require.ErrorIs(t, err, domain.ErrHoldNotFound)
	})
}

func TestRecordBookingRefusals(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		_, _, err := db.RecordBooking(t.Context(), domain.BookingRequest{Booking: newBooking("t-nowhere", "A-1-1"), Key: "k"})
		require.ErrorIs(t, err, domain.ErrShowNotFound)
		show := newShow(t, db, 1, 1)
		var invalid *domain.InvalidError
		_, _, err = db.RecordBooking(t.Context(), domain.BookingRequest{Booking: newBooking(show.ID), Key: "k"})
		require.ErrorAs(t, err, &invalid)
		zero := newBooking(show.ID, "A-1-1")
		zero.PersonID = "eve\x00"
		_, _, err = db.RecordBooking(t.Context(), domain.BookingRequest{Booking: zero, Key: "k"})
		require.ErrorAs(t, err, &invalid)
		_, err = db.Booking(t.Context(), "nothing")
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
		_, err = db.BookingByKey(t.Context(), "nobody", "")
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
		_, err = db.BookingByHold(t.Context(), "no\x00hold")
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
	})
}

// D2: an order was cancelled and its seats never came back.
func TestD2CancelFreesSeats(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 2)
		b := record(t, db, newBooking(show.ID, "A-1-1", "A-1-2"))
		_, err := db.CancelBooking(t.Context(), "c-early", b.BookingID)
		require.ErrorIs(t, err, domain.ErrInProgress)
		require.Equal(t, domain.BookingConfirmed, book(t, db, b).Booking.Status)

		cancelled, err := db.CancelBooking(t.Context(), "c-1", b.BookingID)
		require.NoError(t, err)
		require.Equal(t, domain.BookingCancelled, cancelled.Status)
		require.NotNil(t, cancelled.CancelledAt)
		require.Zero(t, sold(t, db, show.ID))

		next := record(t, db, newBooking(show.ID, "A-1-1", "A-1-2"))
		require.Equal(t, domain.BookingConfirmed, book(t, db, next).Booking.Status)
		// A repeat, under the same command or a second click's, frees nobody else's seats.
		for _, command := range []domain.CommandID{"c-1", "c-2"} {
			again, err := db.CancelBooking(t.Context(), command, b.BookingID)
			require.NoError(t, err)
			require.Equal(t, cancelled, again)
		}
		require.Equal(t, 2, sold(t, db, show.ID))
		// A late repeat of the booking command does not bring the booking back.
		late := book(t, db, b)
		require.True(t, late.Repeated)
		require.Equal(t, cancelled, late.Booking)

		_, err = db.CancelBooking(t.Context(), "c-3", "nothing")
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
		lost := record(t, db, newBooking(show.ID, "A-1-1"))
		require.Equal(t, domain.BookingRejected, book(t, db, lost).Booking.Status)
		_, err = db.CancelBooking(t.Context(), "c-4", lost.BookingID)
		require.ErrorIs(t, err, domain.ErrNotCancellable)
	})
}

// A command id stands for one intent: it cannot cancel a second booking.
func TestCancelCommandOfAnotherBooking(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 2)
		one, two := record(t, db, newBooking(show.ID, "A-1-1")), record(t, db, newBooking(show.ID, "A-1-2"))
		_, err := db.Book(t.Context(), []domain.Booking{one, two})
		require.NoError(t, err)
		_, err = db.CancelBooking(t.Context(), "c", one.BookingID)
		require.NoError(t, err)
		_, err = db.CancelBooking(t.Context(), "c", two.BookingID)
		require.ErrorIs(t, err, domain.ErrIdempotencyMismatch)
		require.Equal(t, 1, sold(t, db, show.ID))
	})
}

func TestFailBooking(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 2)
		b := record(t, db, newBooking(show.ID, "A-1-1"))
		failed, err := db.FailBooking(t.Context(), b.BookingID, domain.ReasonFailed)
		require.NoError(t, err)
		require.Equal(t, domain.BookingRejected, failed.Status)
		require.Equal(t, domain.ReasonFailed, failed.Reason)
		require.NotNil(t, failed.DecidedAt)
		// The command comes after all: given up is given up.
		late := book(t, db, b)
		require.True(t, late.Repeated)
		require.Equal(t, failed, late.Booking)
		require.Zero(t, sold(t, db, show.ID))

		sure := record(t, db, newBooking(show.ID, "A-1-2"))
		confirmed := book(t, db, sure).Booking
		same, err := db.FailBooking(t.Context(), sure.BookingID, domain.ReasonFailed)
		require.NoError(t, err)
		require.Equal(t, confirmed, same)
		_, err = db.FailBooking(t.Context(), "nothing", domain.ReasonFailed)
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
	})
}

// Giving up and booking race for the row: whoever is first decides, and the seat
// agrees with the booking.
func TestFailAndBookRace(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 1, 20)
		confirmed := 0
		for _, seat := range show.Seating.AllSeats() {
			b := record(t, dbs[0], newBooking(show.ID, seat))
			var failed domain.Booking
			var booked []store.BookingOutcome
			var errFail, errBook error
			var wg sync.WaitGroup
			wg.Go(func() { failed, errFail = dbs[0].FailBooking(t.Context(), b.BookingID, domain.ReasonFailed) })
			wg.Go(func() { booked, errBook = dbs[1].Book(t.Context(), []domain.Booking{b}) })
			wg.Wait()
			require.NoError(t, errFail)
			require.NoError(t, errBook)
			require.NoError(t, booked[0].Err)
			require.Equal(t, failed, booked[0].Booking)
			if failed.Status == domain.BookingConfirmed {
				confirmed++
			}
		}
		require.Equal(t, confirmed, sold(t, dbs[0], show.ID))
	})
}

func TestPendingBookings(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 5)
		var recorded []domain.Booking
		for _, seat := range show.Seating.AllSeats() {
			recorded = append(recorded, record(t, db, newBooking(show.ID, seat)))
		}
		require.NoError(t, book(t, db, recorded[1]).Err)
		_, err := db.FailBooking(t.Context(), recorded[3].BookingID, domain.ReasonFailed)
		require.NoError(t, err)

		young, err := db.PendingBookings(t.Context(), time.Hour, 10)
		require.NoError(t, err)
		require.Empty(t, young)
		pending, err := db.PendingBookings(t.Context(), 0, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, []domain.Booking{recorded[0], recorded[2], recorded[4]}, pending)
		two, err := db.PendingBookings(t.Context(), 0, 2)
		require.NoError(t, err)
		require.Equal(t, pending[:2], two)
	})
}

func TestBookingPages(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 10)
		person := domain.PersonID(domain.NewID())
		mine := func(seat domain.SeatID) domain.Booking {
			b := newBooking(show.ID, seat)
			b.PersonID = person
			return record(t, db, b)
		}
		recorded := map[domain.BookingID]bool{}
		for _, seat := range show.Seating.AllSeats()[:7] {
			recorded[mine(seat).BookingID] = true
		}
		stranger := record(t, db, newBooking(show.ID, "A-1-8"))
		var before domain.BookingID
		var read []domain.Booking
		for {
			page, err := db.Bookings(t.Context(), person, before, 3)
			require.NoError(t, err)
			if len(page) == 0 {
				break
			}
			read = append(read, page...)
			before = page[len(page)-1].BookingID
			mine("A-1-9") // a booking made meanwhile shifts no page
		}
		require.Len(t, read, 7)
		for i, b := range read {
			require.True(t, recorded[b.BookingID])
			delete(recorded, b.BookingID)
			require.False(t, i > 0 && b.CreatedAt.After(read[i-1].CreatedAt))
		}
		_, err := db.Bookings(t.Context(), person, stranger.BookingID, 3)
		require.ErrorIs(t, err, domain.ErrBookingNotFound)
		all, err := db.Bookings(t.Context(), person, "", 0)
		require.NoError(t, err)
		require.Len(t, all, 10)
	})
}
