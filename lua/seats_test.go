package lua

import (
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A large plan is read in pages while people buy, and the whole is as of one version.
func TestLargePlansAreReadWhileTheyChange(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		show := defaultShow("")
		show.Seating.Sections[0] = domain.Section{Name: "A", Rows: 50, SeatsPerRow: fewer(t, 100)}
		all := show.Seating.AllSeats()
		sold := soldTo("r0", "b0", all[:len(all)-50]...)
		w := unloaded(t, rdb, func(s *domain.Show) { s.Seating = show.Seating })
		_, err := w.Restore(t.Context(), w.show, sold)
		require.NoError(t, err)
		w.enter("me")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 3 {
					changes, err := w.Seats(t.Context(), w.show.ID, 0, "me")
					if err != nil || len(changes.Seats) < len(sold) {
						t.Errorf("%d seats, error %v", len(changes.Seats), err)
					}
				}
			})
		}
		for i := range 20 {
			hold := w.mustHold("me", "h1", all[len(sold)+i])
			changes, err := w.Seats(t.Context(), w.show.ID, 0, "me")
			require.NoError(t, err)
			require.GreaterOrEqual(t, changes.Version, hold.Version)
			require.Len(t, changes.Seats, len(sold)+1)
			_, _, err = w.ReleaseHold(t.Context(), w.show.ID, "me", "h1")
			require.NoError(t, err)
		}
		wg.Wait()
	})
}
