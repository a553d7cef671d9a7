package store

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

func TestRetryIsBounded(t *testing.T) {
	t.Parallel()
	collision, final := errors.New("collision"), errors.New("final")
	transient := func(err error) bool { return errors.Is(err, collision) }
	calls := 0
	failing := func(times int, then error) func() error {
		calls = 0
		return func() error {
			if calls++; calls <= times {
				return collision
			}
			return then
		}
	}
	require.NoError(t, retry(t.Context(), transient, failing(3, nil)))
	require.Equal(t, 4, calls)
	require.ErrorIs(t, retry(t.Context(), transient, failing(1, final)), final)
	require.Equal(t, 2, calls)
	require.ErrorIs(t, retry(t.Context(), transient, failing(1000, nil)), collision)
	require.Equal(t, maxAttempts, calls)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := retry(ctx, transient, failing(1000, nil))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, collision)
	require.Equal(t, 1, calls)
}

// Two transactions that wait for each other in a circle: PostgreSQL breaks one
// off, and its caller never learns of it.
func TestDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testenv.DatabaseURL(t))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Migrate(t.Context()))
	ids := []domain.ShowID{testenv.ShowID(t), testenv.ShowID(t)}
	for _, id := range ids {
		require.NoError(t, db.CreateShow(t.Context(), domain.Show{ID: id, Title: "T"}))
	}
	var wg, bothLocked sync.WaitGroup
	bothLocked.Add(2)
	attempts := make([]int, 2)
	for i := range 2 {
		wg.Go(func() {
			err := db.engine.write(t.Context(), func(tx session) error {
				attempts[i]++
				if _, err := findShow(t.Context(), tx, ids[i], db.engine.locked("shows")); err != nil {
					return err
				}
				if attempts[i] == 1 {
					bothLocked.Done()
					bothLocked.Wait()
				}
				_, err := saveShow(t.Context(), tx, ids[1-i], domain.Show{Title: "changed"})
				return err
			})
			if err != nil {
				t.Errorf("write: %v", err)
			}
		})
	}
	wg.Wait()
	require.Greater(t, attempts[0]+attempts[1], 2) // one of them ran again
	for _, id := range ids {
		s, err := db.Show(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "changed", s.Title)
	}
}
