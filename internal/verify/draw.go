package verify

import (
	"fmt"
	"slices"

	"foyer/domain"
	"foyer/lua"
)

// DrawReport is what holding a draw against its seed came to.
type DrawReport struct {
	ShowID   domain.ShowID `json:"showId"`
	SeedHash string        `json:"seedHash"`
	Closed   bool          `json:"closed"` // nobody is drawn any more
	Drawn    int           `json:"drawn"`
	Waiting  int           `json:"waiting"` // who wait still
	// Differences are requests that stand elsewhere than the seed says.
	Differences []string `json:"differences"`
}

// maxDifferences bounds those that are told; that there are more is told as well.
const maxDifferences = 100

// Draw recomputes every place of a show's draw from its seed and holds it against the
// line as it stands in Redis.
func Draw(show domain.Show, drawn lua.Drawn) DrawReport {
	entries := domain.Draw(show.DrawSeed, drawn.Requests)
	phase := drawn.Stats.Phase
	report := DrawReport{
		ShowID: show.ID, SeedHash: domain.SeedHash(show.DrawSeed), Drawn: len(entries), Waiting: len(drawn.Waiting),
		Closed: phase != domain.PhaseScheduled && phase != domain.PhasePrequeue,
	}
	for _, entry := range entries {
		// Whoever left and came back after the draw stands behind all who were drawn.
		if score, waits := drawn.Waiting[entry.RequestID]; waits && score != entry.Score && score < domain.DrawCeiling {
			report.Differences = append(report.Differences, fmt.Sprintf("%s stands at %d and was drawn %d", entry.RequestID, score, entry.Score))
		}
	}
	if drawn.Unlisted > 0 {
		report.Differences = append(report.Differences, fmt.Sprintf("%d people wait with a drawn place and took no part", drawn.Unlisted))
	}
	if len(report.Differences) > maxDifferences {
		more := len(report.Differences) - maxDifferences
		report.Differences = append(slices.Clip(report.Differences[:maxDifferences]), fmt.Sprintf("and %d more", more))
	}
	return report
}
