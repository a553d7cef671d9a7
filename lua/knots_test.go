package lua

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// sampled is a line of people that is sampled in slices; meanwhile is called after each.
func sampled(w *world, people, slice int64, meanwhile func(made int)) (domain.RankKnots, []redis.Z) {
	w.t.Helper()
	ctx, waiting := w.ctx(), patternOf("waiting").with(string(w.show.ID))
	w.change(func(s *domain.Show) { s.Paused = true })
	var batch []JoinRequest
	for i := range people {
		batch = append(batch, JoinRequest{ShowID: w.show.ID, RequestID: domain.RequestID(fmt.Sprintf("p%04d", i))})
	}
	_, err := w.joinAll(ctx, w.show.ID, batch)
	require.NoError(w.t, err)
	line, err := w.rdb.ZRangeWithScores(ctx, waiting, 0, -1).Result()
	require.NoError(w.t, err)

	knots, last, score := domain.RankKnots{}, int64(0), int64(0)
	for made := 1; last < people; made++ {
		r, err := w.step(ctx, "admission_knots", w.show.ID, domain.RankDense, fmt.Sprint(domain.RankRatio), wholeLine, slice, knots.Waiting, last, score, domain.OrdinaryLane)
		require.NoError(w.t, err)
		require.LessOrEqual(w.t, int64(len(r.rest(2))), slice)
		knots.Waiting, last = people, r.int(1)
		for i := range r.rest(2) {
			score = r.int(2 + i)
			knots.Scores = append(knots.Scores, score)
		}
		meanwhile(made)
	}
	require.Len(w.t, knots.Scores, len(domain.RankGrid(people)))
	return knots, line
}

func roomy(s *domain.Show) {
	s.Queue.MaxActive, s.Queue.RatePerMinute, s.Queue.GraceSeconds = 10_000, 10_000, 3600
}

// A long line is sampled over several calls, between which people are let in and join.
// The ranks told are those of the first call all the same.
func TestSampleOfALongLineIsOfOneInstant(t *testing.T) {
	t.Parallel()
	w := load(t, testenv.Redis(t), roomy)
	knots, line := sampled(w, 3000, 110, func(made int) {
		result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{Batch: 100, ByOperator: true})
		require.NoError(t, err)
		require.Len(t, result.Admitted, 100)
		w.join(domain.RequestID(fmt.Sprintf("late%d", made)))
	})
	for i, z := range line {
		rank := int64(i + 1)
		told := knots.Rank(int64(z.Score))
		require.LessOrEqual(t, max(told-rank, rank-told)*100, rank, "rank %d was told as %d", rank, told)
	}
}

// Everybody behind what was sampled may have left before the next call: the sample ends
// with the last who were there.
func TestSampleOfALineThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	rdb := testenv.Redis(t)
	w := load(t, rdb, roomy)
	knots, line := sampled(w, 3000, 150, func(int) {
		require.NoError(t, rdb.ZRemRangeByRank(t.Context(), patternOf("waiting").with(string(w.show.ID)), 120, -1).Err())
	})
	require.True(t, slices.IsSorted(knots.Scores))
	require.EqualValues(t, 90, knots.Rank(int64(line[89].Score)))
	_, err := json.Marshal(knots)
	require.NoError(t, err)
}
