package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A forecast with lanes tells each line apart, and the lanes together take no more than
// the rate.
func TestForecastOfAShowWithLanes(t *testing.T) {
	plan, crowd := DefaultPlan(), DefaultCrowd()
	plan.Queue.RatePerMinute, plan.Queue.MaxActive, plan.Seats, plan.Prequeue = 300, 100_000, 0, 0
	plan.Queue.Lanes = []domain.Lane{{Name: "fans", Weight: 3}}
	crowd.People, crowd.GiveUpShare, crowd.BurstShare, crowd.BurstDecay, crowd.LaneShares = 12_000, 0, 1, time.Second, []float64{0.5}
	crowd.PrequeueShare = 0
	result, err := Run(t.Context(), plan, crowd, 1)
	require.NoError(t, err)
	require.LessOrEqual(t, result.PeakLetInPerMinute, 300)
	ordinary, fans := result.Lanes[0], result.Lanes[1]
	require.Equal(t, "fans", fans.Name)
	require.Equal(t, result.LetIn, ordinary.LetIn+fans.LetIn)
	require.Equal(t, result.Joined, ordinary.Joined+fans.Joined)
	// 6,000 fans at three of four turns are through after 8,000 turns; half of them, and
	// half of the others, by 4,000 and by 9,000 turns.
	require.InDelta(t, 4000.0/300*60, fans.WaitOfLetIn.P50, 30)
	require.InDelta(t, 9000.0/300*60, ordinary.WaitOfLetIn.P50, 30)

	crowd.LaneShares = []float64{0.5, 0.1}
	_, err = Run(t.Context(), plan, crowd, 1)
	require.ErrorContains(t, err, "lane shares")
}
