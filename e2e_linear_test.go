package foyer_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// These tests record what concurrent clients were told, with the instants between
// which it became true, while workers are killed and Redis is killed and comes back.
// A checker then looks for one order of all operations in which each answer is right.
// Where there is none, a promise was broken, however plausible every single answer was.

// history is operations as their callers saw them.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// add notes an operation that began at call and has ended. One whose outcome is not
// known may take effect at any time from its call on.
func (h *history) add(client int, call int64, input, output any) {
	back := h.now()
	if o, ok := output.(seatAnswer); ok && o.unknown {
		back = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Call: call, Input: input, Return: back, Output: output})
}

// seatStep is what a person did to a seat, or "read" for looking at it.
type seatStep struct {
	kind string
	seat domain.SeatID
	who  string
}

// seatAnswer is whether it was done, or what was seen. Whether an unknown one was
// done, nobody was told.
type seatAnswer struct {
	done, unknown bool
	seen          domain.SeatState
}

// seatState is whose a seat is, and how the map shows it.
type seatState struct {
	state   domain.SeatState
	owner   string
	decided bool // sold by SQL, which the map shows a moment later, and then for good
}

// seatModel is what a seat promises: free, held by one, or sold to one.
var seatModel = porcupine.NondeterministicModel{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := map[domain.SeatID][]porcupine.Operation{}
		for _, op := range all {
			seat := op.Input.(seatStep).seat
			by[seat] = append(by[seat], op)
		}
		var parts [][]porcupine.Operation
		for _, ops := range by {
			parts = append(parts, ops)
		}
		return parts
	},
	Init: func() []any { return []any{seatState{state: domain.SeatFree}} },
	Step: func(state, input, output any) []any {
		s, step, told := state.(seatState), input.(seatStep), output.(seatAnswer)
		if step.kind == "read" {
			switch {
			case told.seen == s.state:
				return []any{s}
			case told.seen == domain.SeatSold && s.decided:
				return []any{seatState{state: domain.SeatSold, owner: s.owner}}
			}
			return nil
		}
		mine := s == seatState{state: domain.SeatHeld, owner: step.who}
		after, possible := seatState{state: domain.SeatHeld, owner: step.who}, s.state == domain.SeatFree
		switch step.kind {
		case "release":
			after, possible = seatState{state: domain.SeatFree}, mine
		case "book":
			after, possible = seatState{domain.SeatHeld, step.who, true}, mine
		}
		switch {
		case told.unknown && possible:
			return []any{s, after}
		case told.unknown, !told.done && !possible:
			return []any{s}
		case told.done && possible:
			return []any{after}
		}
		return nil
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// troubled kills workers one after the other, and Redis twice, until done is closed.
func (d *deployment) troubled(t *testing.T, done chan struct{}) {
	for n := 0; !isClosed(done); n++ {
		d.workers[n%len(d.workers)].kill()
		if n == 1 || n == 3 {
			d.redis.Kill()
			d.redis.Restart()
		}
		d.workers[n%len(d.workers)] = d.startWorker(t)
	}
}

// linear puts people at work on a show and faults beside them, until all are through.
func linear(t *testing.T, people int, change func(*client.NewShow), work func(d *deployment, show domain.ShowID, i int)) {
	t.Helper()
	d := deployOn(t, servers{redis: testenv.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")}, 2, 2)
	show := d.putOnSale(t, change)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(people, func(i int) { work(d, show, i) })
	}()
	d.troubled(t, done)
	d.requireVerified(t, show)
}

// insist repeats what is safe to repeat until it is answered.
func insist(ctx context.Context, step func(context.Context) error) error {
	return client.Retry(ctx, 100, step)
}

// A1, A6: holds and bookings of few seats by many people: every answer fits one order,
// in which a seat is nobody's, held by one person, or sold to one.
func TestE2ELinearHoldsAndBookings(t *testing.T) {
	const people, lives, seats = 6, 4, 12
	h := newHistory()
	linear(t, people, func(s *client.NewShow) { s.Seating = seating(1, seats) }, func(d *deployment, show domain.ShowID, i int) {
		for life := range lives {
			p := &seatPerson{h: h, show: show, i: i, who: fmt.Sprintf("person-%d-%d", i, life)}
			p.client = d.as(t, i+life, p.who)
			if insist(t.Context(), func(ctx context.Context) error { return enter(ctx, p.client, show) }) != nil {
				continue
			}
			for range 6 {
				if !p.turn(t.Context(), domain.NewSeatID("A", 1, 1+rand.IntN(seats))) {
					break
				}
			}
		}
	})
	require.NotEmpty(t, h.ops)
	result, info := porcupine.CheckOperationsVerbose(seatModel.ToModel(), h.ops, workedWithin)
	if result != porcupine.Ok {
		explain(t, seatModel.ToModel(), info)
	}
	require.Equal(t, porcupine.Ok, result, "no order of %d operations explains what people were told", len(h.ops))
}

// The models must be able to say no, or their yes is worth nothing.
func TestModelsRefuseWhatMustNotBe(t *testing.T) {
	t.Parallel()
	did, first, second := seatAnswer{done: true}, seatStep{"hold", "A-1-1", "ann"}, seatStep{"hold", "A-1-1", "bob"}
	op := func(input, output any, at int64) porcupine.Operation {
		return porcupine.Operation{Input: input, Output: output, Call: at, Return: at + 1}
	}
	check := func(ops ...porcupine.Operation) bool { return porcupine.CheckOperations(seatModel.ToModel(), ops) }
	require.True(t, check(op(first, did, 1), op(second, seatAnswer{}, 3)))
	require.False(t, check(op(first, did, 1), op(second, did, 3)), "a seat was given to two")
	require.True(t, check(op(first, seatAnswer{unknown: true}, 1), op(second, did, 3)))
	require.True(t, check(op(first, seatAnswer{unknown: true}, 1), op(second, seatAnswer{}, 3)))
	book := seatStep{"book", "A-1-1", "ann"}
	require.False(t, check(op(book, did, 1)), "what was not held is sold")
	require.False(t, check(op(first, did, 1), op(book, did, 3), op(seatStep{kind: "read", seat: "A-1-1"}, seatAnswer{seen: domain.SeatFree}, 5)),
		"what is sold is free")
	read := func(seen domain.SeatState, at int64) porcupine.Operation {
		return op(seatStep{kind: "read", seat: "A-1-1"}, seatAnswer{seen: seen}, at)
	}
	require.True(t, check(op(first, did, 1), op(book, did, 3), read(domain.SeatHeld, 5), read(domain.SeatSold, 7)))
	require.False(t, check(op(first, did, 1), op(book, did, 3), read(domain.SeatSold, 5), read(domain.SeatHeld, 7)), "the map goes back")
	room := func(ops ...porcupine.Operation) bool { return porcupine.CheckOperations(roomModel(1), ops) }
	require.True(t, room(op(comeIn, nil, 1), op(count, int64(1), 3), op(goOut, nil, 5), op(comeIn, nil, 7)))
	require.False(t, room(op(comeIn, nil, 1), op(comeIn, nil, 3)), "two are in a room for one")
	require.False(t, room(op(comeIn, nil, 1), op(count, int64(0), 3)), "somebody is not counted")
}

// explain leaves a picture of a history that no order explains.
func explain(t *testing.T, model porcupine.Model, info porcupine.LinearizationInfo) {
	t.Helper()
	file := t.ArtifactDir() + "/history.html"
	require.NoError(t, porcupine.VisualizePath(model, info, file))
	t.Logf("see %s", file)
}

// seatPerson is one person with one hold at a time.
type seatPerson struct {
	h      *history
	show   domain.ShowID
	i      int
	who    string
	client *client.Client
}

// turn looks at all seats, holds one, and gives it back or books it. It reports false
// when the person's part is over: booked, or not knowing what one has.
func (p *seatPerson) turn(ctx context.Context, seat domain.SeatID) bool {
	call := p.h.now()
	if all, err := p.client.Seats(ctx, p.show, 0); err == nil {
		for _, s := range all.Seats {
			p.h.add(p.i, call, seatStep{kind: "read", seat: s.ID}, seatAnswer{seen: s.State})
		}
	}
	call = p.h.now()
	hold, err := p.client.HoldSeats(ctx, p.show, []domain.SeatID{seat})
	taken := client.HasCode(err, client.CodeSeatUnavailable)
	p.h.add(p.i, call, seatStep{"hold", seat, p.who}, seatAnswer{done: err == nil, unknown: err != nil && !taken})
	if err != nil {
		return taken
	}
	call = p.h.now()
	if rand.IntN(3) > 0 {
		err := p.client.ReleaseHold(ctx, p.show, hold.HoldID)
		p.h.add(p.i, call, seatStep{"release", seat, p.who}, seatAnswer{done: err == nil, unknown: err != nil})
		return err == nil
	}
	var booking domain.Booking
	err = insist(ctx, func(ctx context.Context) (err error) {
		booking, err = p.client.Book(ctx, p.show, hold.HoldID, p.who)
		return err
	})
	if err == nil {
		err = insist(ctx, func(ctx context.Context) (err error) {
			booking, err = p.client.WaitBooking(ctx, booking.BookingID)
			return err
		})
	}
	p.h.add(p.i, call, seatStep{"book", seat, p.who}, seatAnswer{done: booking.Status == domain.BookingConfirmed, unknown: err != nil})
	return false
}

// roomStep is coming in, going out, or counting who is inside.
type roomStep string

const (
	comeIn roomStep = "come in"
	goOut  roomStep = "go out"
	count  roomStep = "count"
)

// roomModel is a room for so many people.
func roomModel(slots int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			inside := state.(int64)
			switch input.(roomStep) {
			case comeIn:
				return inside < slots, inside + 1
			case goOut:
				return inside > 0, inside - 1
			}
			return output.(int64) == inside, inside
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v %v", input, output) },
	}
}

// T16: people come and go through a room for few; every answer and every count fits
// one order, in which never more are inside than may be.
func TestE2ELinearActiveNeverExceedsItsLimit(t *testing.T) {
	const people, visits, slots = 8, 12, 3
	h := newHistory()
	linear(t, people, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive, queue.GraceSeconds = slots, 600
		s.Queue = &queue
	}, func(d *deployment, show domain.ShowID, i int) {
		who := d.as(t, i, fmt.Sprintf("guest-%d", i))
		operator := d.as(t, i+1, "operator", "operator")
		for range visits {
			call := h.now()
			if err := insist(t.Context(), func(ctx context.Context) error { return comeInside(ctx, who, show) }); err != nil {
				t.Errorf("guest %d does not come in: %v", i, err)
				return
			}
			h.add(i, call, comeIn, nil)
			call = h.now()
			if seen, err := operator.OperatorShow(t.Context(), show); err == nil {
				h.add(i, call, count, seen.Active)
			}
			call = h.now()
			if err := insist(t.Context(), func(ctx context.Context) error { return who.Leave(ctx, show) }); err != nil {
				t.Errorf("guest %d does not get out: %v", i, err)
				return
			}
			h.add(i, call, goOut, nil)
		}
	})
	model := roomModel(slots)
	result, info := porcupine.CheckOperationsVerbose(model, h.ops, workedWithin)
	if result != porcupine.Ok {
		explain(t, model, info)
	}
	require.Equal(t, porcupine.Ok, result, "no order of %d operations explains what people were told", len(h.ops))
}

// comeInside joins and waits, asking often: what is measured is when one is inside,
// not when one is told.
func comeInside(ctx context.Context, who *client.Client, show domain.ShowID) error {
	if _, _, err := who.Join(ctx, show); err != nil {
		return err
	}
	for {
		place, err := who.Place(ctx, show)
		if err != nil || place.In() {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
