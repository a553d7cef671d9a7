package lua

import (
	"context"

	"foyer/domain"
)

// HoldRequest asks to keep seats for a person.
type HoldRequest struct {
	ShowID    domain.ShowID
	RequestID domain.RequestID
	HoldID    domain.HoldID // chosen by the caller; the same again answers the same hold
	// Candidates are alternatives; the first whose seats are all free is taken. A
	// person's own choice of seats is the only candidate.
	Candidates [][]domain.SeatID
}

// Hold keeps seats for a person who is inside, all or nothing. Price is left 0. It
// fails with domain.ErrNotAdmitted, domain.ErrClosed, *domain.NotOpenError or
// domain.ErrSoldOut when no holds are possible, *domain.LimitError, a
// *domain.SeatsUnavailableError that names every conflict of an only candidate, and
// domain.ErrNoBlock when none of several, or of none, is free.
func (s *Steps) Hold(ctx context.Context, req HoldRequest) (domain.Hold, error) {
	args := []any{string(req.RequestID), string(req.HoldID), len(req.Candidates)}
	for _, seats := range req.Candidates {
		args = append(append(args, len(seats)), anys(seats)...)
	}
	r, err := s.step(ctx, "hold_take", req.ShowID, args...)
	return r.hold(req.ShowID, req.HoldID, err)
}

// SwapHold changes the seats of a person's own hold in one step: seats that stay are
// never free in between. Deadline and ceiling stay as they were. It fails like Hold,
// and with domain.ErrHoldNotFound, domain.ErrHoldExpired and, while it is being
// booked, domain.ErrInProgress.
func (s *Steps) SwapHold(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID, seats []domain.SeatID) (domain.Hold, error) {
	args := append([]any{string(request), string(hold)}, anys(seats)...)
	r, err := s.step(ctx, "hold_swap", show, args...)
	return r.hold(show, hold, err)
}

// ExtendHold gives a person's own hold its full time again from now, but never beyond
// its ceiling. It fails like SwapHold and then extends nothing.
func (s *Steps) ExtendHold(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID) (domain.Hold, error) {
	r, err := s.step(ctx, "hold_extend", show, string(request), string(hold))
	return r.hold(show, hold, err)
}

// hold reads what the steps on one hold answer.
func (r reply) hold(show domain.ShowID, id domain.HoldID, err error) (domain.Hold, error) {
	if err != nil {
		return domain.Hold{}, err
	}
	return domain.Hold{
		HoldID:     id,
		ShowID:     show,
		ExpiresAt:  instant(r.int(0)),
		CeilingAt:  instant(r.int(1)),
		ServerTime: instant(r.int(2)),
		Version:    r.int(3),
		Seats:      ids[domain.SeatID](r.rest(4)),
	}, nil
}

// ReleaseHold frees a person's own hold and tells its seats, or none when it had run
// out before. It fails with domain.ErrHoldNotFound when it is unknown or another's,
// and domain.ErrInProgress when it is being booked.
func (s *Steps) ReleaseHold(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID) (released []domain.SeatID, version int64, err error) {
	r, err := s.step(ctx, "hold_release", show, string(request), string(hold))
	if err != nil {
		return nil, 0, err
	}
	return ids[domain.SeatID](r.rest(1)), r.int(0), nil
}

// Holds tells a person's live holds, those being booked among them.
func (s *Steps) Holds(ctx context.Context, show domain.ShowID, request domain.RequestID) ([]domain.Hold, error) {
	r, err := s.step(ctx, "hold_list", show, string(request))
	if err != nil {
		return nil, err
	}
	var holds []domain.Hold
	for i := range r.rest(2) {
		entry := r.list(2 + i)
		holds = append(holds, domain.Hold{
			HoldID:     domain.HoldID(entry.str(0)),
			ShowID:     show,
			ExpiresAt:  instant(entry.int(1)),
			CeilingAt:  instant(entry.int(2)),
			Seats:      ids[domain.SeatID](entry.rest(3)),
			ServerTime: instant(r.int(0)),
			Version:    r.int(1),
		})
	}
	return holds, nil
}

// maxSweep bounds the holds that one sweep tidies up.
const maxSweep = 200

// SweepHolds tidies up at most limit holds that ran out (0, or more than 200: 200) and
// tells their seats, so that everybody can be told. The seats were free before.
func (s *Steps) SweepHolds(ctx context.Context, show domain.ShowID, limit int) (freed []domain.SeatID, version int64, more bool, err error) {
	if limit <= 0 || limit > maxSweep {
		limit = maxSweep
	}
	r, err := s.step(ctx, "hold_sweep", show, limit)
	if err != nil {
		return nil, 0, false, err
	}
	return ids[domain.SeatID](r.list(2)), r.int(0), r.int(1) == 1, nil
}
