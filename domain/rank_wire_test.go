package domain_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
)

// One tick of a show is one message for all who wait, so it must stay small when a
// million do: with places in order of arrival and with drawn ones, which are spread
// over 40 bits.
func TestRankKnotsOfAMillionFitInEightKilobytes(t *testing.T) {
	t.Parallel()
	const people = 1_000_000
	dice := rand.New(rand.NewPCG(1, 2))
	drawn := make([]int64, people)
	for i := range drawn {
		drawn[i] = 1 + dice.Int64N(domain.DrawCeiling-1)
	}
	slices.Sort(drawn)
	for name, score := range map[string]func(rank int64) int64{
		"drawn":      func(rank int64) int64 { return drawn[rank-1] },
		"as arrived": func(rank int64) int64 { return domain.DrawCeiling + rank },
	} {
		knots := domain.RankKnots{Waiting: people}
		for _, rank := range domain.RankGrid(people) {
			knots.Scores = append(knots.Scores, score(rank))
		}
		text, err := json.Marshal(knots)
		require.NoError(t, err)
		t.Log(name, len(text), "bytes")
		require.Less(t, len(text), 7<<10, "%s: with the rest of a notification it must stay below 8 KB", name)
		var back domain.RankKnots
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, knots, back)
	}
}

func TestRankKnotsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOf(rapid.Int64Range(0, 2*domain.DrawCeiling)).Draw(t, "scores")
		slices.Sort(scores)
		knots := domain.RankKnots{Waiting: rapid.Int64Range(0, 1<<40).Draw(t, "waiting")}
		knots.Scores = append(knots.Scores, scores...)
		text, err := json.Marshal(knots)
		if err != nil {
			t.Fatal(err)
		}
		var back domain.RankKnots
		if err := json.Unmarshal(text, &back); err != nil || !slices.Equal(back.Scores, knots.Scores) || back.Waiting != knots.Waiting {
			t.Fatalf("%v came back as %v: %v", knots, back, err)
		}
	})
	var knots domain.RankKnots
	require.Error(t, json.Unmarshal([]byte(`{"waiting":1,"deltas":"!"}`), &knots))
	require.Error(t, json.Unmarshal([]byte(`{"waiting":1,"deltas":"/w"}`), &knots), "cut off in a number")
	_, err := json.Marshal(domain.RankKnots{Scores: []int64{2, 1}})
	require.Error(t, err)
}
