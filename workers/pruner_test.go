package workers

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// Commands that had their effect were kept for ever. They are forgotten batch after batch
// once they are old, and not before.
func TestOldCommandsAreForgottenBatchAfterBatch(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	for _, booking := range []domain.Booking{s.pending("ada", "A-1-1"), s.pending("bob", "A-1-2"), s.pending("eve", "A-1-3")} {
		require.NoError(t, s.book(booking, 1))
	}
	p := pruner{keep: time.Hour, store: s.store, log: slog.New(slog.DiscardHandler)}
	forgotten, err := p.prune(t.Context(), 2, time.Millisecond)
	require.NoError(t, err)
	require.Zero(t, forgotten)
	p.keep = time.Microsecond
	forgotten, err = p.prune(t.Context(), 2, time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, 3, forgotten)
	s.requireSold("A-1-1", "A-1-2", "A-1-3")
}
