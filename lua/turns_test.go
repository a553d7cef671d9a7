package lua

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A phone that sleeps must not lose a turn it could not see; nor may a turn be kept for
// ever from those who wait.
func TestATurnIsExtendedOnceAndOnceOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		first := w.join("sleeper")
		w.join("next")
		w.travel(w.show.Queue.Turn() / 2)
		place, extended, err := w.Extend(t.Context(), w.show.ID, "sleeper")
		require.NoError(t, err)
		require.True(t, extended)
		require.Equal(t, first.ClaimBy.Add(w.show.Queue.Turn()), *place.ClaimBy)
		again, extended, err := w.Extend(t.Context(), w.show.ID, "sleeper")
		require.NoError(t, err)
		require.False(t, extended)
		require.Equal(t, place.ClaimBy, again.ClaimBy)

		in, waits, err := w.NextLapse(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.True(t, waits)
		require.InDelta(t, w.show.Queue.Turn()*3/2, in, float64(w.show.Queue.Turn()/2))
		w.travel(in)
		_, _, err = w.Extend(t.Context(), w.show.ID, "sleeper")
		require.ErrorIs(t, err, domain.ErrNotAdmitted, "what has lapsed is not extended")
		admitted, ended := w.admit()
		require.Equal(t, []domain.RequestID{"next"}, admitted, "passed on at the instant at which it lapses")
		require.Equal(t, []domain.RequestID{"sleeper"}, ended)

		w.leave("next")
		require.Equal(t, domain.StatusAdmitted, w.join("sleeper").Status)
		_, extended, err = w.Extend(t.Context(), w.show.ID, "sleeper")
		require.NoError(t, err)
		require.True(t, extended, "another turn may be extended again")
	})
}

// With a third of the turns never claimed, a rate of 60 lets 40 people in. Where the
// show allows it, turns are given for those who will not come; the bound and maxActive
// hold at every step, and without the setting nothing is added.
func TestTurnsThatNobodyClaimsAreMadeUpFor(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const rate, minutes = 60, 12
		people := fewer(t, 2000)
		arrive := func(percent int) (claimed, most int64) {
			w := load(t, rdb, func(s *domain.Show) {
				s.Queue = domain.QueueSettings{MaxActive: 5000, RatePerMinute: rate, TurnSeconds: 10, SessionSeconds: 7200, GraceSeconds: 3600, OverAdmitPercent: percent}
			})
			w.crowd("w", people)
			for second := range 60 * minutes {
				if second%5 > 0 {
					w.travel(time.Second)
					continue
				}
				admitted, _ := w.admit()
				for _, request := range admitted {
					var n int
					_, _ = fmt.Sscanf(string(request), "w%d", &n)
					if n%3 == 0 { // every third never comes
						continue
					}
					if _, err := w.Claim(t.Context(), w.show.ID, request); err == nil && second >= 60*minutes/2 {
						claimed++
					}
				}
				w.travel(time.Second)
				stats := w.stats()
				most = max(most, stats.AdmittedLastMinute)
				require.LessOrEqual(t, stats.Active, stats.MaxActive)
			}
			t.Log(percent, "percent:", w.stats().NoShowPercent, "percent do not come,", claimed/(minutes/2), "claim in a minute, of", most)
			return claimed / (minutes / 2), most
		}
		if people < 1000 {
			return // the embedded server has too few for a minute's average
		}
		plain, most := arrive(0)
		require.LessOrEqual(t, most, int64(rate))
		require.InDelta(t, rate*2/3, plain, 6)
		made, most := arrive(100)
		require.InDelta(t, rate, made, 10, "the configured inflow is reached")
		require.LessOrEqual(t, most, int64(2*rate))
		bounded, most := arrive(10)
		require.LessOrEqual(t, most, int64(rate*110/100), "never more than the bound")
		require.Less(t, bounded, made)
	})
}
