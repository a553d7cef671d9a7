package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

var fansAndPress = []object{{"name": "fans", "weight": 3}, {"name": "press", "weight": 1}}

// mint has an operator make a code.
func (e *edge) mint(show string, order object) string {
	e.t.Helper()
	var made struct{ Codes []string }
	e.operate(show, "codes", order).is(http.StatusCreated).into(&made)
	require.Len(e.t, made.Codes, 1)
	return made.Codes[0]
}

// T42: people with a presale code were refused at the end of their wait and sent to the
// back. A code is judged when joining: one that does not count gives no place at all, and
// whoever joins without it afterwards has lost nothing.
func TestCodesAreJudgedAtJoin(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1, "lanes": fansAndPress}})
	other := e.show(object{"queue": object{"lanes": fansAndPress}})
	e.inside(show)
	ada := e.token("ada-" + domain.NewID())
	good := e.mint(show, object{"lane": "fans", "until": time.Now().Add(time.Hour)})
	for name, code := range map[string]string{
		"altered":        good[:len(good)-4] + "AAAA",
		"no code":        "SUMMER",
		"another show's": e.mint(other, object{"lane": "fans"}),
		"another's":      e.mint(show, object{"lane": "fans", "person": "bob"}),
	} {
		require.NotEmpty(t, e.call(ada, "POST", show+"/admission", object{"code": code}).fails(http.StatusUnprocessableEntity, codeInvalidCode).text("detail"), name)
		e.call(ada, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	}
	e.call(ada, "POST", show+"/admission", object{"code": ""}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(ada, "POST", show+"/admission", object{"kode": good}).fails(http.StatusBadRequest, codeUnknownField)

	place := e.call(ada, "POST", show+"/admission", object{"code": good}).is(http.StatusCreated)
	require.Equal(t, "fans", place.text("lane"))
	again := e.call(ada, "POST", show+"/admission", nil).is(http.StatusOK)
	require.Equal(t, "fans", again.text("lane"), "the place stays where it is")
	again = e.call(ada, "POST", show+"/admission", object{"code": "SUMMER"}).is(http.StatusOK)
	require.Equal(t, "fans", again.text("lane"), "whoever has a place keeps it, whatever the code")
	e.call(ada, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	e.call(ada, "POST", show+"/admission", object{"code": "SUMMER"}).fails(http.StatusUnprocessableEntity, codeInvalidCode)
	require.Nil(t, e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated).json["lane"])
}

// A code for one person is used up by the first, and by nobody else: coming back is free.
func TestACodeIsUsedUp(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1, "lanes": fansAndPress}})
	e.inside(show)
	code := object{"code": e.mint(show, object{"lane": "press", "uses": 1})}
	first, second := e.person(), e.person()
	e.call(first, "POST", show+"/admission", code).is(http.StatusCreated)
	e.call(second, "POST", show+"/admission", code).fails(http.StatusUnprocessableEntity, codeInvalidCode)
	e.call(second, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	e.call(first, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	require.Equal(t, "press", e.call(first, "POST", show+"/admission", code).is(http.StatusCreated).text("lane"))
}

// Whoever waits in the ordinary line keeps their number whatever comes in other lanes, and
// each is told the numbers of their own line.
func TestOrdinaryRanksDoNotRiseForCodes(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1, "ratePerMinute": 60, "lanes": fansAndPress}})
	inside := e.inside(show)
	code := object{"code": e.mint(show, object{"lane": "fans"})}
	me, behind := e.person(), e.person()
	e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	e.call(behind, "POST", show+"/admission", nil).is(http.StatusCreated)
	for rank := range 3 {
		fan := e.call(e.person(), "POST", show+"/admission", code).is(http.StatusCreated)
		require.EqualValues(t, rank+1, fan.number("rank"))
		require.EqualValues(t, rank+1, fan.number("waiting"))
		mine := e.call(behind, "GET", show+"/admission", nil).is(http.StatusOK)
		require.EqualValues(t, 2, mine.number("rank"))
		require.EqualValues(t, 2, mine.number("waiting"))
	}
	e.call(inside, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	_, err := e.steps.Admit(t.Context(), showID(show), lua.AdmitOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, e.call(behind, "GET", show+"/admission", nil).is(http.StatusOK).number("rank"), "a fan came in, and nobody moved")
	live := e.call(e.operator, "GET", strings.Replace(show, "/api/", "/api/operator/", 1), nil).is(http.StatusOK)
	require.Equal(t, []any{object{"weight": 1.0, "waiting": 2.0}, object{"weight": 3.0, "waiting": 2.0}, object{"weight": 1.0, "waiting": 0.0}}, live.json["lanes"])
}

func TestLanesOfAShowStay(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"lanes": fansAndPress}})
	plain := e.show(nil)
	require.Nil(t, e.call("", "GET", plain, nil).is(http.StatusOK).json["queue"].(object)["lanes"])
	change := func(lanes []object) answer {
		return e.call(e.operator, "PATCH", show, object{"queue": object{"lanes": lanes}})
	}
	change(fansAndPress[1:]).fails(http.StatusUnprocessableEntity, codeInvalid)
	change([]object{}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.operate(show, "preview", object{"queue": object{"lanes": fansAndPress[:1]}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	more := append([]object{{"name": "fans", "weight": 9}, fansAndPress[1]}, object{"name": "late", "weight": 2})
	change(more).is(http.StatusOK)
	e.call(e.operator, "PATCH", show, object{"queue": object{"ordinaryWeight": 5}}).is(http.StatusOK)
	stats, err := e.steps.Stats(t.Context(), showID(show))
	require.NoError(t, err)
	require.Equal(t, domain.LaneLines{{Weight: 5}, {Weight: 9}, {Weight: 1}, {Weight: 2}}, stats[0].Lanes)
}

func TestMintingCodes(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"lanes": fansAndPress}})
	var made struct{ Codes []string }
	e.operate(show, "codes", object{"lane": "fans", "count": 1000, "uses": 2}).is(http.StatusCreated).into(&made)
	seen := map[string]bool{}
	for _, code := range made.Codes {
		seen[code] = true
	}
	require.Len(t, seen, 1000)
	e.operate(show, "codes", object{"lane": "vips"}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.operate(show, "codes", object{"lane": "fans", "count": 1001}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.operate(show, "codes", object{"lane": "fans", "until": "2001-01-01T00:00:00Z"}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.person(), "POST", strings.Replace(show, "/api/", "/api/operator/", 1)+"/codes", object{"lane": "fans"}).fails(http.StatusForbidden, codeForbidden)
	var audit struct{ Actions []actionView }
	e.call(e.operator, "GET", strings.Replace(show, "/api/", "/api/operator/", 1)+"/audit", nil).is(http.StatusOK).into(&audit)
	require.Equal(t, domain.ActionMintCodes, audit.Actions[0].Action)
	require.NotContains(t, string(audit.Actions[0].Detail)+string(audit.Actions[0].Outcome), made.Codes[0], "codes are written down nowhere")
}

// On sockets: a code comes with join, a bad one is an ERROR and no place, and RANK tells
// each the number in their own line.
func TestLanesOnSockets(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.show = w.addShow(func(s *domain.Show) { s.Queue.Lanes = []domain.Lane{{Name: "fans", Weight: 3}} })
	w.fill()
	code, err := w.server.admissions.codes.Mint(domain.JoinCode{ID: "x", ShowID: w.show.ID, Lane: "fans"})
	require.NoError(t, err)
	w.join("ahead-1", "ahead-2")
	page, _ := w.open("fan")
	page.send("join", "showId", w.show.ID, "code", code[:len(code)-3], "ref", "bad")
	page.await(eventError, func(f told) bool { return f.Code == codeInvalidCode })
	page.send("join", "showId", w.show.ID, "code", code)
	page.await(events.EventAdmission, func(f told) bool {
		return f.Status == string(domain.StatusWaiting) && *f.Place.Rank == 1 && f.Place.Waiting == 1 && f.Place.Lane == "fans"
	})
	ordinary, hello := w.open("ahead-2")
	require.EqualValues(t, 2, *hello.Places[0].Rank)
	_, err = w.steps.Leave(t.Context(), w.show.ID, w.request("ahead-1"))
	require.NoError(t, err)
	knots, stats, err := w.steps.Knots(t.Context(), w.show.ID)
	require.NoError(t, err)
	w.notify(events.Notification{Event: events.EventRank, Version: stats.Version, Knots: &knots, Stats: &stats})
	ordinary.await(events.EventRank, func(f told) bool { return f.Rank == 1 && f.Waiting == 1 })
	page.settle(w)
	for _, f := range page.of(events.EventRank) {
		require.EqualValues(t, 1, f.Rank)
	}
}
