package events

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A permanent error is not tried again. Requeued, the command comes back under
// its old id with its attempts forgotten; dropped, it is gone.
func TestDeadLettersAreListedRequeuedAndDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ids := w.book(2)
	var mended atomic.Bool
	var ran tally
	attempts := make(chan Delivery, 10)
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		attempts <- d
		if !mended.Load() {
			return Permanent(errors.New("the show was withdrawn"))
		}
		return nil
	}})
	w.eventually("both are dead", func() bool { return len(w.letters()) == 2 })
	w.settled()
	require.Equal(t, 2, ran.total())
	dead := NewDeadLetters(w.rdb)
	all, err := dead.List(ctx, "", 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	newest, err := dead.List(ctx, StreamBooking, 1)
	require.NoError(t, err)
	require.Equal(t, all[:1], newest)
	letter := all[0]
	require.Equal(t, DeadPermanent, letter.Reason)
	require.Equal(t, "the show was withdrawn", letter.LastError)
	require.Equal(t, typeBookSeats, letter.Type)
	require.Contains(t, ids, letter.CommandID)
	require.Contains(t, letter.Fields["payload"], `"showId":"t-show"`)
	got, err := dead.Get(ctx, StreamBooking, letter.ID)
	require.NoError(t, err)
	require.Equal(t, letter, got)

	mended.Store(true)
	for range 2 {
		<-attempts
	}
	require.NoError(t, dead.Requeue(ctx, StreamBooking, letter.ID))
	again := <-attempts
	require.Equal(t, letter.CommandID, again.CommandID)
	require.Equal(t, 1, again.Attempt)
	require.ErrorIs(t, dead.Requeue(ctx, StreamBooking, letter.ID), ErrDeadLetterNotFound)
	require.NoError(t, dead.Drop(ctx, StreamBooking, all[1].ID))
	require.ErrorIs(t, dead.Drop(ctx, StreamBooking, all[1].ID), ErrDeadLetterNotFound)
	require.Empty(t, w.letters())
	w.settled()
}

// Nobody reaches another key of Redis by way of a dead letter's name.
func TestDeadLettersRefuseForeignNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := NewDeadLetters(w.rdb)
	for _, name := range [][2]string{{"show:{x}", "1-1"}, {StreamBooking, "-"}, {StreamBooking, "1-1 COUNT"}, {"", ""}} {
		require.ErrorIs(t, dead.Drop(t.Context(), name[0], name[1]), ErrDeadLetterNotFound)
		require.ErrorIs(t, dead.Requeue(t.Context(), name[0], name[1]), ErrDeadLetterNotFound)
		_, err := dead.Get(t.Context(), name[0], name[1])
		require.ErrorIs(t, err, ErrDeadLetterNotFound)
	}
	letters, err := dead.List(t.Context(), "show:{x}", 10)
	require.NoError(t, err)
	require.Empty(t, letters)
}

// H7: when a booking is given up its person is told, and telling is tried again
// like a command. It never stands in the way of the dead letter for ever.
func TestBookingDeadIsTriedAgainAndGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(2)
	var told tally
	w.work(Handlers{
		BookSeats: func(context.Context, Delivery, BookSeats) error { return Permanent(errors.New("no")) },
		BookingDead: func(_ context.Context, d Delivery, c BookSeats, reason string) error {
			assert.Equal(t, DeadPermanent, reason)
			assert.Equal(t, domain.RequestID("req-1"), c.Booking.RequestID)
			if told.add(d.CommandID) == 3 && d.CommandID == ids[0] {
				return nil
			}
			panic("cannot tell")
		},
	})
	w.eventually("both are dead", func() bool { return len(w.letters()) == 2 })
	w.settled()
	require.Equal(t, 3, told.of(ids[0]))
	require.Equal(t, 5, told.of(ids[1]))
}

// A cancellation that is given up on is told of like a booking: whoever asked for it must
// not go on sending it.
func TestCancelDeadIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.commands.CancelBooking(t.Context(), "cancel-b", CancelBooking{BookingID: "b", ShowID: "s"}))
	var told tally
	w.work(Handlers{
		BookSeats:     func(context.Context, Delivery, BookSeats) error { return nil },
		CancelBooking: func(context.Context, Delivery, CancelBooking) error { panic("cannot") },
		CancelDead: func(_ context.Context, d Delivery, c CancelBooking, reason string) error {
			assert.Equal(t, DeadExhausted, reason)
			assert.Equal(t, CancelBooking{BookingID: "b", ShowID: "s"}, c)
			told.add(d.CommandID)
			return nil
		},
	})
	w.eventually("it is dead", func() bool { return len(w.letters()) == 1 })
	w.settled()
	require.Equal(t, 1, told.of("cancel-b"))
}

// An outage of the database must not turn what waits into dead letters: an
// attempt that failed for it does not count.
func TestUnavailableDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book(1)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		assert.Equal(t, 1, d.Attempt)
		if ran.add(d.CommandID) <= 8 {
			return Unavailable(errors.New("database is down"))
		}
		return nil
	}})
	w.eventually("it has run", func() bool { return ran.total() == 9 })
	w.settled()
	require.Empty(t, w.letters())
}

func TestMarkedErrorsKeepTheirCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	require.ErrorIs(t, Permanent(cause), cause)
	require.ErrorIs(t, Unavailable(cause), cause)
	require.NoError(t, Permanent(nil))
	require.NoError(t, Unavailable(nil))
}
