package lua

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"foyer/domain"
)

// Configure makes a show's settings those in use, when their revision is newer than
// that in use; older ones are ignored. A show that is not in Redis is loaded by the
// loader, so that seats sold before Redis was lost are not forgotten; without a
// loader it is created with nothing sold.
func (s *Steps) Configure(ctx context.Context, show domain.Show) error {
	args := append([]any{show.Revision}, settings(show)...)
	_, err := s.step(ctx, "show_configure", show.ID, args...)
	switch {
	case errors.Is(err, errStale):
		return nil
	case errors.Is(err, domain.ErrNotLoaded) && s.load == nil:
		_, err = s.Restore(ctx, show, nil)
	}
	return err
}

// Restore brings a show into Redis that is not there, with its settings, its epoch, the
// seats that SQL says are sold, and those of bookings that are not decided yet, which stay
// theirs and count for their people as they did. It reports false, and changes nothing, when the
// show is there. Places and holds are lost: the caller gives the show a new epoch first.
func (s *Steps) Restore(ctx context.Context, show domain.Show, sold []domain.SoldSeat, pending ...domain.Booking) (restored bool, err error) {
	fields := settings(show)
	args := append([]any{show.Epoch, show.Seating.Capacity(), show.Queue.Grace().Milliseconds(), len(fields) / 2, len(sold)}, fields...)
	for _, seat := range sold {
		args = append(args, string(seat.SeatID), string(seat.BookingID), string(seat.RequestID))
	}
	for _, b := range pending {
		seats := make([]string, len(b.Seats))
		for i, seat := range b.Seats {
			seats[i] = string(seat)
		}
		args = append(args, string(b.HoldID), string(b.BookingID), string(b.RequestID), strings.Join(seats, ","))
	}
	_, err = s.step(ctx, "show_restore", show.ID, args...)
	if errors.Is(err, errLoaded) {
		return false, nil
	}
	return err == nil, err
}

// settings are a show's settings as fields of its hash; times and durations in ms.
// An empty value stands for none.
func settings(show domain.Show) []any {
	queue, seating := show.Queue, show.Seating
	var closesAt any = ""
	if show.ClosesAt != nil {
		closesAt = show.ClosesAt.UnixMilli()
	}
	fields := []any{
		"revision", show.Revision,
		"max_active", queue.MaxActive,
		"rate", queue.RatePerMinute,
		"turn_ms", queue.Turn().Milliseconds(),
		"session_ms", queue.Session().Milliseconds(),
		"grace_ms", queue.Grace().Milliseconds(),
		"over_admit", queue.OverAdmitPercent,
		"hold_ms", seating.HoldTime().Milliseconds(),
		"ceiling_ms", seating.HoldCeiling().Milliseconds(),
		"seat_limit", seating.SeatLimit,
		"capacity", seating.Capacity(),
		"join_at", show.JoinOpensAt().UnixMilli(),
		"opens_at", show.DrawClosesAt().UnixMilli(), // when admission begins
		"closes_at", closesAt,
		"draw_mark", domain.DrawMark(show.DrawSeed),
		"paused", oneIf(show.Paused),
		"closed", oneIf(show.Closed),
	}
	for lane, weight := range queue.LaneWeights() {
		fields = append(fields, "weight_"+strconv.Itoa(lane), weight, "lanes", lane) // the last is how many there are
	}
	return fields
}

func oneIf(set bool) int {
	if set {
		return 1
	}
	return 0
}

// Stats tells shows' live numbers in the order asked for, in one round trip. Held
// counts live holds and seats being booked only. It fails when one of them fails.
func (s *Steps) Stats(ctx context.Context, shows ...domain.ShowID) ([]domain.Stats, error) {
	calls := make([]call, len(shows))
	for i, show := range shows {
		calls[i] = call{script: "show_stats", tag: string(show)}
	}
	replies, errs := s.all(ctx, calls)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	stats := make([]domain.Stats, len(shows))
	for i, r := range replies {
		stats[i], _ = r.list(0).stats(shows[i])
	}
	return stats, nil
}

// DueTick tells one caller in each interval, of all who ask in all processes, that
// the show's admission tick is due.
func (s *Steps) DueTick(ctx context.Context, show domain.ShowID, every time.Duration) (bool, error) {
	r, err := s.step(ctx, "show_due", show, every.Milliseconds())
	return r.int(0) == 1 && err == nil, err
}
