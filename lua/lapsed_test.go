package lua

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// B4: a deadline was written and nobody read it: whoever did not finish kept the seats
// for ever. Here it is read by whoever wants the seats, with no sweeper running, and
// extending ends as well.
func TestB4SeatsThatNobodyFinishesAreFreeInTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("away", "next")
		holdTime := time.Duration(w.show.Seating.HoldSeconds) * time.Second
		hold := w.mustHold("away", "kept", "A-1-1")
		for extended := hold; ; {
			w.travel(holdTime / 2)
			_, err := w.hold("next", "wanted", "A-1-1")
			require.Error(t, err, "until its deadline a hold is kept")
			again, err := w.ExtendHold(t.Context(), w.show.ID, "away", "kept")
			require.NoError(t, err)
			require.Equal(t, hold.CeilingAt, again.CeilingAt)
			if again.ExpiresAt.Equal(extended.ExpiresAt) {
				break // at its ceiling
			}
			extended = again
		}
		w.travel(holdTime)
		_, _, err := w.BeginBooking(t.Context(), w.show.ID, "away", "kept", "late")
		require.ErrorIs(t, err, domain.ErrHoldExpired)
		_, err = w.hold("next", "wanted", "A-1-1")
		require.NoError(t, err)
	})
}

// J6: a lease that ran out was pruned, and asking to go on found nothing: the place was
// lost. Here a place is derived from who one is. What has been tidied away is told as
// ended, and joining again is the same person's place, at the end of the line.
func TestJ6WhoseTurnWasTidiedAwayJoinsAgainAsTheSame(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		w.join("late")
		w.join("second")
		w.join("third")
		w.travel(w.show.Queue.Turn())
		admitted, ended := w.admit()
		require.Equal(t, []domain.RequestID{"second"}, admitted)
		require.Equal(t, []domain.RequestID{"late"}, ended)
		require.Equal(t, domain.StatusExpired, w.status("late"), "it is told, and not unknown")
		_, err := w.Claim(t.Context(), w.show.ID, "late")
		require.ErrorIs(t, err, domain.ErrNotAdmitted)
		back := w.join("late")
		require.Equal(t, domain.StatusWaiting, back.Status)
		require.EqualValues(t, 2, back.Rank)
		require.Equal(t, back.Score, w.join("late").Score, "and is kept like any other")

		require.NoError(t, rdb.Del(t.Context(), rdb.Keys(t.Context(), "*{"+string(w.show.ID)+"}*").Val()...).Err())
		require.NoError(t, w.Configure(t.Context(), w.show))
		require.Equal(t, domain.RequestID("late"), w.join("late").RequestID, "even when Redis has forgotten everybody")
	})
}
