package lua

import (
	"context"
	"errors"
	"fmt"
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

// Settlement is what followed from a booking's end. Of bookings that were completed as
// one change, the first tells what changed with all of them.
type Settlement struct {
	Done           bool          // false: it was settled before, and nothing changed
	FreedSlot      bool          // somebody else may come in now
	Seats          []domain.Seat // those that changed
	SoldOutChanged bool          // the show is sold out now, or no longer
	Stats          domain.Stats  // as of the change
}

// CompleteBooking makes a confirmed booking true in Redis: its seats are sold, whatever
// holds them; they count for the person's limit; the person's session ends. It works
// also when the hold, the seats or the place are gone, and once for each booking id.
func (s *Steps) CompleteBooking(ctx context.Context, b domain.Booking) (Settlement, error) {
	b.Status = domain.BookingConfirmed
	return s.settleOne(ctx, Ending{Booking: b})
}

// RejectBooking frees the seats of a booking that SQL refused, and marks as sold those
// that SQL says others have. The person stays inside. Once for each booking id.
func (s *Steps) RejectBooking(ctx context.Context, b domain.Booking, soldBy []domain.SoldSeat) (Settlement, error) {
	b.Status = domain.BookingRejected
	return s.settleOne(ctx, Ending{b, soldBy})
}

// CancelBooking frees the seats of a sale that was taken back; the show is no longer
// sold out. Once for each booking id; a completion that comes late is void.
func (s *Steps) CancelBooking(ctx context.Context, b domain.Booking) (Settlement, error) {
	b.Status = domain.BookingCancelled
	return s.settleOne(ctx, Ending{Booking: b})
}

// Ending is a booking that SQL has decided, and who has the seats that it did not get.
type Ending struct {
	Booking domain.Booking
	SoldBy  []domain.SoldSeat
}

// maxCompleted bounds the bookings that one script completes, so that it does not hold
// Redis for longer than about 2 ms.
const maxCompleted = 64

// scriptOf names what settles a booking of a status.
var scriptOf = map[domain.BookingStatus]string{
	domain.BookingConfirmed: "booking_complete", domain.BookingRejected: "booking_reject", domain.BookingCancelled: "booking_cancel",
}

// SettleBookings completes, rejects or cancels bookings by their status, in one round
// trip; each has its own outcome, as of the method for it alone. They take place in the
// order given, unless the server had forgotten one of the scripts. Confirmed bookings
// of a show that follow each other are completed as one change.
func (s *Steps) SettleBookings(ctx context.Context, endings []Ending) ([]Settlement, []error) {
	settled, errs := make([]Settlement, len(endings)), make([]error, len(endings))
	var calls []call
	var members [][]int // endings of each call
	for i, e := range endings {
		b, script, last := &endings[i].Booking, scriptOf[e.Booking.Status], len(calls)-1
		if b.Status == domain.BookingConfirmed && last >= 0 && calls[last].script == script &&
			calls[last].tag == string(b.ShowID) && len(members[last]) < maxCompleted {
			calls[last].args = appendCompletion(calls[last].args, b)
			members[last] = append(members[last], i)
			continue
		}
		args := []any{string(b.BookingID), string(b.HoldID)}
		switch b.Status {
		case domain.BookingConfirmed:
			room := min(len(endings)-i, maxCompleted) * (4 + len(b.Seats)) // should the next be as large
			args = appendCompletion(make([]any, 0, room), b)
		case domain.BookingRejected:
			for _, seat := range e.SoldBy {
				args = append(args, string(seat.SeatID), string(seat.BookingID), string(seat.RequestID))
			}
		case domain.BookingCancelled:
			args = append(append(args, string(b.RequestID)), anys(b.Seats)...)
		default:
			errs[i] = fmt.Errorf("booking %s is %s after it was decided", b.BookingID, b.Status)
			continue
		}
		calls, members = append(calls, call{script: script, tag: string(b.ShowID), args: args}), append(members, []int{i})
	}
	replies, failed := s.all(ctx, calls)
	for c, r := range replies {
		stats, _ := r.list(0).stats(domain.ShowID(calls[c].tag))
		for n, i := range members[c] {
			if errs[i] = failed[c]; errs[i] != nil {
				continue
			}
			settled[i] = Settlement{Done: r.int(3+2*n) == 1, FreedSlot: r.int(4+2*n) == 1, Stats: stats}
			if n == 0 {
				settled[i].SoldOutChanged = r.int(1) == 1
				settled[i].Seats = r.list(2).changedSeats()
			}
		}
	}
	return settled, errs
}

// appendCompletion puts a confirmed booking in the form in which booking_complete reads it.
func appendCompletion(args []any, b *domain.Booking) []any {
	args = append(args, string(b.BookingID), string(b.HoldID), string(b.RequestID), len(b.Seats))
	for _, seat := range b.Seats {
		args = append(args, string(seat))
	}
	return args
}

func (s *Steps) settleOne(ctx context.Context, e Ending) (Settlement, error) {
	settled, errs := s.SettleBookings(ctx, []Ending{e})
	return settled[0], errs[0]
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
