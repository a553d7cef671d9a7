package lua

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"foyer/domain"
)

// maxBatch bounds what one script does for many people, so that Redis is never held
// up for longer than about 2 ms.
const (
	maxBatch      = 200
	maxPlaceBatch = 500
)

// JoinRequest asks for a place. DrawScore is the place that the show's draw gives the
// request id; it counts only until the sale opens.
type JoinRequest struct {
	ShowID    domain.ShowID
	RequestID domain.RequestID
	DrawScore int64
	// DrawMark is the domain.DrawMark of the seed that the score follows from; 0: whichever.
	DrawMark int64

	// Lane is the number of the line to join; 0 is the ordinary one. A code with a number
	// of uses gives it to so many people only, whoever comes back counted once.
	Lane     int
	CodeID   string
	CodeUses int // 0: any number
}

// drawn is what the join step reads: the score, in the lane's stretch, and the code.
func (r JoinRequest) drawn() any {
	score := int64(r.Lane)*domain.LaneSpan + r.DrawScore
	if r.CodeUses > 0 {
		return fmt.Sprintf("%d:%s:%d", score, r.CodeID, r.CodeUses)
	}
	return score
}

type joined struct {
	place   domain.Place
	created bool
}

// Join gives a person a place, or answers the one they have, whatever the phase. Whose
// place is over gets a new one at the end of the line, or of the lane asked for. With
// room inside and nobody waiting they have a turn at once. It fails with
// *domain.NotOpenError, domain.ErrSoldOut or domain.ErrClosed where there are no new
// places, with domain.ErrCodeUsedUp where only a code would give one, and with
// domain.ErrDrawChanged where places are drawn by another seed than the score's.
//
// Calls that come at the same time travel together.
func (s *Steps) Join(ctx context.Context, req JoinRequest) (place domain.Place, created bool, err error) {
	j, err := s.joins.do(ctx, req.ShowID, req)
	return j.place, j.created, err
}

// joinAll joins people at one show, in the order given.
func (s *Steps) joinAll(ctx context.Context, show domain.ShowID, requests []JoinRequest) ([]outcome[joined], error) {
	outcomes := make([]outcome[joined], 0, len(requests))
	for len(requests) > 0 { // in one step, but while some have read a change of the show and others not
		same := slices.IndexFunc(requests, func(r JoinRequest) bool { return r.DrawMark != requests[0].DrawMark })
		if same < 0 {
			same = len(requests)
		}
		part, err := s.joinByOneSeed(ctx, show, requests[:same])
		if err != nil {
			return nil, err
		}
		outcomes, requests = append(outcomes, part...), requests[same:]
	}
	return outcomes, nil
}

// joinByOneSeed joins people whose scores follow from one seed. Where it is another than
// the show's, that is everybody's outcome.
func (s *Steps) joinByOneSeed(ctx context.Context, show domain.ShowID, requests []JoinRequest) ([]outcome[joined], error) {
	args := []any{domain.DrawCeiling, requests[0].DrawMark}
	for _, req := range requests {
		args = append(args, string(req.RequestID), req.drawn())
	}
	outcomes := make([]outcome[joined], len(requests))
	r, err := s.step(ctx, "admission_join", show, args...)
	if errors.Is(err, domain.ErrDrawChanged) {
		for i := range outcomes {
			outcomes[i].err = err
		}
		return outcomes, nil
	}
	if err != nil {
		return nil, err
	}
	stats, at := r.list(0).stats(show)
	for i, req := range requests {
		entry := r.list(1 + i)
		if code := entry.str(0); code != "OK" {
			outcomes[i].err = failure(code, entry.rest(1))
			continue
		}
		outcomes[i].value.created = entry.int(1) == 1
		outcomes[i].value.place, _ = entry.list(2).place(req.RequestID, stats, at)
	}
	return outcomes, nil
}

// Place tells where a person stands, and changes nothing. It fails with
// domain.ErrNotJoined when they never had a place in this epoch.
func (s *Steps) Place(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.Place, error) {
	r, err := s.step(ctx, "admission_place", show, string(request))
	if err != nil {
		return domain.Place{}, err
	}
	stats, at := r.list(0).stats(show)
	place, ok := r.list(1).place(request, stats, at)
	if !ok {
		return domain.Place{}, domain.ErrNotJoined
	}
	return place, nil
}

// PlaceKey names a person's place.
type PlaceKey struct {
	ShowID    domain.ShowID
	RequestID domain.RequestID
}

// Places tells where many people stand, in the order asked for; found is false where
// there is no place. It is one round trip, or few for very many.
func (s *Steps) Places(ctx context.Context, keys []PlaceKey) (places []domain.Place, found []bool, err error) {
	byShow := map[domain.ShowID][]int{}
	for i, key := range keys {
		byShow[key.ShowID] = append(byShow[key.ShowID], i)
	}
	var calls []call
	var positions [][]int
	for show, all := range byShow {
		for at := range slices.Chunk(all, maxPlaceBatch) {
			c := call{script: "admission_place", tag: string(show)}
			for _, i := range at {
				c.args = append(c.args, string(keys[i].RequestID))
			}
			calls, positions = append(calls, c), append(positions, at)
		}
	}
	replies, errs := s.all(ctx, calls)
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	places, found = make([]domain.Place, len(keys)), make([]bool, len(keys))
	for c, r := range replies {
		stats, at := r.list(0).stats(domain.ShowID(calls[c].tag))
		for n, i := range positions[c] {
			places[i], found[i] = r.list(1+n).place(keys[i].RequestID, stats, at)
		}
	}
	return places, found, nil
}

// Touch renews the last contact of people; it matters only for those who wait, and
// the others are left out. A show that is not in Redis is nothing to touch.
func (s *Steps) Touch(ctx context.Context, show domain.ShowID, requests []domain.RequestID) error {
	var calls []call
	for part := range slices.Chunk(requests, maxPlaceBatch) {
		calls = append(calls, call{script: "admission_touch", tag: string(show), args: anys(part)})
	}
	if len(calls) == 0 {
		return nil
	}
	_, errs := s.all(ctx, calls)
	return errors.Join(errs...)
}

// Claim takes a person's turn and starts their session; claiming again answers the
// same. It fails with domain.ErrNotAdmitted when they wait or their time is over, and
// with domain.ErrNotJoined when they never had a place.
func (s *Steps) Claim(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.Place, error) {
	r, err := s.step(ctx, "admission_claim", show, string(request))
	if err != nil {
		return domain.Place{}, err
	}
	stats, at := r.list(0).stats(show)
	place, _ := r.list(1).place(request, stats, at)
	return place, nil
}

// Departure is what followed from somebody's leaving.
type Departure struct {
	Left        bool            // false: there was no place to leave
	FreedSlot   bool            // somebody else may come in now
	FreedSeats  []domain.SeatID // seats of their holds
	SeatVersion int64
	Epoch       int64
	Version     int64
}

// Leave ends a person's place, waiting or inside, and frees their holds but for seats
// that are being booked. Leaving without a place is no error.
func (s *Steps) Leave(ctx context.Context, show domain.ShowID, request domain.RequestID) (Departure, error) {
	return s.depart(ctx, show, request, "left")
}

func (s *Steps) depart(ctx context.Context, show domain.ShowID, request domain.RequestID, why string) (Departure, error) {
	r, err := s.step(ctx, "admission_leave", show, string(request), why)
	if err != nil {
		return Departure{}, err
	}
	return Departure{
		Left:        r.int(0) == 1,
		FreedSlot:   r.int(1) == 1,
		SeatVersion: r.int(2),
		Epoch:       r.int(3),
		Version:     r.int(4),
		FreedSeats:  ids[domain.SeatID](r.list(5)),
	}, nil
}

// anys makes arguments of ids.
func anys[ID ~string](list []ID) []any {
	args := make([]any, len(list))
	for i, id := range list {
		args[i] = string(id)
	}
	return args
}
