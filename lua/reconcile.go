package lua

import (
	"context"
	"strconv"

	"foyer/domain"
)

// Correction is one thing that Redis is told about a show's seats. It holds only as
// long as what it corrects is there, so that sales may go on meanwhile, and making it
// twice is making it once.
type Correction struct{ kind, a, b, c, d string }

// Sell says that SQL has sold a seat. It does nothing when the seat is the booking's
// already, but for noting the booking as settled.
func Sell(seat domain.SoldSeat, hold domain.HoldID) Correction {
	return Correction{"SELL", string(seat.SeatID), string(seat.BookingID), string(seat.RequestID), string(hold)}
}

// Unsell says that SQL has not sold a seat to a booking, and will not any more. over
// says that the booking is cancelled, or nothing that SQL knows.
func Unsell(seat domain.SoldSeat, over bool) Correction {
	c := Correction{"FREE", string(seat.SeatID), string(seat.BookingID), string(seat.RequestID), ""}
	if over {
		c.d = "X"
	}
	return c
}

// ClearSeat frees a seat whose value belongs to no hold.
func ClearSeat(seat domain.SeatID, value string) Correction {
	return Correction{"CLEAR", string(seat), value, "", ""}
}

// DropHold frees a plain hold that is not what its seats say.
func DropHold(hold domain.HoldID) Correction { return Correction{"DROP", string(hold), "", "", ""} }

// SetBought says how many seats a person has bought, where Redis counted another number.
func SetBought(request domain.RequestID, counted, right int64) Correction {
	return Correction{"BOUGHT", string(request), strconv.FormatInt(counted, 10), strconv.FormatInt(right, 10), ""}
}

// Recount counts the seats sold and held anew.
func Recount() Correction { return Correction{"RECOUNT", "", "", "", ""} }

// Reconciled is a show after its correction.
type Reconciled struct {
	Epoch, Version, SeatVersion int64
	Seats                       []domain.Seat // those that changed
}

// maxCorrections bounds those of one call, so that Redis is not held up.
const maxCorrections = 500

// Reconcile corrects a show that is in Redis and gives it the epoch, when that is newer
// than its own; without corrections it does only that. Places, sessions and sound holds
// stay. It fails with domain.ErrNotLoaded where there is no loader.
func (s *Steps) Reconcile(ctx context.Context, show domain.ShowID, epoch int64, corrections []Correction) (Reconciled, error) {
	var done Reconciled
	for {
		part := corrections[:min(len(corrections), maxCorrections)]
		corrections = corrections[len(part):]
		args := []any{epoch}
		for _, c := range part {
			args = append(args, c.kind, c.a, c.b, c.c, c.d)
		}
		r, err := s.step(ctx, "show_reconcile", show, args...)
		if err != nil {
			return done, err
		}
		done.Epoch, done.Version, done.SeatVersion = r.int(0), r.int(1), r.int(2)
		done.Seats = append(done.Seats, r.list(3).changedSeats()...)
		if len(corrections) == 0 {
			return done, nil
		}
	}
}
