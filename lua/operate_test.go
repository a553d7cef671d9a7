package lua

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// T37: a reset that died half-way left a flag on and expiry off for ever. Here it is one
// step, and saying it again changes nothing.
func TestT37ResettingEndsEveryPlaceAndKeepsWhatIsSold(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("buyer")
		w.buy("buyer", "b", "A-1-1")
		w.enter("in")
		w.join("turn")
		w.crowd("w", 5)
		w.mustHold("in", "h", "A-1-2")
		before := w.stats()
		ended, done, err := w.Reset(t.Context(), w.show.ID, 2)
		require.NoError(t, err)
		require.True(t, done)
		require.EqualValues(t, 7, ended)
		after := w.stats()
		require.Zero(t, after.Waiting+after.Active+after.Joined+after.Ended)
		require.EqualValues(t, 2, after.Epoch)
		require.Equal(t, before.Sold, after.Sold)
		require.Equal(t, before.AdmittedLastMinute, after.AdmittedLastMinute, "the rate holds across a reset")
		_, err = w.Place(t.Context(), w.show.ID, "w1")
		require.ErrorIs(t, err, domain.ErrNotJoined)

		require.Equal(t, domain.StatusAdmitted, w.join("w5").Status)
		_, done, err = w.Reset(t.Context(), w.show.ID, 2)
		require.NoError(t, err)
		require.False(t, done, "whoever joined since keeps their place")
		require.Equal(t, domain.StatusAdmitted, w.place("w5").Status)
		w.travel(w.show.Seating.HoldTime())
		require.Zero(t, w.stats().Held, "holds of before run out by themselves")
	})
}

// What a place went through must be told to whoever asks about it, also when the person
// came twice; what is kept of one person is bounded.
func TestAPlaceCanBeExplained(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive, s.Queue.RatePerMinute = 1, 2 })
		w.enter("in")
		w.crowd("w", 3)
		_, err := w.Explain(t.Context(), w.show.ID, "nobody")
		require.ErrorIs(t, err, domain.ErrNotJoined)
		codes := func(request domain.RequestID) string {
			facts, err := w.Explain(t.Context(), w.show.ID, request)
			require.NoError(t, err)
			var all []string
			for _, rule := range facts.Rules() {
				all = append(all, rule.Code)
			}
			return strings.Join(all, " ")
		}
		told := func(request domain.RequestID) string {
			facts, err := w.Explain(t.Context(), w.show.ID, request)
			require.NoError(t, err)
			return fmt.Sprint(facts.History())
		}
		require.Equal(t, "NO_VACANCY", codes("w1"))
		require.Equal(t, "NO_VACANCY LINE", codes("w2"))
		require.Equal(t, "SESSION", codes("in"))
		require.Contains(t, told("in"), "claimed the turn")

		w.leave("in")
		require.Equal(t, "OVER", codes("in"))
		w.admit()
		require.Equal(t, "TURN", codes("w1"))
		w.leave("w1")
		require.Equal(t, "RATE", codes("w2"), "two were let in within this minute")
		w.change(func(s *domain.Show) { s.Paused = true })
		require.Equal(t, "PAUSED RATE", codes("w2"))
		require.Equal(t, "OVER", codes("w1"))

		for range 20 { // comes and goes
			w.join("in")
			w.leave("in")
		}
		require.LessOrEqual(t, len(rdb.HGet(t.Context(), patternOf("trail").with(string(w.show.ID)), "in").Val()), 240)
		require.Contains(t, told("in"), "left by their own wish")
	})
}

// When somebody came is known from one note a tick, not from one a person.
func TestTheTimeOfArrivalIsKnownToATick(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		w.enter("in")
		for i := range 5 {
			w.join(domain.RequestID(fmt.Sprint("w", i)))
			w.travel(time.Second)
			_, err := w.DueTick(t.Context(), w.show.ID, time.Second)
			require.NoError(t, err)
		}
		facts, err := w.Explain(t.Context(), w.show.ID, "w3")
		require.NoError(t, err)
		require.NotNil(t, facts.JoinedAfter)
		require.NotNil(t, facts.JoinedBefore)
		require.LessOrEqual(t, facts.JoinedBefore.Sub(*facts.JoinedAfter), 1100*time.Millisecond)
		require.Contains(t, fmt.Sprint(facts.History()), "joined, within the ")
	})
}

// T33 and the operator's hand: while paused only an operator lets people in, and they
// pass no limit either.
func TestAnOperatorLetsPeopleInWithinTheLimits(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive, s.Queue.RatePerMinute, s.Paused = 3, 5, true })
		w.crowd("w", 10)
		let := func(n int) int {
			result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{Batch: n, ByOperator: true})
			require.NoError(t, err)
			return len(result.Admitted)
		}
		admitted, _ := w.admit()
		require.Empty(t, admitted, "paused")
		require.Equal(t, 2, let(2))
		require.Equal(t, 1, let(10), "maxActive holds")
		require.Equal(t, 0, let(10))
		for i := 1; i <= 3; i++ {
			w.leave(domain.RequestID(fmt.Sprint("w", i)))
		}
		require.Equal(t, 2, let(10), "the rate holds: 5 in a minute")
		w.change(func(s *domain.Show) { s.Closed = true })
		require.Equal(t, 0, let(10))
	})
}

func TestRemovingEndsAPlaceAndFreesTheSlot(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		w.enter("in")
		w.crowd("w", 2)
		d, err := w.Remove(t.Context(), w.show.ID, "w1")
		require.NoError(t, err)
		require.True(t, d.Left)
		require.False(t, d.FreedSlot)
		require.Equal(t, domain.StatusExpired, w.status("w1"))
		d, err = w.Remove(t.Context(), w.show.ID, "in")
		require.NoError(t, err)
		require.True(t, d.FreedSlot)
		facts, err := w.Explain(t.Context(), w.show.ID, "in")
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(facts.Rules()), "removed by an operator")
	})
}

// A lowered limit throws nobody out: admission stands still until enough have left.
func TestALoweredLimitThrowsNobodyOut(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 3 })
		w.enter("a", "b", "c")
		w.crowd("w", 3)
		w.change(func(s *domain.Show) { s.Queue.MaxActive = 1 })
		for _, leaver := range []domain.RequestID{"a", "b"} {
			admitted, ended := w.admit()
			require.Empty(t, admitted)
			require.Empty(t, ended)
			require.Equal(t, domain.StatusActive, w.status("c"))
			w.leave(leaver)
		}
		w.leave("c")
		admitted, _ := w.admit()
		require.Len(t, admitted, 1)
	})
}
