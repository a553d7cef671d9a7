package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSimulateTellsAndDrawsASale(t *testing.T) {
	drawing := filepath.Join(t.TempDir(), "sale.svg")
	args := []string{"simulate", "--people", "2000", "--seats", "300", "--max-active", "20", "--seats-per-buyer", "1,1", "--svg", drawing}
	status, table, stderr := foyer(t, args...)
	require.Equal(t, exitOK, status, stderr)
	require.Contains(t, table, "all 300 seats")
	svg, err := os.ReadFile(drawing)
	require.NoError(t, err)
	require.Contains(t, string(svg), "2,000 people, 300 seats")

	status, text, _ := foyer(t, append(args, "--json")...)
	require.Equal(t, exitOK, status)
	_, again, _ := foyer(t, append(args, "--json")...)
	require.Equal(t, text, again, "the same seed gives the same sale")
	var result struct{ People, SeatsSold, PeakInside int }
	require.NoError(t, json.Unmarshal([]byte(text), &result))
	require.Equal(t, 2000, result.People)
	require.Equal(t, 300, result.SeatsSold)
	require.Equal(t, 20, result.PeakInside)
}

func TestSimulateSaysWhatMakesNoSense(t *testing.T) {
	for name, args := range map[string][]string{
		"people": {"--people", "0"}, "max-active": {"--max-active", "0"}, "turn": {"--turn", "1500ms"}, "share": {"--no-show", "2"},
	} {
		status, _, stderr := foyer(t, append([]string{"simulate"}, args...)...)
		require.Equal(t, exitUsage, status, "%s: %s", name, stderr)
	}
	status, _, stderr := foyer(t, "simulate", "--people", "10", "--svg", filepath.Join(t.TempDir(), "none", "sale.svg"))
	require.Equal(t, exitFailure, status)
	require.Contains(t, stderr, "draw the sale")
}
