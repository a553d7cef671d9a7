package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/simulate"
	"foyer/internal/testenv"
)

// The simulator has the rules a second time, in Go, to play a million people in a moment.
// A forecast by other rules than those of the sale would be worse than none: here random
// sales go through both, and every step must end alike.
func TestTheSimulatorDecidesAsTheStepsDo(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(40) {
		twins := newTwins(t, testenv.Redis(t), seed)
		for range 250 {
			twins.act()
			twins.compare()
		}
		for what, n := range twins.seen {
			seen[what] += n
		}
	}
	t.Log(seen)
	for _, what := range []string{
		"let in at once", "let in by the draw", "let in from the line", "let in by a freed slot", "kept out by the rate", "kept out by the limit",
		"turn passed", "session over", "fell silent", "skipped", "joined again", "refused", "sold out", "after an outage", "let in beyond the rate", "waited in a lane",
	} {
		require.Positive(t, seen[what], "no sale came to this: %s", what)
	}
}

// twins are the same show in Redis and in the simulator, under one clock.
type twins struct {
	*world
	dice   *rand.Rand
	room   *simulate.Room
	now    int64
	people int
	seats  []domain.SeatID
	last   []simulate.Standing // of everybody, but that of the expired is what it was before
	seen   map[string]int
}

// atGivenTime makes steps whose clock stands still: the offset is the time.
func atGivenTime(rdb *redis.Client) *Steps {
	s := New(rdb)
	for _, script := range s.scripts {
		script.run = redis.NewScript(strings.Replace(script.source, "redis.call('TIME')", "{'0', '0'}", 1))
	}
	return s
}

func newTwins(t *testing.T, rdb *redis.Client, seed uint64) *twins {
	dice := rand.New(rand.NewPCG(seed, 1))
	w := unloaded(t, rdb)
	w.Steps = atGivenTime(rdb)
	now := int64(1_800_000_000_000) + dice.Int64N(10_000)
	joins, opens := time.UnixMilli(now+1000), time.UnixMilli(now+20_000)
	w.show.PrequeueAt, w.show.OpensAt, w.show.DrawSeed = &joins, opens, domain.NewDrawSeed()
	w.show.Queue = domain.QueueSettings{
		MaxActive: 1 + dice.IntN(5), RatePerMinute: 2 + dice.IntN(12), TurnSeconds: 5, SessionSeconds: 15 + dice.IntN(40), GraceSeconds: 5 + dice.IntN(20),
	}
	w.show.Queue.LateJoinSeconds, w.show.Queue.OverAdmitPercent = dice.IntN(3), dice.IntN(3)*40
	for i := range dice.IntN(4) {
		w.show.Queue.Lanes = append(w.show.Queue.Lanes, domain.Lane{Name: fmt.Sprintf("lane-%d", i), Weight: 1 + dice.IntN(5)})
		w.show.Queue.OrdinaryWeight = dice.IntN(4)
	}
	w.show.Seating.Sections = []domain.Section{{Name: "A", Rows: 1, SeatsPerRow: 6}}
	tw := &twins{world: w, dice: dice, now: now, people: 12, last: make([]simulate.Standing, 12), seats: w.show.Seating.AllSeats(), seen: map[string]int{}}
	w.offset.Store(now)
	require.NoError(t, w.Configure(t.Context(), w.show))
	queue := w.show.Queue
	tw.room = simulate.NewRoom(simulate.Rules{
		JoinAt: joins.UnixMilli(), OpensAt: w.show.DrawClosesAt().UnixMilli(),
		Turn: queue.Turn().Milliseconds(), Session: queue.Session().Milliseconds(), Grace: queue.Grace().Milliseconds(),
		MaxActive: queue.MaxActive, RatePerMinute: queue.RatePerMinute, OverAdmit: queue.OverAdmitPercent, Capacity: len(tw.seats), LaneWeights: queue.LaneWeights(),
	}, tw.people, now)
	return tw
}

// named numbers people so that equal scores are in the same order on both sides.
func named(id int32) domain.RequestID { return domain.RequestID(fmt.Sprintf("p%03d", id)) }

func numbered(t testing.TB, requests []domain.RequestID) []int32 {
	numbers := make([]int32, len(requests))
	for i, request := range requests {
		_, err := fmt.Sscanf(string(request), "p%d", &numbers[i])
		require.NoError(t, err)
	}
	return numbers
}

func (w *twins) act() {
	id := w.dice.Int32N(int32(w.people))
	switch n := w.dice.IntN(100); {
	case n < 30:
		w.pass(w.dice.Int64N(1500))
	case n < 32:
		w.pass(9000 + w.dice.Int64N(9000))
	case n < 52:
		w.join(id)
	case n < 60:
		require.NoError(w.t, w.Touch(w.ctx(), w.show.ID, []domain.RequestID{named(id)}))
		w.room.Touch(w.now, id)
	case n < 72:
		id = w.someone(simulate.Admitted, id)
		_, err := w.Claim(w.ctx(), w.show.ID, named(id))
		require.Equal(w.t, err == nil, w.room.Claim(w.now, id), "claim of %d: %v", id, err)
	case n < 75:
		require.Equal(w.t, w.leave(named(id)).Left, w.room.Leave(w.now, id), "leaving of %d", id)
	case n < 77:
		w.sell(w.someone(simulate.Active, id))
	case n < 79:
		w.change(func(s *domain.Show) {
			s.Queue.MaxActive, s.Queue.RatePerMinute = 1+w.dice.IntN(5), 2+w.dice.IntN(12)
		})
		w.room.SetLimits(w.show.Queue.MaxActive, w.show.Queue.RatePerMinute)
	case n < 90:
		w.admitBoth(time.Second)
	default:
		w.admitBoth(0)
	}
}

// someone is the next from a person on who stands so, else that person.
func (w *twins) someone(so simulate.Standing, from int32) int32 {
	for i := range int32(w.people) {
		if id := (from + i) % int32(w.people); w.room.Standing(w.now, id) == so {
			return id
		}
	}
	return from
}

func (w *twins) pass(ms int64) {
	if ms > 10_000 {
		w.seen["after an outage"]++
	}
	w.now += ms
	w.offset.Store(w.now)
}

func (w *twins) join(id int32) {
	before := w.room.Standing(w.now, id)
	drawn := domain.DrawScore(w.show.DrawSeed, named(id))
	lane := w.dice.IntN(1 + len(w.show.Queue.Lanes))
	_, created, err := w.Join(w.ctx(), JoinRequest{ShowID: w.show.ID, RequestID: named(id), DrawScore: drawn, Lane: lane})
	require.Equal(w.t, created, w.room.Join(w.now, id, drawn, lane), "join of %d: %v", id, err)
	if created && w.room.Standing(w.now, id) == simulate.Waiting && lane > 0 {
		w.seen["waited in a lane"]++
	}
	if err != nil {
		require.True(w.t, isA[*domain.NotOpenError](err) || errors.Is(err, domain.ErrSoldOut), "%v", err)
		w.seen["refused"]++
	}
	if created && w.room.Standing(w.now, id) == simulate.Admitted {
		w.seen["let in at once"]++
	}
	if created && before != simulate.NoPlace {
		w.seen["joined again"]++
	}
}

// sell sells a seat to somebody inside, as a confirmed booking does.
func (w *twins) sell(id int32) {
	if w.room.Standing(w.now, id) != simulate.Active || len(w.seats) == 0 {
		return
	}
	seat := w.seats[0]
	w.seats = w.seats[1:]
	_, err := w.CompleteBooking(w.ctx(), w.booking(named(id), "", domain.BookingID("b-"+seat), seat))
	require.NoError(w.t, err)
	w.room.Buy(w.now, id, 1)
	if len(w.seats) == 0 {
		w.seen["sold out"]++
	}
}

// admitBoth does what a worker does: the step, until there is nothing more to do.
func (w *twins) admitBoth(tick time.Duration) {
	var step simulate.Step
	w.room.Admit(w.now, tick.Milliseconds(), &step)
	result, err := w.Admit(w.ctx(), w.show.ID, AdmitOptions{Tick: tick})
	require.NoError(w.t, err)
	require.Equal(w.t, result.Skipped, step.Skipped)
	var admitted, ended []domain.RequestID
	for {
		for _, a := range result.Admitted {
			admitted = append(admitted, a.RequestID)
		}
		ended = append(ended, result.Expired...)
		if !result.More {
			break
		}
		result, err = w.Admit(w.ctx(), w.show.ID, AdmitOptions{})
		require.NoError(w.t, err)
	}
	require.Equal(w.t, numbered(w.t, admitted), append([]int32{}, step.Admitted...), "let in, in order")
	require.ElementsMatch(w.t, numbered(w.t, ended), step.Ended)
	w.note(tick, step, result.Stats)
}

// note keeps count of what the sales came to, so that none of it is left untested.
func (w *twins) note(tick time.Duration, step simulate.Step, stats domain.Stats) {
	if step.Skipped {
		w.seen["skipped"]++
	}
	for _, id := range step.Admitted {
		w.seen["let in from the line"]++
		if tick == 0 {
			w.seen["let in by a freed slot"]++
		}
		if w.now < w.show.DrawClosesAt().UnixMilli()+5000 {
			w.seen["let in by the draw"]++
		}
		require.Equal(w.t, simulate.Waiting, w.last[id])
	}
	for _, id := range step.Ended {
		w.seen[map[simulate.Standing]string{
			simulate.Waiting: "fell silent", simulate.Admitted: "turn passed", simulate.Active: "session over",
		}[w.last[id]]]++
	}
	if stats.AdmittedLastMinute > stats.RatePerMinute && len(step.Admitted) > 0 {
		w.seen["let in beyond the rate"]++
	}
	if stats.Phase == domain.PhaseOpen && stats.Waiting > 0 {
		if stats.AdmittedLastMinute >= stats.RatePerMinute {
			w.seen["kept out by the rate"]++
		}
		if stats.Active >= stats.MaxActive {
			w.seen["kept out by the limit"]++
		}
	}
}

var standings = map[domain.Status]simulate.Standing{
	domain.StatusPrequeue: simulate.Waiting, domain.StatusWaiting: simulate.Waiting, domain.StatusSoldOut: simulate.Waiting,
	domain.StatusAdmitted: simulate.Admitted, domain.StatusActive: simulate.Active,
	domain.StatusExpired: simulate.Expired, domain.StatusLeft: simulate.Left,
}

// compare holds every place and number of one side against the other's.
func (w *twins) compare() {
	keys := make([]PlaceKey, w.people)
	for id := range keys {
		keys[id] = PlaceKey{w.show.ID, named(int32(id))}
	}
	places, found, err := w.Places(w.ctx(), keys)
	require.NoError(w.t, err)
	for id, place := range places {
		want := simulate.NoPlace
		if found[id] {
			want = standings[place.Status]
		}
		require.Equal(w.t, want, w.room.Standing(w.now, int32(id)), "person %d is %s", id, place.Status)
		if want != simulate.Expired {
			w.last[id] = want
		}
	}
	stats := w.stats()
	require.EqualValues(w.t, stats.Waiting, w.room.Waiting())
	require.EqualValues(w.t, stats.Active, w.room.Inside(w.now))
	require.EqualValues(w.t, stats.Sold, w.room.Sold())
	require.Equal(w.t, stats.Phase, w.room.Phase(w.now))
}
