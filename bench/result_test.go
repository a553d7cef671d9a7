package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoalIsJudgedByTheMedianOfRatios(t *testing.T) {
	t.Parallel()
	r := Result{Rows: []Row{
		{Variant: "ours", Samples: []Sample{{"rate": 30}, {"rate": 100}, {"rate": 50}}},
		{Variant: "theirs", Samples: []Sample{{"rate": 10}, {"rate": 20}, {"rate": 25}}},
	}}
	values, reached := r.judge(Goal{Metric: "rate", Variant: "ours", Against: "theirs", AtLeast: 3})
	require.Equal(t, []float64{3, 5, 2}, values)
	require.True(t, reached)
	_, reached = r.judge(Goal{Metric: "rate", Variant: "ours", AtMost: 49})
	require.False(t, reached)
	_, reached = r.judge(Goal{Metric: "latency", Variant: "ours", AtMost: 49})
	require.False(t, reached, "what was not measured is not reached")
}

func TestResultsAreRenderedAgainFromTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := Result{Name: "n", Title: "Things", About: "Does things.", Load: []float64{1}, Metrics: []Metric{{"rate", "things/s"}},
		Rows:  []Row{{Variant: "ours", Samples: []Sample{{"rate": 12345.6}, {"rate": 0.123456}, {"rate": 99.95}}}},
		Goals: []Goal{{Text: "many", Metric: "rate", Variant: "ours", AtLeast: 1}}}
	require.NoError(t, r.save(dir))
	require.NoError(t, Render(dir))
	page, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "| ours | 100 [0.123..12,346] |")
	require.Contains(t, string(page), "* many: 100 [0.123..12,346], **reached**")
	var back Result
	text, err := os.ReadFile(filepath.Join(dir, "results", "n.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, r, back)
}
