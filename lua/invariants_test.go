package lua

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
	"foyer/internal/testenv"
)

// The eight promises of the waiting room that can be judged at one Redis, in any order of
// what people, operators and time do: I1 to I8 in docs/guarantees.md. I9 is of sockets.
func TestInvariantsOfTheWaitingRoom(t *testing.T) {
	t.Parallel()
	rdb := testenv.Redis(t)
	rapid.Check(t, func(r *rapid.T) {
		room := &room{scores: map[domain.RequestID]int64{}}
		room.rate = rapid.IntRange(1, 6).Draw(r, "rate")
		room.w = load(t, rdb, func(s *domain.Show) {
			prequeue := time.Now().Add(-time.Hour)
			s.PrequeueAt, s.OpensAt, s.DrawSeed = &prequeue, time.Now().Add(20*time.Second), domain.NewDrawSeed()
			s.Queue = domain.QueueSettings{MaxActive: 3, RatePerMinute: room.rate, TurnSeconds: 5, SessionSeconds: 40, GraceSeconds: 15, LateJoinSeconds: 5}
			for i := range rapid.IntRange(0, 2).Draw(r, "lanes") {
				s.Queue.Lanes = append(s.Queue.Lanes, domain.Lane{Name: "lane" + strconv.Itoa(i), Weight: rapid.IntRange(1, 5).Draw(r, "weight")})
			}
			s.Seating = domain.Seating{HoldSeconds: 20, SeatLimit: 2, Sections: []domain.Section{{Name: "A", Rows: 1, SeatsPerRow: 6}}}
		})
		r.Repeat(map[string]func(*rapid.T){
			"join": room.join, "join more": room.join, "claim": room.claim, "extend": room.extend, "leave": room.leave, "remove": room.remove,
			"admit": room.admit, "by hand": room.admitByHand, "touch": room.touch, "time": room.time, "more time": room.time,
			"limits": room.limits, "pause": room.pause, "reset": room.reset, "hold": room.hold, "": room.check,
		})
	})
}

// room is a show, and what somebody knows who has only watched.
type room struct {
	w        *world
	scores   map[domain.RequestID]int64 // of those in the line, in the stretch of their lane
	admitted []time.Time
	rate     int
	inside   int64 // at the last look
	holds    int
}

func (m *room) id() domain.ShowID { return m.w.show.ID }

func (m *room) person(r *rapid.T) domain.RequestID {
	return domain.RequestID("p" + strconv.Itoa(rapid.IntRange(1, 9).Draw(r, "person")))
}

// timelessPlace is a place without the instant at which it was told.
func timelessPlace(p domain.Place) domain.Place {
	p.ServerTime = time.Time{}
	return p
}

// join also repeats what it did: I7, the same answer and nothing new.
func (m *room) join(r *rapid.T) {
	request := m.person(r)
	ask := JoinRequest{
		ShowID: m.id(), RequestID: request, DrawScore: domain.DrawScore(m.w.show.DrawSeed, request),
		Lane: rapid.IntRange(0, len(m.w.show.Queue.Lanes)).Draw(r, "lane"),
	}
	place, created, err := m.w.Join(m.w.ctx(), ask)
	if err != nil {
		r.Fatalf("join: %v", err)
	}
	again, twice, err := m.w.Join(m.w.ctx(), ask)
	if err != nil || twice || !reflect.DeepEqual(timelessPlace(place), timelessPlace(again)) {
		r.Fatalf("I7: joining again answered %+v (new: %t), after %+v", again, twice, place)
	}
	switch {
	case created && place.Status == domain.StatusAdmitted:
		m.letIn(r, []domain.RequestID{request}, place.ClaimBy.Add(-m.w.show.Queue.Turn()))
	case created:
		m.scores[request] = int64(place.Lane)*domain.LaneSpan + place.Score
		if place.Lane != ask.Lane {
			r.Fatalf("%s joined lane %d and stands in %d", request, ask.Lane, place.Lane)
		}
	}
}

// letIn judges an admission: I1, nobody is passed in their lane; I4, no 60 seconds above
// the rate.
func (m *room) letIn(r *rapid.T, requests []domain.RequestID, at time.Time) {
	last := map[int64]int64{} // by lane
	for _, request := range requests {
		if score := m.scores[request]; score > 0 {
			lane := score / domain.LaneSpan
			if score < last[lane] {
				r.Fatalf("I1: %s came in after somebody behind", request)
			}
			last[lane] = score
		}
		delete(m.scores, request)
		m.admitted = append(m.admitted, at)
	}
	for _, score := range m.scores {
		if score < last[score/domain.LaneSpan] || len(last) == 0 {
			r.Fatalf("I1: somebody at %d was passed by %v at %v", score, requests, last)
		}
	}
	within := 0
	for _, when := range m.admitted {
		if at.Sub(when) < time.Minute {
			within++
		}
	}
	if len(requests) > 0 && within > m.rate {
		r.Fatalf("I4: %d came in within a minute, %d may", within, m.rate)
	}
}

func (m *room) admit(r *rapid.T)       { m.step(r, AdmitOptions{}) }
func (m *room) admitByHand(r *rapid.T) { m.step(r, AdmitOptions{Batch: 2, ByOperator: true}) }

func (m *room) step(r *rapid.T, options AdmitOptions) {
	result, err := m.w.Admit(m.w.ctx(), m.id(), options)
	require.NoError(r, err)
	for _, request := range result.Expired {
		delete(m.scores, request)
	}
	if len(result.Admitted) == 0 {
		return
	}
	var requests []domain.RequestID
	for _, a := range result.Admitted {
		requests = append(requests, a.RequestID)
	}
	m.letIn(r, requests, result.Admitted[0].ClaimBy.Add(-m.w.show.Queue.Turn()))
}

func (m *room) claim(r *rapid.T) {
	request := m.person(r)
	place, err := m.w.Claim(m.w.ctx(), m.id(), request)
	if err != nil {
		return
	}
	again, err := m.w.Claim(m.w.ctx(), m.id(), request)
	if err != nil || !again.ExpiresAt.Equal(*place.ExpiresAt) || again.Version != place.Version {
		r.Fatalf("I7: claiming again answered %+v after %+v: %v", again, place, err)
	}
}

func (m *room) extend(r *rapid.T) {
	request := m.person(r)
	place, extended, err := m.w.Extend(m.w.ctx(), m.id(), request)
	if err != nil || !extended {
		return
	}
	again, twice, err := m.w.Extend(m.w.ctx(), m.id(), request)
	if err != nil || twice || !again.ClaimBy.Equal(*place.ClaimBy) {
		r.Fatalf("I7: a turn was extended twice: %+v after %+v: %v", again, place, err)
	}
}

func (m *room) leave(r *rapid.T) {
	request := m.person(r)
	_, err := m.w.Leave(m.w.ctx(), m.id(), request)
	require.NoError(r, err)
	again, err := m.w.Leave(m.w.ctx(), m.id(), request)
	if err != nil || again.Left {
		r.Fatalf("I7: %s left twice: %v", request, err)
	}
	delete(m.scores, request)
}

func (m *room) remove(r *rapid.T) {
	request := m.person(r)
	_, err := m.w.Remove(m.w.ctx(), m.id(), request)
	require.NoError(r, err)
	delete(m.scores, request)
}

func (m *room) touch(r *rapid.T) {
	require.NoError(r, m.w.Touch(m.w.ctx(), m.id(), []domain.RequestID{m.person(r), m.person(r), m.person(r)}))
}

func (m *room) time(r *rapid.T) {
	m.w.travel(time.Duration(rapid.IntRange(1, 9).Draw(r, "seconds")) * time.Second)
}

func (m *room) limits(r *rapid.T) {
	m.rate = rapid.IntRange(1, 6).Draw(r, "rate")
	most := rapid.IntRange(1, 4).Draw(r, "most")
	m.w.change(func(s *domain.Show) { s.Queue.RatePerMinute, s.Queue.MaxActive = m.rate, most })
}

func (m *room) pause(r *rapid.T) {
	m.w.change(func(s *domain.Show) { s.Paused = rapid.Bool().Draw(r, "paused") })
}

func (m *room) reset(r *rapid.T) {
	if rapid.IntRange(0, 9).Draw(r, "reset") > 0 {
		return
	}
	epoch := m.w.stats().Epoch + 1
	_, done, err := m.w.Reset(m.w.ctx(), m.id(), epoch)
	require.NoError(r, err)
	_, twice, err := m.w.Reset(m.w.ctx(), m.id(), epoch)
	if err != nil || !done || twice {
		r.Fatalf("I7: reset %t, again %t: %v", done, twice, err)
	}
	clear(m.scores)
}

// hold judges I5: nobody holds a seat who has not been let in and claimed.
func (m *room) hold(r *rapid.T) {
	m.holds++
	request := m.person(r)
	before, _ := m.w.Place(m.w.ctx(), m.id(), request)
	seat := domain.NewSeatID("A", 1, rapid.IntRange(1, 6).Draw(r, "seat"))
	_, err := m.w.Hold(m.w.ctx(), HoldRequest{
		ShowID: m.id(), RequestID: request, HoldID: domain.HoldID(fmt.Sprint("h", m.holds)), Candidates: [][]domain.SeatID{{seat}},
	})
	if err == nil && before.Status != domain.StatusActive {
		r.Fatalf("I5: %s holds %s as %q", request, seat, before.Status)
	}
}

func (m *room) check(r *rapid.T) {
	m.readEverything(r)
	stats := m.w.stats()
	if stats.Active > stats.MaxActive && stats.Active > m.inside {
		r.Fatalf("I3: %d are inside, %d may be, %d were before", stats.Active, stats.MaxActive, m.inside)
	}
	m.inside = stats.Active
	if stats.Waiting+stats.Active+stats.Ended != stats.Joined {
		r.Fatalf("I8: %d wait + %d are inside + %d have ended is not %d", stats.Waiting, stats.Active, stats.Ended, stats.Joined)
	}
	line, err := m.w.rdb.ZRangeWithScores(m.w.ctx(), patternOf("waiting").with(string(m.id())), 0, -1).Result()
	require.NoError(r, err)
	seen := map[int64]bool{}
	for _, z := range line {
		score := int64(z.Score)
		if seen[score] {
			r.Fatalf("I2: two people have the place %d", score)
		}
		seen[score] = true
		if m.scores[domain.RequestID(z.Member.(string))] != score {
			r.Fatalf("I1: the place of %s went from %d to %d", z.Member, m.scores[domain.RequestID(z.Member.(string))], score)
		}
	}
	if len(line) != len(m.scores) {
		r.Fatalf("I2: %d people wait, %d should: %v", len(line), len(m.scores), slices.Collect(maps.Keys(m.scores)))
	}
}

// readEverything judges I6: whoever looks changes nothing, to the last byte.
func (m *room) readEverything(r *rapid.T) {
	before := m.dump(r)
	ctx, id := m.w.ctx(), m.id()
	for i := range 4 {
		request := domain.RequestID("p" + strconv.Itoa(i))
		_, placeErr := m.w.Place(ctx, id, request)
		_, explainErr := m.w.Explain(ctx, id, request)
		if errors.Is(placeErr, domain.ErrNotJoined) != errors.Is(explainErr, domain.ErrNotJoined) {
			r.Fatalf("%s has a place: %v; and can be explained: %v", request, placeErr, explainErr)
		}
		_, _ = m.w.Holds(ctx, id, request)
	}
	_, _, _ = m.w.Knots(ctx, id)
	_, _ = m.w.Drawn(ctx, id)
	_, _, _ = m.w.NextLapse(ctx, id)
	_, _ = m.w.Seats(ctx, id, 0, "p1")
	_, _ = m.w.Audit(ctx, id)
	for id, after := range m.dump(r) {
		if after != before[id] {
			r.Fatalf("I6: reading changed %s from %q to %q", id, before[id], after)
		}
	}
}

// dump is all that is kept of the show, by key.
func (m *room) dump(r *rapid.T) map[string]string {
	ctx, pipe, all := m.w.ctx(), m.w.rdb.Pipeline(), map[string]fmt.Stringer{}
	for _, k := range allKeys {
		name := keyPattern(k.pattern).with(string(m.id()))
		switch k.kind {
		case "hash":
			all[k.id] = pipe.HGetAll(ctx, name)
		case "zset":
			all[k.id] = pipe.ZRangeWithScores(ctx, name, 0, -1)
		case "set":
			all[k.id] = pipe.SMembersMap(ctx, name)
		case "list":
			all[k.id] = pipe.LRange(ctx, name, 0, -1)
		default:
			all[k.id] = pipe.Exists(ctx, name)
		}
	}
	_, err := pipe.Exec(ctx)
	require.NoError(r, err)
	texts := map[string]string{}
	for id, command := range all {
		texts[id] = command.String()
	}
	return texts
}
