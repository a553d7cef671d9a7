package domain_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
)

// T46: a token made from public ids by an unsalted hash could be guessed.
func TestT46RequestIDsNeedTheSecret(t *testing.T) {
	t.Parallel()
	ids := domain.NewRequestIDs([]byte("secret"))
	require.Equal(t, ids.For("s", "ada"), domain.NewRequestIDs([]byte("secret")).For("s", "ada"), "every process derives the same")
	require.NotEqual(t, ids.For("s", "ada"), domain.NewRequestIDs([]byte("other")).For("s", "ada"))
	require.NotEqual(t, ids.For("s", "ada"), ids.For("s", "bob"))
	require.NotEqual(t, ids.For("s", "ada"), ids.For("t", "ada"))
	require.Len(t, string(ids.For("s", "ada")), 14)
}

func TestDrawCanBeRecomputed(t *testing.T) {
	t.Parallel()
	seed := domain.NewDrawSeed()
	raw, err := hex.DecodeString(seed)
	require.NoError(t, err)
	sum := sha256.Sum256(raw)
	require.Equal(t, hex.EncodeToString(sum[:]), domain.SeedHash(seed))
	scores := map[int64]bool{}
	for range 1000 {
		score := domain.DrawScore(seed, domain.RequestID(domain.NewID()))
		require.Positive(t, score)
		require.Less(t, score, domain.DrawCeiling, "the drawn stand before whoever comes later")
		scores[score] = true
	}
	require.Greater(t, len(scores), 990)
}

func TestRankKnotsAreExactInFrontAndWithinOnePercent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30_000).Draw(t, "waiting")
		gaps := rapid.IntRange(1, 50).Draw(t, "gap")
		scores := make([]int64, n)
		score := int64(0)
		for i := range scores {
			score += int64(1 + (i*7919)%gaps) // uneven, as after people have left
			scores[i] = score
		}
		knots := domain.RankKnots{Waiting: int64(n)}
		for _, rank := range domain.RankGrid(int64(n)) {
			knots.Scores = append(knots.Scores, scores[rank-1])
		}
		rankOf := knots.Ranker()
		for i, s := range scores {
			rank, got := int64(i+1), rankOf(s)
			if rank <= domain.RankDense && got != rank {
				t.Fatalf("rank %d of %d read as %d, must be exact", rank, n, got)
			}
			if math.Abs(float64(got-rank)) > math.Max(1, 0.01*float64(rank)) {
				t.Fatalf("rank %d of %d read as %d, over 1 %% off", rank, n, got)
			}
		}
		if got := knots.Rank(score + 1); got != int64(n)+1 {
			t.Fatalf("who joined after the sample has rank %d, want %d", got, n+1)
		}
	})
}

func TestRankGridOfAMillionIsSmall(t *testing.T) {
	t.Parallel()
	grid := domain.RankGrid(1_000_000)
	require.True(t, slices.IsSorted(grid))
	require.Equal(t, int64(1_000_000), grid[len(grid)-1])
	require.Less(t, len(grid), 1200)
	require.Empty(t, domain.RankGrid(0))
}

// T26: the wait was told from the configured rate while only leavers made room.
func TestT26WaitIsTheSmallerRate(t *testing.T) {
	t.Parallel()
	full := domain.Stats{Phase: domain.PhaseOpen, MaxActive: 10, Active: 10, RatePerMinute: 600, AdmittedLastMinute: 6}
	wait := domain.EstimateWait(6, full)
	require.NotNil(t, wait)
	require.LessOrEqual(t, wait.MinSeconds, int64(60))
	require.GreaterOrEqual(t, wait.MaxSeconds, int64(60))
	full.AdmittedLastMinute = 0
	require.Nil(t, domain.EstimateWait(6, full), "nothing is known, so nothing is told")
	roomy := domain.Stats{Phase: domain.PhaseOpen, MaxActive: 100, RatePerMinute: 60}
	require.Equal(t, &domain.ETA{}, domain.EstimateWait(1, roomy), "the next one need not wait")
	roomy.Phase = domain.PhasePaused
	require.Nil(t, domain.EstimateWait(1, roomy))
}
