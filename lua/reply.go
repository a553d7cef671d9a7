package lua

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

// reply is what a script answered: a code, then values. Scripts and readers are
// built into one binary, so the shape is known; what is not there reads as zero.
type reply []any

// parseReply turns a script's answer into values or into the error its code stands for.
// What Redis or the connection refused is described; a condition is passed on as it is.
func parseReply(name string, cmd *redis.Cmd) (reply, error) {
	values, err := cmd.Slice()
	if err != nil {
		return nil, fmt.Errorf("run step %s in redis: %w", name, err)
	}
	r := reply(values)
	if code := r.str(0); code != "OK" {
		return r, failure(code, r[min(1, len(r)):])
	}
	return r[1:], nil
}

// errStale says that settings as new or newer are in use. It never leaves the package.
var errStale = errors.New("newer settings are in use")

// errLoaded says that a show is in Redis already. It never leaves the package.
var errLoaded = errors.New("show is in redis")

// errNoTicket says that a ticket is unknown, used or too late. It never leaves the package.
var errNoTicket = errors.New("no such ticket")

// failure is the one place where codes of scripts become errors.
func failure(code string, detail reply) error {
	switch code {
	case "NOT_LOADED":
		return domain.ErrNotLoaded
	case "OTHER_DRAW":
		return domain.ErrDrawChanged
	case "STALE":
		return errStale
	case "LOADED":
		return errLoaded
	case "NO_TICKET":
		return errNoTicket
	case "NOT_OPEN":
		return &domain.NotOpenError{OpensAt: instant(detail.int(0))}
	case "SOLD_OUT":
		return domain.ErrSoldOut
	case "USED_UP":
		return domain.ErrCodeUsedUp
	case "CLOSED":
		return domain.ErrClosed
	case "NOT_JOINED":
		return domain.ErrNotJoined
	case "NOT_ADMITTED":
		return domain.ErrNotAdmitted
	case "LIMIT":
		return &domain.LimitError{Limit: int(detail.int(0)), Used: int(detail.int(1))}
	case "CONFLICT":
		return &domain.SeatsUnavailableError{Conflicts: ids[domain.SeatID](detail)}
	case "NO_BLOCK":
		return domain.ErrNoBlock
	case "HOLD_NOT_FOUND":
		return domain.ErrHoldNotFound
	case "HOLD_EXPIRED":
		return domain.ErrHoldExpired
	case "IN_PROGRESS":
		return domain.ErrInProgress
	}
	return fmt.Errorf("script answered an unknown code %q", code)
}

func (r reply) int(i int) int64 {
	if i >= len(r) {
		return 0
	}
	n, _ := r[i].(int64)
	return n
}

func (r reply) str(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

func (r reply) list(i int) reply {
	if i >= len(r) {
		return nil
	}
	l, _ := r[i].([]any)
	return l
}

// rest is what follows from a position on.
func (r reply) rest(i int) reply { return r[min(i, len(r)):] }

// ids reads all values as ids of one kind.
func ids[ID ~string](r reply) []ID {
	list := make([]ID, len(r))
	for i := range r {
		list[i] = ID(r.str(i))
	}
	return list
}

// instant turns milliseconds of the server's clock into a time in UTC.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// stats reads a show's numbers in the order of numbers() in prelude_admission.lua,
// and the server's time.
func (r reply) stats(show domain.ShowID) (domain.Stats, time.Time) {
	return domain.Stats{
		Lanes:              r.list(17).lanes(),
		ShowID:             show,
		Waiting:            r.int(0),
		Active:             r.int(1),
		MaxActive:          r.int(2),
		RatePerMinute:      r.int(3),
		AdmittedLastMinute: r.int(4),
		Joined:             r.int(5),
		Ended:              r.int(6),
		Sold:               r.int(7),
		Held:               r.int(8),
		Capacity:           r.int(9),
		Phase:              domain.Phase(r.str(10)),
		Epoch:              r.int(11),
		Version:            r.int(12),
		SeatVersion:        r.int(13),
		NoShowPercent:      float64(r.int(15)) / 10_000,
		SeatsPerBuyer:      float64(r.int(16)) / 1000,
	}, instant(r.int(14))
}

// lanes reads the lines of a show with lanes, in the order of lines() in
// prelude_admission.lua.
func (r reply) lanes() (lines domain.LaneLines) {
	for i := range min(len(r)/2, len(lines)) {
		lines[i] = domain.LaneLine{Weight: r.int(2 * i), Waiting: r.int(2*i + 1)}
	}
	return lines
}

// place reads where a person stands, in the order of place_of() in
// prelude_admission.lua; ok is false when they have no place at all.
func (r reply) place(request domain.RequestID, stats domain.Stats, at time.Time) (p domain.Place, ok bool) {
	p = domain.Place{
		RequestID:  request,
		ShowID:     stats.ShowID,
		Status:     domain.Status(r.str(0)),
		Rank:       r.int(1),
		Score:      r.int(2) % domain.LaneSpan,
		Lane:       int(r.int(2) / domain.LaneSpan),
		Waiting:    stats.Waiting,
		Active:     stats.Active,
		Epoch:      stats.Epoch,
		Version:    stats.Version,
		ServerTime: at,
	}
	if len(r) > 4 {
		p.Waiting = r.int(4)
	}
	deadline := instant(r.int(3))
	switch p.Status {
	case "NONE", "":
		return domain.Place{}, false
	case domain.StatusAdmitted:
		p.ClaimBy = &deadline
	case domain.StatusActive:
		p.ExpiresAt = &deadline
	case domain.StatusWaiting:
		turn := stats.Turns(p.Lane, p.Rank)
		p.ETA = domain.EstimateWait(turn, stats)
		p.Odds = domain.EstimateOdds(turn, stats)
	}
	return p, true
}

// changedSeats reads seat, state pairs. A seat that stands twice had its last state last.
func (r reply) changedSeats() []domain.Seat {
	if len(r) == 0 {
		return nil
	}
	at, seats := make(map[domain.SeatID]int, len(r)/2), make([]domain.Seat, 0, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		seat := domain.Seat{ID: domain.SeatID(r.str(i)), State: domain.SeatState(r.str(i + 1))}
		if j, ok := at[seat.ID]; ok {
			seats[j] = seat
			continue
		}
		at[seat.ID] = len(seats)
		seats = append(seats, seat)
	}
	return seats
}
