package api

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
)

func showID(path string) domain.ShowID {
	return domain.ShowID(strings.TrimPrefix(path, "/api/shows/"))
}

// states are the states of seats by id, and which of them are mine.
func states(a answer) (all map[string]string, mine map[string]string) {
	var view seatsView
	a.into(&view)
	all, mine = map[string]string{}, map[string]string{}
	for _, seat := range view.Seats {
		all[string(seat.ID)] = string(seat.State)
		if seat.HoldID != "" {
			mine[string(seat.ID)] = string(seat.HoldID)
		}
	}
	return all, mine
}

func TestTheSeatMapIsWholeAndADeltaIsNot(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me, other := e.inside(show), e.person()
	before := e.call(other, "GET", show+"/seats", nil).is(http.StatusOK)
	all, _ := states(before)
	require.Len(t, all, 10)
	hold := e.hold(me, show, "A-1-1", "A-1-2")
	all, mine := states(e.call(me, "GET", show+"/seats", nil))
	require.Equal(t, "HELD", all["A-1-1"])
	require.Equal(t, "FREE", all["A-1-3"])
	require.Equal(t, map[string]string{"A-1-1": hold, "A-1-2": hold}, mine)
	delta := e.call(other, "GET", show+"/seats?since="+str(before.number("version")), nil).is(http.StatusOK)
	require.Equal(t, false, delta.json["full"])
	all, mine = states(delta)
	require.Equal(t, map[string]string{"A-1-1": "HELD", "A-1-2": "HELD"}, all)
	require.Empty(t, mine, "a hold's id is a secret of its holder")
	require.NotContains(t, string(delta.body), hold)
	for _, query := range []string{"?since=999999", "?since=" + str(delta.number("version")) + "&epoch=7"} {
		whole := e.call(other, "GET", show+"/seats"+query, nil).is(http.StatusOK)
		require.Equal(t, true, whole.json["full"], "a map of another life of the show is replaced: %s", query)
	}
	for _, query := range []string{"?since=x", "?since=-1", "?since=1&since=2", "?since=1.5"} {
		e.call(other, "GET", show+"/seats"+query, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
}

func TestEveryConflictIsNamedAndNothingIsTaken(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	one, two := e.inside(show), e.inside(show)
	e.hold(one, show, "A-1-2", "A-1-4")
	refused := e.call(two, "POST", show+"/holds", object{"seats": []string{"A-1-4", "A-1-3", "A-1-2"}}).
		fails(http.StatusConflict, codeSeatUnavailable)
	require.Equal(t, []any{"A-1-2", "A-1-4"}, refused.json["conflicts"])
	all, _ := states(e.call(two, "GET", show+"/seats", nil))
	require.Equal(t, "FREE", all["A-1-3"])
}

func TestHoldsThatCannotBe(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me, outside := e.inside(show), e.person()
	ask := func(token string, body any) answer { return e.call(token, "POST", show+"/holds", body) }
	ask(outside, object{"seats": []string{"A-1-1"}}).fails(http.StatusForbidden, codeNotAdmitted)
	ask(outside, object{"best": object{"count": 1}}).fails(http.StatusForbidden, codeNotAdmitted)
	unknown := ask(me, object{"seats": []string{"A-1-1", "B-1-1", "A-9-9", "A-01-1"}}).fails(http.StatusUnprocessableEntity, codeUnknownSeat)
	require.Equal(t, []any{"B-1-1", "A-9-9", "A-01-1"}, unknown.json["seats"])
	ask(me, object{"seats": []string{"A-1-1", "A-1-1"}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{"seats": []string{}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{"seats": nil, "best": nil}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{"seats": []string{"A-1-1"}, "best": object{"count": 1}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{"best": object{"count": 0}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{"best": object{"count": 1, "section": "Z"}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, object{"best": object{"count": 1, "row": 1}}).fails(http.StatusBadRequest, codeUnknownField)
	e.call(me, "POST", "/api/shows/none/holds", object{"seats": []string{"A-1-1"}}).fails(http.StatusNotFound, codeShowNotFound)
	all, _ := states(e.call(me, "GET", show+"/seats", nil))
	for id, state := range all {
		require.Equal(t, "FREE", state, id)
	}
}

// G2: the page offered more than the server allowed. The limit is in the show, and
// the answer says how much of it is used.
func TestTheLimitOfOnePersonIsToldWithWhatIsUsed(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	require.Equal(t, float64(4), e.call("", "GET", show, nil).json["seating"].(map[string]any)["seatLimit"])
	me := e.inside(show)
	refused := e.call(me, "POST", show+"/holds", object{"seats": []string{"A-1-1", "A-1-2", "A-1-3", "A-1-4", "A-1-5"}}).
		fails(http.StatusConflict, codeLimitReached)
	require.Equal(t, float64(4), refused.json["limit"])
	require.Equal(t, float64(0), refused.json["used"], "what is used is without this request")
	e.call(me, "POST", show+"/holds", object{"best": object{"count": 5}}).fails(http.StatusConflict, codeLimitReached)
	held := e.hold(me, show, "A-1-1", "A-1-2", "A-1-3")
	five := []string{"A-2-1", "A-2-2", "A-2-3", "A-2-4", "A-2-5"}
	for _, body := range []object{
		{"seats": []string{"A-2-1", "A-2-2"}}, {"best": object{"count": 2}}, {"seats": five}, {"best": object{"count": 5}}, {"best": object{"count": 1e9}},
	} {
		refused = e.call(me, "POST", show+"/holds", body).fails(http.StatusConflict, codeLimitReached)
		require.Equal(t, float64(3), refused.json["used"])
	}
	e.hold(me, show, "A-2-1")
	refused = e.call(me, "PUT", show+"/holds/"+held, object{"seats": five}).fails(http.StatusConflict, codeLimitReached)
	require.Equal(t, float64(1), refused.json["used"], "what is exchanged is not used beside itself")
}

func TestAHoldIsFoundExtendedSwappedAndReleased(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.listen()
	show := e.show(nil)
	me, thief := e.inside(show), e.inside(show)
	made := e.call(me, "POST", show+"/holds", object{"seats": []string{"A-1-2", "A-1-1"}}).is(http.StatusCreated)
	require.Equal(t, 51.0, made.json["price"])
	require.Equal(t, []any{"A-1-1", "A-1-2"}, made.json["seats"])
	path := show + "/holds/" + made.text("holdId")
	listed := e.call(me, "GET", show+"/holds", nil).is(http.StatusOK)
	require.Len(t, listed.json["holds"], 1)
	require.Equal(t, 51.0, listed.json["holds"].([]any)[0].(map[string]any)["price"])
	require.Empty(t, e.call(thief, "GET", show+"/holds", nil).is(http.StatusOK).json["holds"])
	for _, a := range []answer{
		e.call(thief, "POST", path+"/extend", nil), e.call(thief, "PUT", path, object{"seats": []string{"A-1-1"}}), e.call(thief, "DELETE", path, nil),
		e.call(me, "POST", show+"/holds/none/extend", nil), e.call(me, "DELETE", show+"/holds/no%20ne", nil), e.call(me, "PUT", show+"/holds/none", object{"seats": []string{"A-1-1"}}),
	} {
		a.fails(http.StatusNotFound, codeHoldNotFound)
	}
	require.Equal(t, made.text("ceilingAt"), e.call(me, "POST", path+"/extend", nil).is(http.StatusOK).text("ceilingAt"))
	// B7: one's own old choice stood in the way of the new one.
	swapped := e.call(me, "PUT", path, object{"seats": []string{"A-1-2", "A-1-3"}}).is(http.StatusOK)
	require.Equal(t, made.text("ceilingAt"), swapped.text("ceilingAt"))
	n := e.hears("the swap", func(n events.Notification) bool {
		return n.ShowID == showID(show) && n.SeatVersion == swapped.number("version")
	})
	require.ElementsMatch(t, []domain.Seat{{ID: "A-1-1", State: domain.SeatFree}, {ID: "A-1-3", State: domain.SeatHeld}}, n.SeatsChanged)
	e.call(me, "PUT", path, object{"seats": []string{"A-9-1"}}).fails(http.StatusUnprocessableEntity, codeUnknownSeat)
	e.call(me, "PUT", path, object{"seats": []string{}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(me, "DELETE", path, nil).is(http.StatusNoContent)
	e.hears("the release", func(n events.Notification) bool {
		return n.ShowID == showID(show) && n.SeatVersion > swapped.number("version") && len(n.SeatsChanged) == 2 && n.SeatsChanged[0].State == domain.SeatFree
	})
	e.call(me, "DELETE", path, nil).fails(http.StatusNotFound, codeHoldNotFound)
}

// E4: 160 requests at the same instant were all proposed the same block, and 84 %
// were refused while seats were free. E5: after a conflict the whole choice was given
// up; here the candidates are made anew from fresh seats.
func TestACrowdThatAsksForTheBestSeatsGetsThem(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"seating": object{"sections": []object{{"name": "A", "rows": 10, "seatsPerRow": 10, "price": 1}, {"name": "B", "rows": 1, "seatsPerRow": 1, "price": 1}}}})
	const people = 50
	tokens := make([]string, people)
	for i := range tokens {
		tokens[i] = e.inside(show)
	}
	answers := make([]answer, people)
	var asking sync.WaitGroup
	for i, token := range tokens {
		asking.Go(func() {
			request, _ := http.NewRequestWithContext(t.Context(), "POST", e.url+show+"/holds", strings.NewReader(`{"best":{"count":2,"section":"A"}}`))
			request.Header.Set("Authorization", "Bearer "+token)
			answers[i] = e.send(request)
		})
	}
	asking.Wait()
	seats := map[any]bool{}
	for _, a := range answers {
		a.is(http.StatusCreated)
		for _, seat := range a.json["seats"].([]any) {
			require.False(t, seats[seat], "nobody holds another's seat")
			seats[seat] = true
		}
	}
	late := e.inside(show)
	e.call(late, "POST", show+"/holds", object{"best": object{"count": 2, "section": "A"}}).fails(http.StatusConflict, codeNoBlock)
	e.call(late, "POST", show+"/holds", object{"best": object{"count": 2}}).fails(http.StatusConflict, codeNoBlock)
	require.Equal(t, []any{"B-1-1"}, e.call(late, "POST", show+"/holds", object{"best": object{"count": 1}}).is(http.StatusCreated).json["seats"])
	require.Equal(t, "ALL_HELD", e.call("", "GET", show, nil).text("availability"))
}

// The mirror proposes from what it remembers; seats that came back must be in it.
func TestBestSeatsSeeWhatCameBackAndANewEpoch(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"seating": object{"sections": []object{{"name": "A", "rows": 1, "seatsPerRow": 2, "price": 1}}}})
	best := func(token string) answer {
		return e.call(token, "POST", show+"/holds", object{"best": object{"count": 2}})
	}
	me, other := e.inside(show), e.inside(show)
	hold := best(me).is(http.StatusCreated).text("holdId")
	best(other).fails(http.StatusConflict, codeNoBlock)
	e.call(me, "DELETE", show+"/holds/"+hold, nil).is(http.StatusNoContent)
	best(other).is(http.StatusCreated)
	e.loseRedis(show)
	best(e.inside(show)).is(http.StatusCreated)
}

// I3: one's own hold was not to be seen until the page was loaded again.
func TestOnesOwnHoldIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	hold := e.hold(me, show, "A-2-2")
	_, mine := states(e.call(me, "GET", show+"/seats", nil))
	require.Equal(t, map[string]string{"A-2-2": hold}, mine)
}

// F5: countdowns ran on the visitor's clock. Every deadline comes with the server's time.
func TestDeadlinesComeWithTheServersTime(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"seating": object{"holdSeconds": 60, "sections": []object{{"name": "A", "rows": 1, "seatsPerRow": 1, "price": 0}}}})
	hold := e.call(e.inside(show), "POST", show+"/holds", object{"seats": []string{"A-1-1"}}).is(http.StatusCreated)
	var at [3]time.Time
	for i, name := range []string{"serverTime", "expiresAt", "ceilingAt"} {
		var err error
		at[i], err = time.Parse(time.RFC3339Nano, hold.text(name))
		require.NoError(t, err)
	}
	require.Equal(t, time.Minute, at[1].Sub(at[0]))
	require.Equal(t, 2*time.Minute, at[2].Sub(at[0]))
}

// T70: a group that wants four seats or none was offered them one by one. Seats are held
// all together or not at all, chosen by hand or as the best block.
func TestT70AGroupGetsAllItsSeatsOrNone(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"seating": object{"seatLimit": 4, "sections": []object{{"name": "A", "rows": 1, "seatsPerRow": 7, "price": 10}}}})
	first, group := e.inside(show), e.inside(show)
	e.hold(first, show, "A-1-4")
	held := func() int {
		var seats struct{ Seats []domain.Seat }
		e.call(group, "GET", show+"/seats", nil).is(http.StatusOK).into(&seats)
		n := 0
		for _, seat := range seats.Seats {
			if seat.State != domain.SeatFree {
				n++
			}
		}
		return n
	}
	e.call(group, "POST", show+"/holds", object{"best": object{"count": 4}}).fails(http.StatusConflict, codeNoBlock)
	e.call(group, "POST", show+"/holds", object{"seats": []string{"A-1-2", "A-1-3", "A-1-4", "A-1-5"}}).fails(http.StatusConflict, codeSeatUnavailable)
	require.Equal(t, 1, held(), "nothing was taken for them")
	e.call(first, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	hold := e.call(group, "POST", show+"/holds", object{"best": object{"count": 4}}).is(http.StatusCreated)
	require.Len(t, hold.json["seats"], 4)
	require.Equal(t, 4, held())
}
