package lua

import (
	"context"
	"errors"
	"time"

	"foyer/domain"
)

// BeginBooking moves a person's hold to "being booked": from then it cannot lapse.
// Begun again, it answers the booking id of the first time, for it is the same intent.
// It fails with domain.ErrInProgress while another call has begun it, less than 10
// seconds ago, and not yet confirmed that the command is on its stream;
// domain.ErrNotAdmitted when the session is over; domain.ErrHoldExpired,
// domain.ErrHoldNotFound, domain.ErrClosed, *domain.NotOpenError.
func (s *Steps) BeginBooking(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID, booking domain.BookingID) (begun domain.BookingID, seats []domain.SeatID, err error) {
	r, err := s.step(ctx, "booking_begin", show, string(request), string(hold), string(booking))
	if err != nil {
		return "", nil, err
	}
	return domain.BookingID(r.str(0)), ids[domain.SeatID](r.rest(1)), nil
}

// BookingPublished notes that a begun booking's command is on its stream: beginning it
// again answers its id at once. A booking that was settled meanwhile is no error.
func (s *Steps) BookingPublished(ctx context.Context, show domain.ShowID, hold domain.HoldID, booking domain.BookingID) error {
	_, err := s.step(ctx, "booking_published", show, string(hold), string(booking))
	return err
}

// AbortBooking makes a plain hold again of one whose booking was begun and not
// published, with its old deadline; it frees it when its person is outside by now. It
// fails with domain.ErrInProgress once published, and domain.ErrHoldNotFound.
func (s *Steps) AbortBooking(ctx context.Context, show domain.ShowID, hold domain.HoldID, booking domain.BookingID) error {
	_, err := s.step(ctx, "booking_abort", show, string(hold), string(booking))
	return err
}

// Settlement is what followed from a booking's end.
type Settlement struct {
	Done           bool          // false: it was settled before, and nothing changed
	FreedSlot      bool          // somebody else may come in now
	Seats          []domain.Seat // those that changed
	SoldOutChanged bool          // the show is sold out now, or no longer
	Stats          domain.Stats
}

// CompleteBooking makes a confirmed booking true in Redis: its seats are sold, whatever
// holds them; they count for the person's limit; the person's session ends. It works
// also when the hold, the seats or the place are gone, and once for each booking id.
func (s *Steps) CompleteBooking(ctx context.Context, b domain.Booking) (Settlement, error) {
	args := append([]any{string(b.BookingID), string(b.HoldID), string(b.RequestID)}, anys(b.Seats)...)
	return s.settle(ctx, "booking_complete", b.ShowID, args)
}

// RejectBooking frees the seats of a booking that SQL refused, and marks as sold those
// that SQL says others have. The person stays inside. Once for each booking id.
func (s *Steps) RejectBooking(ctx context.Context, b domain.Booking, soldBy []domain.SoldSeat) (Settlement, error) {
	args := []any{string(b.BookingID), string(b.HoldID)}
	for _, seat := range soldBy {
		args = append(args, string(seat.SeatID), string(seat.BookingID), string(seat.RequestID))
	}
	return s.settle(ctx, "booking_reject", b.ShowID, args)
}

// CancelBooking frees the seats of a sale that was taken back; the show is no longer
// sold out. Once for each booking id; a completion that comes late is void.
func (s *Steps) CancelBooking(ctx context.Context, b domain.Booking) (Settlement, error) {
	args := append([]any{string(b.BookingID), string(b.HoldID), string(b.RequestID)}, anys(b.Seats)...)
	return s.settle(ctx, "booking_cancel", b.ShowID, args)
}

// maxEnds bounds the ends of bookings that share a round trip.
const maxEnds = 128

// endAll settles bookings of a show in one round trip, each with its own outcome.
func (s *Steps) endAll(ctx context.Context, _ domain.ShowID, calls []call) ([]outcome[reply], error) {
	outcomes := make([]outcome[reply], len(calls))
	replies, errs := s.all(ctx, calls)
	for i := range calls {
		outcomes[i] = outcome[reply]{replies[i], errs[i]}
	}
	return outcomes, nil
}

// settle ends a booking. Calls that come at the same time travel together.
func (s *Steps) settle(ctx context.Context, script string, show domain.ShowID, args []any) (Settlement, error) {
	r, err := s.ends.do(ctx, show, call{script: script, tag: string(show), args: args})
	if err != nil {
		return Settlement{}, err
	}
	stats, _ := r.list(3).stats(show)
	return Settlement{
		Done:           r.int(0) == 1,
		FreedSlot:      r.int(1) == 1,
		SoldOutChanged: r.int(2) == 1,
		Stats:          stats,
		Seats:          r.list(4).changedSeats(),
	}, nil
}

// StuckBooking is a hold whose booking was begun long ago and never settled.
type StuckBooking struct {
	HoldID    domain.HoldID
	BookingID domain.BookingID
	RequestID domain.RequestID
	Seats     []domain.SeatID
}

// StuckBookings tells at most limit bookings begun olderThan ago or longer and settled
// by nobody since, oldest first.
func (s *Steps) StuckBookings(ctx context.Context, show domain.ShowID, olderThan time.Duration, limit int) ([]StuckBooking, error) {
	if limit <= 0 {
		return nil, errors.New("limit of stuck bookings must be positive")
	}
	r, err := s.step(ctx, "booking_stuck", show, olderThan.Milliseconds(), limit)
	if err != nil {
		return nil, err
	}
	var stuck []StuckBooking
	for i := range r {
		entry := r.list(i)
		stuck = append(stuck, StuckBooking{
			HoldID:    domain.HoldID(entry.str(0)),
			BookingID: domain.BookingID(entry.str(1)),
			RequestID: domain.RequestID(entry.str(2)),
			Seats:     ids[domain.SeatID](entry.rest(3)),
		})
	}
	return stuck, nil
}
