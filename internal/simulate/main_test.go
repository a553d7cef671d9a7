package simulate

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds bytes against a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go test ./internal/simulate -update, and look at what changed")
}

func play(t *testing.T, plan Plan, crowd Crowd, seed uint64) *Result {
	t.Helper()
	result, err := Run(t.Context(), plan, crowd, seed)
	require.NoError(t, err)
	return result
}

func asJSON(t *testing.T, result *Result) []byte {
	t.Helper()
	text, err := json.MarshalIndent(result, "", " ")
	require.NoError(t, err)
	return append(text, '\n')
}
