package lua

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"foyer/domain"
)

// seatPage is about how many seats one script reads of a plan, and maxSeatReads how
// often a read begins anew because the show was lost and restored meanwhile.
const (
	seatPage     = 1000
	maxSeatReads = 3
)

// Seats tells, for since 0, every seat that is not free; else the present state of the
// seats that changed after version since, free ones too. A viewer's own seats carry
// their hold. Sorted by seat id. A version of another epoch means nothing; ask for 0.
func (s *Steps) Seats(ctx context.Context, show domain.ShowID, since int64, viewer domain.RequestID) (domain.SeatChanges, error) {
	if since > 0 {
		return s.seatsSince(ctx, show, since, viewer)
	}
	for range maxSeatReads {
		changes, whole, err := s.allSeats(ctx, show, viewer)
		if err != nil || whole {
			return changes, err
		}
	}
	return domain.SeatChanges{}, fmt.Errorf("read seats of show %s: it was restored %d times meanwhile", show, maxSeatReads)
}

func (s *Steps) seatsSince(ctx context.Context, show domain.ShowID, since int64, viewer domain.RequestID) (domain.SeatChanges, error) {
	r, err := s.step(ctx, "seats_delta", show, since, string(viewer))
	if err != nil {
		return domain.SeatChanges{}, err
	}
	seats := map[domain.SeatID]domain.Seat{}
	r.list(2).seatsInto(seats)
	return domain.SeatChanges{Epoch: r.int(0), Version: r.int(1), Seats: sorted(seats)}, nil
}

// allSeats reads the plan page by page and then what changed since the first page, so
// that the whole is as of one version. It is not whole when the epoch changed.
func (s *Steps) allSeats(ctx context.Context, show domain.ShowID, viewer domain.RequestID) (_ domain.SeatChanges, whole bool, err error) {
	seats := map[domain.SeatID]domain.Seat{}
	var first domain.SeatChanges
	for cursor, page := "0", 0; page == 0 || cursor != "0"; page++ {
		r, err := s.step(ctx, "seats_page", show, cursor, seatPage, string(viewer))
		if err != nil {
			return domain.SeatChanges{}, false, err
		}
		if page == 0 {
			first = domain.SeatChanges{Epoch: r.int(0), Version: r.int(1)}
			if cursor = r.str(2); cursor == "0" {
				r.list(3).seatsInto(seats)
				first.Seats = sorted(seats)
				return first, true, nil
			}
		}
		cursor = r.str(2)
		r.list(3).seatsInto(seats)
	}
	later, err := s.seatsSince(ctx, show, first.Version, viewer)
	if err != nil || later.Epoch != first.Epoch {
		return domain.SeatChanges{}, false, err
	}
	for _, seat := range later.Seats {
		seats[seat.ID] = seat
		if seat.State == domain.SeatFree {
			delete(seats, seat.ID)
		}
	}
	later.Seats = sorted(seats)
	return later, true, nil
}

// seatsInto reads seat, state, hold triples.
func (r reply) seatsInto(seats map[domain.SeatID]domain.Seat) {
	for i := 0; i+2 < len(r); i += 3 {
		id := domain.SeatID(r.str(i))
		seats[id] = domain.Seat{ID: id, State: domain.SeatState(r.str(i + 1)), HoldID: domain.HoldID(r.str(i + 2))}
	}
}

func sorted(seats map[domain.SeatID]domain.Seat) []domain.Seat {
	list := make([]domain.Seat, 0, len(seats))
	for _, seat := range seats {
		list = append(list, seat)
	}
	slices.SortFunc(list, func(a, b domain.Seat) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}
