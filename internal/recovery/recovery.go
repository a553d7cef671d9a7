// Package recovery brings a show back into Redis from SQL. What SQL knows comes
// back whole: settings, seats sold, what each person bought. What only Redis
// knew is gone: places and holds. The show's epoch grows, so that everybody who
// waited sees that the queue was restarted and joins again.
package recovery

import (
	"context"
	"fmt"
	"log/slog"

	"foyer/domain"
)

// Store is the SQL that a show is restored from.
type Store interface {
	NextEpoch(ctx context.Context, show domain.ShowID) (domain.Show, error)
	SoldSeats(ctx context.Context, show domain.ShowID) ([]domain.SoldSeat, error)
}

// Steps is the atomic step that restores.
type Steps interface {
	Restore(ctx context.Context, show domain.Show, sold []domain.SoldSeat) (restored bool, err error)
}

// Load restores a show whose keys Redis does not have. Several processes may
// load one show at once: the first wins, the others change nothing. A booking
// that is committed while the sold seats are read is not lost: its worker
// completes it in Redis after the commit, on top of what was restored.
// It fails with domain.ErrShowNotFound when SQL does not know the show either.
func Load(ctx context.Context, store Store, steps Steps, id domain.ShowID, log *slog.Logger) error {
	show, err := store.NextEpoch(ctx, id)
	if err != nil {
		return fmt.Errorf("load show %s: %w", id, err)
	}
	sold, err := store.SoldSeats(ctx, id)
	if err != nil {
		return fmt.Errorf("load seats of show %s: %w", id, err)
	}
	restored, err := steps.Restore(ctx, show, sold)
	if err != nil {
		return fmt.Errorf("restore show %s: %w", id, err)
	}
	if restored {
		log.InfoContext(ctx, "show restored into redis", "show_id", id, "epoch", show.Epoch, "sold", len(sold))
	}
	return nil
}
