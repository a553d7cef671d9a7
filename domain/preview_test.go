package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

func TestAPreviewFollowsTheNarrowestPassage(t *testing.T) {
	t.Parallel()
	q := domain.QueueSettings{MaxActive: 100, RatePerMinute: 600, SessionSeconds: 300}
	full := domain.Stats{Waiting: 1999, Active: 100, MaxActive: 100, AdmittedLastMinute: 50}
	require.EqualValues(t, 20*60, domain.MedianWait(full, q), "1,000 people at 50 a minute, as measured")
	q.MaxActive = 200
	require.EqualValues(t, 9*60, domain.MedianWait(full, q), "100 at once, and twice as fast after")
	q.RatePerMinute = 20
	require.EqualValues(t, 50*60, domain.MedianWait(full, q), "now the rate is the narrowest")
	q.RatePerMinute, q.MaxActive = 600, 50
	require.EqualValues(t, 41*60, domain.MedianWait(full, q), "a minute until 50 have left, then at 25 a minute")

	quiet := domain.Stats{Waiting: 1000, MaxActive: 100}
	q = domain.QueueSettings{MaxActive: 100, RatePerMinute: 600, SessionSeconds: 300}
	require.EqualValues(t, 20*60, domain.MedianWait(quiet, q), "nothing measured: everybody stays for their whole session")
	require.Zero(t, domain.MedianWait(domain.Stats{}, q))
}

func TestOddsAreHonest(t *testing.T) {
	t.Parallel()
	s := domain.Stats{Capacity: 2000, Sold: 100, Active: 100, SeatsPerBuyer: 2.3}
	odds := domain.EstimateOdds(12_401, s)
	require.EqualValues(t, 1900, odds.SeatsLeft)
	require.EqualValues(t, 12_500, odds.Ahead)
	require.InDelta(t, 2.3, *odds.SeatsPerBuyer, 0.001)
	require.True(t, odds.SoldOutLikely)
	require.False(t, domain.EstimateOdds(700, s).SoldOutLikely, "799 people take 1,838 of 1,900")
	s.SeatsPerBuyer = 0
	require.Nil(t, domain.EstimateOdds(1, s).SeatsPerBuyer, "nobody has bought yet")
	require.False(t, domain.EstimateOdds(1000, s).SoldOutLikely)
	require.Nil(t, domain.EstimateOdds(0, s))
	require.Nil(t, domain.EstimateOdds(5, domain.Stats{}), "without seats there is nothing to run out")
}
