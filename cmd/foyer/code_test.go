package main

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

func TestInspectTellsWhatACodeSays(t *testing.T) {
	key := strings.Repeat("07", 32)
	raw, err := hex.DecodeString(key)
	require.NoError(t, err)
	until := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	code, err := domain.NewJoinCodes(raw).Mint(domain.JoinCode{ID: "x", ShowID: "hall", Lane: "fans", Person: "ada", Uses: 2, Until: &until})
	require.NoError(t, err)
	for _, c := range []struct {
		key, verdict string
		status       int
	}{
		{key, "genuine yes", exitOK}, {strings.Repeat("08", 32), "genuine no", exitFailure}, {"", "cannot be told", exitOK},
	} {
		t.Setenv("FOYER_SIGNING_KEY", c.key)
		status, out, _ := foyer(t, "code", "inspect", code)
		require.Equal(t, c.status, status)
		for _, line := range []string{"show   hall", "lane   fans", "person ada", "uses   2", "2001-02-03T04:05:06Z, which is over", c.verdict} {
			require.Contains(t, out, line)
		}
	}
	_, out, _ := foyer(t, "code", "inspect", "--json", "--signing-key", key, code)
	var told map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	require.Equal(t, map[string]any{"id": "x", "showId": "hall", "lane": "fans", "person": "ada", "uses": 2.0, "until": "2001-02-03T04:05:06Z", "genuine": true}, told)
	status, _, problem := foyer(t, "code", "inspect", "SUMMER")
	require.Equal(t, exitUsage, status)
	require.Contains(t, problem, "no join code")
	status, _, problem = foyer(t, "code", "mint", "hall", "--lane", "fans", "--count", "1001")
	require.Equal(t, exitUsage, status)
	require.Contains(t, problem, "--count")
}

func TestForecastOfLanesIsAskedByFlags(t *testing.T) {
	t.Parallel()
	status, out, _ := foyer(t, "simulate", "--people", "500", "--lane", "fans:3:0.2", "--ordinary-weight", "2")
	require.Equal(t, exitOK, status)
	require.Contains(t, out, "weight 3")
	require.Contains(t, out, "weight 2")
	for _, wrong := range []string{"fans", "fans:x:0.1", "fans:3:lots", "Fans!:3:0.1", "fans:3:1.5"} {
		status, _, _ := foyer(t, "simulate", "--lane", wrong)
		require.Equal(t, exitUsage, status, wrong)
	}
}
