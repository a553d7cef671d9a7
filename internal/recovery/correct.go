package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"foyer/domain"
	"foyer/lua"
	"foyer/store"
)

const (
	// settling is how long a decided booking may be on its way into Redis: its worker
	// does that itself, and better, as long as it lives.
	settling = 3 * time.Second
	// maxRounds bounds the corrections that follow from corrections.
	maxRounds = 4
)

// correct compares and corrects until there is nothing to correct. A first round that
// finds something begins a new epoch.
func (r *Rebuilder) correct(ctx context.Context, result *Result) error {
	raised := result.Restored
	for range maxRounds {
		redis, err := r.Steps.Audit(ctx, result.ShowID)
		if err != nil {
			return err
		}
		sql, err := r.Store.Ledger(ctx, result.ShowID)
		if err != nil {
			return err
		}
		unsettled := unsettled(redis, sql)
		corrections := corrections(redis, sql)
		epoch := sql.Show.Epoch
		if len(unsettled)+len(corrections) == 0 && redis.Fields["epoch"] == epoch {
			return nil
		}
		for !raised || redis.Fields["epoch"] > epoch { // SQL may be the older one, from a backup
			show, err := r.Store.NextEpoch(ctx, result.ShowID)
			if err != nil {
				return err
			}
			raised, epoch = true, show.Epoch
		}
		result.Epoch = epoch
		for _, booking := range unsettled {
			if err := r.settle(ctx, booking); err != nil {
				return err
			}
		}
		result.Settled += len(unsettled)
		result.Corrected += len(corrections)
		if redis.Fields["epoch"] != epoch {
			result.Corrected++
		}
		if _, err := r.Steps.Reconcile(ctx, result.ShowID, epoch, corrections); err != nil {
			return err
		}
	}
	return nil
}

// settle does in Redis what a worker did, in a state of Redis that is no more.
func (r *Rebuilder) settle(ctx context.Context, b domain.Booking) error {
	var err error
	switch b.Status {
	case domain.BookingConfirmed:
		_, err = r.Steps.CompleteBooking(ctx, b)
	case domain.BookingRejected:
		_, err = r.Steps.RejectBooking(ctx, b, nil)
	case domain.BookingCancelled:
		_, err = r.Steps.CancelBooking(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("settle booking %s: %w", b.BookingID, err)
	}
	return nil
}

// unsettled are the bookings that SQL has decided and Redis has not heard of, oldest
// first: those confirmed, and those of which a hold is still being booked.
func unsettled(redis lua.Audit, sql store.Ledger) []domain.Booking {
	var found []domain.Booking
	holding := map[domain.BookingID]bool{}
	for _, hold := range redis.Holds {
		if hold.BookingID != "" {
			holding[hold.BookingID] = true
		}
	}
	for id, b := range sql.Bookings {
		_, settled := redis.Settled[id]
		if !settled && b.Decided > settling && (b.Status == domain.BookingConfirmed || holding[id]) {
			found = append(found, b.Booking)
		}
	}
	slices.SortFunc(found, func(a, b domain.Booking) int { return a.DecidedAt.Compare(*b.DecidedAt) })
	return found
}

// corrections are what else is wrong in Redis.
func corrections(redis lua.Audit, sql store.Ledger) []lua.Correction {
	var list []lua.Correction
	for id, seat := range redis.Seats {
		if seat.Kind == lua.SeatKindSold {
			continue
		}
		if hold, known := redis.Holds[seat.HoldID]; !known || !slices.Contains(hold.Seats, id) {
			list = append(list, lua.ClearSeat(id, seat.Value))
		}
	}
	for id, hold := range redis.Holds {
		lost := slices.ContainsFunc(hold.Seats, func(seat domain.SeatID) bool { return redis.Seats[seat].HoldID != id })
		if hold.State == lua.HoldPlain && lost {
			list = append(list, lua.DropHold(id))
		}
	}
	list = append(list, sales(redis, sql)...)
	return append(list, counts(redis, sql)...)
}

// sales are the seats that Redis and SQL have sold differently. What was decided a
// moment ago is left to its worker.
func sales(redis lua.Audit, sql store.Ledger) []lua.Correction {
	var list []lua.Correction
	inSQL := map[domain.SeatID]domain.BookingID{}
	for _, seat := range sql.Sold {
		inSQL[seat.SeatID] = seat.BookingID
		b := sql.Bookings[seat.BookingID]
		_, settled := redis.Settled[seat.BookingID]
		if settled && redis.Seats[seat.SeatID].BookingID != seat.BookingID && b.Decided > settling {
			list = append(list, lua.Sell(seat, b.HoldID))
		}
	}
	for id, seat := range redis.Seats {
		if seat.Kind != lua.SeatKindSold || inSQL[id] == seat.BookingID {
			continue
		}
		b, known := sql.Bookings[seat.BookingID]
		if !known || b.Decided > settling {
			list = append(list, lua.Unsell(domain.SoldSeat{SeatID: id, BookingID: seat.BookingID, RequestID: b.RequestID}, b.Status != domain.BookingConfirmed))
		}
	}
	return list
}

// counts are the numbers that the seats in Redis do not bear out.
func counts(redis lua.Audit, sql store.Ledger) []lua.Correction {
	var list []lua.Correction
	kinds, bought := map[string]int64{}, map[domain.RequestID]int64{}
	for _, seat := range redis.Seats {
		kinds[seat.Kind]++
		if b, known := sql.Bookings[seat.BookingID]; known && seat.Kind == lua.SeatKindSold {
			bought[b.RequestID]++
		}
	}
	sold, held := kinds[lua.SeatKindSold], kinds[lua.SeatKindHeld]+kinds[lua.SeatKindBooking]
	capacity := redis.Fields["capacity"]
	if sold != redis.Fields["sold"] || held != redis.Fields["held"] || redis.SoldOut != (capacity > 0 && sold >= capacity) {
		list = append(list, lua.Recount())
	}
	for request := range redis.Bought {
		bought[request] += 0
	}
	for request, n := range bought {
		if counted := redis.Bought[request]; counted != n {
			list = append(list, lua.SetBought(request, counted, n))
		}
	}
	return list
}
