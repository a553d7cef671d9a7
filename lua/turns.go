package lua

import (
	"context"
	"time"

	"foyer/domain"
)

// Extend gives a person whose page cannot be seen the time of their turn once more;
// extended is false when that was done before or they have claimed. It fails with
// domain.ErrNotAdmitted without a turn, and with domain.ErrNotJoined without a place.
func (s *Steps) Extend(ctx context.Context, show domain.ShowID, request domain.RequestID) (place domain.Place, extended bool, err error) {
	r, err := s.step(ctx, "admission_extend", show, string(request))
	if err != nil {
		return domain.Place{}, false, err
	}
	stats, at := r.list(0).stats(show)
	place, _ = r.list(1).place(request, stats, at)
	return place, r.int(2) == 1, nil
}

// NextLapse tells in how long the next turn or session runs out for which somebody
// waits; ok is false when nobody waits or nobody is inside.
func (s *Steps) NextLapse(ctx context.Context, show domain.ShowID) (in time.Duration, ok bool, err error) {
	r, err := s.step(ctx, "show_lapse", show)
	if err != nil || r.int(0) < 0 {
		return 0, false, err
	}
	return time.Duration(r.int(0)) * time.Millisecond, true, nil
}
