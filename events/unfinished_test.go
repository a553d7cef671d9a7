package events

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

func TestUnfinishedCommandsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	backlog := NewBacklog(w.rdb)
	none, err := backlog.Unfinished(ctx, StreamBooking)
	require.NoError(t, err)
	require.Empty(t, none)

	taken := w.book(3)
	w.abandon(taken...)
	unread := w.book(backlogPage + 2)
	all, err := backlog.Unfinished(ctx, StreamBooking)
	require.NoError(t, err)
	require.Len(t, all, 3+len(unread))
	for i, u := range all {
		require.Equal(t, i < 3, u.Pending)
		require.Equal(t, typeBookSeats, u.Type)
		require.NotEmpty(t, u.ShowID)
		require.NotEmpty(t, u.BookingID)
	}
	require.Contains(t, taken, all[0].CommandID)
	require.Equal(t, ghost, all[0].Consumer)
	require.Equal(t, int64(1), all[0].Deliveries)
	require.Contains(t, unread, all[3].CommandID)

	require.NoError(t, w.rdb.XDel(ctx, StreamBooking, all[0].EntryID).Err())
	all, err = backlog.Unfinished(ctx, StreamBooking)
	require.NoError(t, err)
	require.True(t, all[0].Deleted && all[0].Pending)
	require.GreaterOrEqual(t, all[0].Idle, time.Duration(0))

	require.NoError(t, w.rdb.XGroupDestroy(ctx, StreamBooking, "booking-workers").Err())
	all, err = backlog.Unfinished(ctx, StreamBooking)
	require.NoError(t, err)
	require.Len(t, all, 2+len(unread), "without the group nobody has read any")
	_, err = backlog.Unfinished(ctx, "elsewhere")
	require.Error(t, err)
}

func TestDeadLetterTellsWhatItIsAbout(t *testing.T) {
	t.Parallel()
	letter := newDeadLetter(StreamBooking, redis.XMessage{ID: "1-1", Values: map[string]any{
		fieldPayload: `{"showId":"s","bookingId":"b"}`, deadReason: DeadExhausted,
	}})
	show, booking := letter.About()
	require.Equal(t, domain.ShowID("s"), show)
	require.Equal(t, domain.BookingID("b"), booking)
	show, booking = newDeadLetter(StreamBooking, redis.XMessage{ID: "1-1"}).About()
	require.Empty(t, string(show)+string(booking))
}
