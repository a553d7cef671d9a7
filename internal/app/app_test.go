package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"foyer/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Everything in one process, with nothing installed: it starts, answers, stops
// when asked, and leaves nothing behind.
func TestDevStartsAnswersAndStops(t *testing.T) {
	t.Parallel()
	settings, err := config.Flags{HTTPAddr: "127.0.0.1:0"}.Load(config.RoleDev)
	require.NoError(t, err)
	a, err := New(t.Context(), settings, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	defer a.Close()
	file := strings.TrimPrefix(a.config.DatabaseURL, "sqlite:")
	ctx, stop := context.WithCancel(t.Context())
	err = a.Run(ctx, func(ready Ready) {
		defer stop()
		lines := ready.Lines()
		require.Equal(t, "foyer: listening on "+ready.URL, lines[len(lines)-1])
		transport := &http.Transport{DisableKeepAlives: true}
		for _, page := range append(ready.Pages, ready.URL+"/readyz", ready.URL+"/api/shows/demo") {
			answer, err := (&http.Client{Transport: transport}).Get(page)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, answer.Body)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusOK, answer.StatusCode, page)
		}
	})
	require.NoError(t, err)
	a.Close()
	_, err = os.Stat(file)
	require.ErrorIs(t, err, os.ErrNotExist, "a fresh directory is removed at the end")
}

// A named data directory outlives a restart, with what was sold in it and the
// keys that places and tokens hang on.
func TestDevKeepsANamedDirectory(t *testing.T) {
	t.Parallel()
	settings, err := config.Flags{HTTPAddr: "127.0.0.1:0", DataDir: t.TempDir()}.Load(config.RoleDev)
	require.NoError(t, err)
	var keys []string
	for range 2 {
		a, err := New(t.Context(), settings, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		shows, err := a.store.Shows(t.Context())
		require.NoError(t, err)
		require.Len(t, shows, 1, "the demo show is made once")
		keys = append(keys, string(a.config.SigningKey))
		a.Close()
	}
	require.Equal(t, keys[0], keys[1])
}

func TestNewSaysWhatItCannotReach(t *testing.T) {
	t.Parallel()
	settings, err := config.Flags{RedisURL: "redis://127.0.0.1:1", DatabaseURL: "sqlite:" + t.TempDir() + "/f.db"}.Load(config.RoleWorker)
	require.NoError(t, err)
	_, err = New(t.Context(), settings, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "reach redis")
}
