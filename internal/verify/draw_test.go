package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/lua"
)

func TestADrawThatWasTamperedWithIsFound(t *testing.T) {
	t.Parallel()
	show := domain.Show{ID: "s", DrawSeed: domain.NewDrawSeed()}
	drawn := lua.Drawn{Stats: domain.Stats{Phase: domain.PhaseOpen}, Requests: []domain.RequestID{"a", "b", "c", "a"}, Waiting: map[domain.RequestID]int64{}}
	for _, request := range drawn.Requests {
		drawn.Waiting[request] = domain.DrawScore(show.DrawSeed, request)
	}
	report := Draw(show, drawn)
	require.Empty(t, report.Differences)
	require.Equal(t, 3, report.Drawn)
	require.True(t, report.Closed)

	drawn.Waiting["b"] = 1 // somebody's friend
	require.Len(t, Draw(show, drawn).Differences, 1)
	drawn.Waiting["b"] = domain.DrawCeiling + 7 // left, and came back when the draw had closed
	require.Empty(t, Draw(show, drawn).Differences)
	drawn.Unlisted = 2
	require.Len(t, Draw(show, drawn).Differences, 1)
}
