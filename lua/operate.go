package lua

import (
	"context"
	"errors"
	"time"

	"foyer/domain"
)

// renewal is within how long every page renews its presence.
const renewal = 30 * time.Second

// Reset ends all places of a show at once, under the epoch given, and reports how many.
// Seats sold stay, holds run out by themselves. It is safe to repeat: places of that
// epoch or a later one are left alone, and done is false then.
func (s *Steps) Reset(ctx context.Context, show domain.ShowID, epoch int64) (ended int64, done bool, err error) {
	r, err := s.step(ctx, "show_reset", show, epoch, renewal.Milliseconds())
	if errors.Is(err, errStale) {
		return 0, false, nil
	}
	return r.int(0), err == nil, err
}

// Remove is Leave by an operator's hand: the place ends as EXPIRED.
func (s *Steps) Remove(ctx context.Context, show domain.ShowID, request domain.RequestID) (Departure, error) {
	return s.depart(ctx, show, request, "removed")
}
