package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

// Audit is what Redis knows of a show at one instant, for comparison with itself and
// with SQL.
type Audit struct {
	ShowID domain.ShowID
	At     time.Time        // by Redis
	Fields map[string]int64 // the show's hash: settings, counters, versions; times and durations in ms

	Waiting, Present      int64              // present are those who wait, and TurnsPresent
	Inside, Over, Claimed int64              // Inside has those whose time is over, not yet swept
	Astray                int64              // of Waiting, in a lane that the show does not have
	TurnsPresent          int64              // of Inside, whose contact is kept until they claim
	WaitingInside         []domain.RequestID // in two places at once
	ClaimedOutside        []domain.RequestID

	SoldOut   bool // the key for polling is there
	Seats     map[domain.SeatID]AuditedSeat
	Holds     map[domain.HoldID]AuditedHold
	Deadlines []domain.HoldID // holds that have one, lapsed ones among them
	Begun     []domain.HoldID // holds whose booking has begun
	Owners    map[domain.RequestID][]domain.HoldID
	Bought    map[domain.RequestID]int64
	Settled   map[domain.BookingID]string // C completed, R rejected, X cancelled
}

// Kinds of a seat that is not free.
const (
	SeatKindHeld    = "h"
	SeatKindBooking = "b" // being booked
	SeatKindSold    = "s"
)

// AuditedSeat is a seat that is not free, or whose hold ran out and was not swept yet.
type AuditedSeat struct {
	Kind      string
	HoldID    domain.HoldID    // unless sold
	RequestID domain.RequestID // unless sold
	BookingID domain.BookingID // unless held
	Value     string           // as it stands in Redis
}

// States of a hold.
const (
	HoldPlain     = "h"
	HoldBegun     = "b"
	HoldPublished = "p" // begun, and its command is on the stream
	HoldLapsed    = "x" // remembered without seats
)

// AuditedHold is a hold. A plain one may have run out without having been swept.
type AuditedHold struct {
	RequestID domain.RequestID
	State     string
	Deadline  time.Time
	BookingID domain.BookingID // while being booked
	Begun     time.Time        // likewise
	Seats     []domain.SeatID
}

// Audit reads all that Redis knows of a show at one instant. It holds Redis up for
// about a second a million seats, so it is for operators and tests.
func (s *Steps) Audit(ctx context.Context, show domain.ShowID) (Audit, error) {
	r, err := s.step(ctx, "show_audit", show)
	if err != nil {
		return Audit{}, err
	}
	a := Audit{
		ShowID: show, At: instant(r.int(0)), SoldOut: r.int(1) == 1, Fields: map[string]int64{},
		Waiting: r.list(3).int(0), Present: r.list(3).int(1), Inside: r.list(3).int(2), Over: r.list(3).int(3), Claimed: r.list(3).int(4),
		TurnsPresent: r.list(3).int(5), Astray: r.list(3).int(6),
		WaitingInside: ids[domain.RequestID](r.list(4)), ClaimedOutside: ids[domain.RequestID](r.list(5)),
		Seats: map[domain.SeatID]AuditedSeat{}, Holds: map[domain.HoldID]AuditedHold{},
		Deadlines: ids[domain.HoldID](r.list(8)), Begun: ids[domain.HoldID](r.list(9)),
		Owners: map[domain.RequestID][]domain.HoldID{}, Bought: map[domain.RequestID]int64{}, Settled: map[domain.BookingID]string{},
	}
	r.list(2).pairs(func(field, value string) { a.Fields[field] = number(value) })
	r.list(6).pairs(func(seat, value string) { a.Seats[domain.SeatID(seat)] = auditedSeat(value) })
	r.list(7).pairs(func(hold, value string) { a.Holds[domain.HoldID(hold)] = auditedHold(value) })
	r.list(10).pairs(func(request, holds string) {
		for hold := range strings.SplitSeq(holds, ",") {
			a.Owners[domain.RequestID(request)] = append(a.Owners[domain.RequestID(request)], domain.HoldID(hold))
		}
	})
	r.list(11).pairs(func(request, seats string) { a.Bought[domain.RequestID(request)] = number(seats) })
	r.list(12).pairs(func(booking, outcome string) { a.Settled[domain.BookingID(booking)] = outcome })
	return a, nil
}

// pairs reads fields and their values.
func (r reply) pairs(see func(field, value string)) {
	for i := 0; i+1 < len(r); i += 2 {
		see(r.str(i), r.str(i+1))
	}
}

// number reads a number; an empty value, which stands for none, is 0.
func number(text string) int64 {
	n, err := strconv.ParseFloat(text, 64) // what scripts write may have an exponent
	if err != nil {
		return 0
	}
	return int64(n)
}

// auditedSeat reads a seat's value; see prelude_seats.lua.
func auditedSeat(value string) AuditedSeat {
	seat := AuditedSeat{Value: value}
	parts := append(strings.Split(value, ":"), "", "", "")
	switch seat.Kind = parts[0]; seat.Kind {
	case SeatKindSold:
		seat.BookingID = domain.BookingID(parts[1])
	case SeatKindBooking:
		seat.BookingID = domain.BookingID(parts[3])
		fallthrough
	default:
		seat.HoldID, seat.RequestID = domain.HoldID(parts[1]), domain.RequestID(parts[2])
	}
	return seat
}

// auditedHold reads a hold's value; see prelude_seats.lua.
func auditedHold(value string) AuditedHold {
	parts := append(strings.SplitN(value, ":", 7), "", "", "", "", "", "")
	hold := AuditedHold{
		RequestID: domain.RequestID(parts[0]), State: parts[1], Deadline: instant(number(parts[2])), BookingID: domain.BookingID(parts[4]),
	}
	if begun := number(parts[5]); begun > 0 {
		hold.Begun = instant(begun)
	}
	if parts[6] != "" {
		for seat := range strings.SplitSeq(parts[6], ",") {
			hold.Seats = append(hold.Seats, domain.SeatID(seat))
		}
	}
	return hold
}

// ServerRun names the run of the Redis that answers: it changes when the server was
// started again or another took over. It is empty where the server does not tell.
func (s *Steps) ServerRun(ctx context.Context) (string, error) {
	text, err := s.rdb.Info(ctx, "server").Result()
	if _, refused := errors.AsType[redis.Error](err); refused {
		return "", nil // the embedded server has no such section
	}
	if err != nil {
		return "", fmt.Errorf("ask redis for its run: %w", err)
	}
	for line := range strings.Lines(text) {
		if run, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return run, nil
		}
	}
	return "", nil
}
