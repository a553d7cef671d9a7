package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
)

// operate calls an operator's route of a show.
func (e *edge) operate(show, action string, body any) answer {
	e.t.Helper()
	return e.call(e.operator, "POST", strings.Replace(show, "/api/", "/api/operator/", 1)+"/"+action, body)
}

// T33 and its like: everything that an operator does has an effect that can be seen, and
// leaves who did it and when.
func TestWhatOperatorsDoIsWrittenDown(t *testing.T) {
	t.Parallel()
	for _, kind := range databases {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			e := newEdgeOn(t, kind.url(t), "redis://"+newEdge(t).rdb.Options().Addr)
			show := e.show(object{"queue": object{"maxActive": 1}})
			e.inside(show)
			waiter := e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
			require.Equal(t, "PAUSED", e.operate(show, "pause", nil).is(http.StatusOK).text("phase"))
			require.Equal(t, "OPEN", e.operate(show, "resume", nil).is(http.StatusOK).text("phase"))
			require.Equal(t, "CLOSED", e.operate(show, "close", nil).is(http.StatusOK).text("phase"))
			require.Equal(t, "OPEN", e.operate(show, "reopen", "{}").is(http.StatusOK).text("phase"))
			e.call(e.operator, "PATCH", show, object{"message": "Soon", "paused": true}).is(http.StatusOK)
			e.call(e.operator, "PATCH", show, object{"paused": false}).is(http.StatusOK)
			require.Equal(t, object{"asked": 5.0, "admitted": 0.0, "limitedBy": "maxActive"}, e.operate(show, "admit", object{"count": 5}).is(http.StatusOK).json)
			e.operate(show, "remove", object{"requestId": waiter.text("requestId")}).is(http.StatusNoContent)
			require.EqualValues(t, 2, e.operate(show, "reset", " \n").is(http.StatusOK).number("epoch"))

			var audit struct{ Actions []actionView }
			path := strings.Replace(show, "/api/", "/api/operator/", 1) + "/audit"
			e.call(e.operator, "GET", path, nil).is(http.StatusOK).into(&audit)
			var done []string
			for _, a := range audit.Actions {
				done = append(done, a.Action)
				require.True(t, strings.HasPrefix(string(a.Operator), "op-"))
				require.WithinDuration(t, time.Now(), a.At, time.Minute)
				require.NotNil(t, a.DoneAt)
			}
			require.Equal(t, []string{"reset", "remove", "admit", "resume", "change", "reopen", "close", "resume", "pause", "create"}, done)
			require.JSONEq(t, `{"count":5}`, string(audit.Actions[2].Detail))
			require.JSONEq(t, `{"asked":5,"admitted":0,"limitedBy":"maxActive"}`, string(audit.Actions[2].Outcome))
			e.call(e.operator, "GET", path+"?limit=2&before="+audit.Actions[1].ID, nil).is(http.StatusOK).into(&audit)
			require.Len(t, audit.Actions, 2)
			require.Equal(t, "admit", audit.Actions[0].Action)
		})
	}
}

func TestOnlyOperatorsOperate(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := strings.Replace(e.show(nil), "/api/", "/api/operator/", 1)
	for _, action := range []string{"pause", "resume", "close", "reopen", "admit", "remove", "reset", "preview"} {
		e.call("", "POST", show+"/"+action, nil).fails(http.StatusUnauthorized, codeUnauthorized)
		e.call(e.person(), "POST", show+"/"+action, nil).fails(http.StatusForbidden, codeForbidden)
	}
	for _, path := range []string{"/audit", "/places/x/explain"} {
		e.call(e.person(), "GET", show+path, nil).fails(http.StatusForbidden, codeForbidden)
	}
	none := "/api/operator/shows/none/"
	for action, body := range map[string]any{"pause": nil, "admit": object{"count": 1}, "remove": object{"person": "p"}, "reset": nil, "preview": object{"queue": object{}}} {
		e.call(e.operator, "POST", none+action, body).fails(http.StatusNotFound, codeShowNotFound)
	}
	for _, body := range []object{{}, {"requestId": "a", "person": "b"}} {
		e.call(e.operator, "POST", show+"/remove", body).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
	e.call(e.operator, "POST", show+"/remove", object{"person": "nobody"}).fails(http.StatusNotFound, codeNotJoined)
	e.call(e.operator, "POST", show+"/admit", object{"count": 0}).fails(http.StatusUnprocessableEntity, codeInvalid)
}

func TestAnOperatorLetsPeopleInByHand(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.listen()
	early := e.show(object{"prequeueAt": time.Now().Add(-time.Hour), "opensAt": time.Now().Add(time.Hour)})
	e.operate(early, "admit", object{"count": 1}).fails(http.StatusConflict, codeNotOpen)
	show := e.show(object{"queue": object{"maxActive": 3}})
	e.operate(show, "pause", nil).is(http.StatusOK)
	people := map[string]string{}
	for range 5 {
		token := e.person()
		people[e.call(token, "POST", show+"/admission", nil).is(http.StatusCreated).text("requestId")] = token
	}
	require.EqualValues(t, 2, e.operate(show, "admit", object{"count": 2}).is(http.StatusOK).number("admitted"))
	told := e.hears("who was let in", func(n events.Notification) bool { return n.ShowID == showID(show) && len(n.Admitted) == 2 })
	for _, a := range told.Admitted {
		require.Equal(t, "ADMITTED", e.call(people[string(a.RequestID)], "GET", show+"/admission", nil).is(http.StatusOK).text("status"))
	}
	last := e.operate(show, "admit", object{"count": 9}).is(http.StatusOK)
	require.EqualValues(t, 1, last.number("admitted"))
	require.Equal(t, "maxActive", last.text("limitedBy"))
	e.operate(show, "close", nil).is(http.StatusOK)
	e.operate(show, "admit", object{"count": 1}).fails(http.StatusConflict, codeClosed)
}

// T36, T37: after a reset nobody may be told an old number, what is sold stays, and a
// pass of before is worth nothing. A reset that died before Redis is taken up again.
func TestResettingBeginsAnew(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 2}})
	buyer := e.inside(show)
	e.decide(e.book(buyer, show, e.hold(buyer, show, "A-1-1"), "key"))
	in, waiter := e.inside(show), e.person()
	e.inside(show)
	e.call(waiter, "POST", show+"/admission", nil).is(http.StatusCreated)
	seed := e.call("", "GET", show, nil).json["draw"].(object)["seedHash"]
	fresh := e.operate(show, "reset", nil).is(http.StatusOK)
	require.EqualValues(t, 2, fresh.number("epoch"))
	require.EqualValues(t, 1, fresh.number("sold"))
	require.NotEqual(t, seed, fresh.json["draw"].(object)["seedHash"])
	e.call(waiter, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	e.call(in, "POST", show+"/holds", object{"seats": []string{"A-1-2"}}).fails(http.StatusForbidden, codeNotAdmitted)
	again := e.call(waiter, "POST", show+"/admission", nil).is(http.StatusCreated)
	require.Equal(t, "ADMITTED", again.text("status"))
	require.EqualValues(t, 2, again.number("epoch"))

	later := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	require.Equal(t, "PREQUEUE", e.operate(show, "reset", object{"prequeueAt": later.Add(-2 * time.Hour), "opensAt": later}).is(http.StatusOK).text("phase"))
	e.operate(show, "reset", object{"opensAt": nil}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.operate(show, "reset", object{"title": "x"}).fails(http.StatusBadRequest, codeUnknownField)

	// The process dies when SQL has begun the epoch.
	e.call(waiter, "POST", show+"/admission", nil).is(http.StatusCreated)
	dead := domain.OperatorAction{ID: domain.NewID(), ShowID: showID(show), Operator: "op", Action: domain.ActionReset, Detail: "{}"}
	_, err := e.store.ResetShow(t.Context(), dead, func(*domain.Show) error { return nil })
	require.NoError(t, err)
	require.NoError(t, e.server.desk.Resume(t.Context(), 0))
	e.call(waiter, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	e.call(waiter, "POST", show+"/admission", nil).is(http.StatusCreated)
	require.NoError(t, e.server.desk.Resume(t.Context(), 0))
	e.call(waiter, "GET", show+"/admission", nil).is(http.StatusOK)
}

// An operator who is asked "why am I not in" must not have to guess.
func TestAPlaceIsExplained(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1}})
	e.inside(show)
	e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	person := "p-" + domain.NewID()
	place := e.call(e.token(person), "POST", show+"/admission", nil).is(http.StatusCreated)
	path := strings.Replace(show, "/api/", "/api/operator/", 1) + "/places/"
	for _, named := range []string{place.text("requestId"), person} {
		var told explanation
		e.call(e.operator, "GET", path+named+"/explain", nil).is(http.StatusOK).into(&told)
		require.Equal(t, place.text("requestId"), string(told.Place.RequestID))
		require.Equal(t, "NO_VACANCY", told.Rules[0].Code)
		require.Equal(t, "1 people are ahead", told.Rules[1].Text)
	}
	e.call(e.token(person), "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	require.Contains(t, string(e.call(e.operator, "GET", path+person+"/explain", nil).is(http.StatusOK).body), "left by their own wish")
	e.call(e.operator, "GET", path+"nobody/explain", nil).fails(http.StatusNotFound, codeNotJoined)
}

// A finger too many on a key must not open the doors: 900000 for 90000.
func TestADeploymentBoundsWhatAShowMayAskFor(t *testing.T) {
	t.Parallel()
	e := newEdge(t, func(c *Config, _ *Deps) { c.MaxActiveLimit, c.RateLimit = 500, 6000 })
	show := e.show(object{"queue": object{"maxActive": 500, "ratePerMinute": 6000}})
	for _, queue := range []object{{"maxActive": 501}, {"ratePerMinute": 6001}, {"maxActive": 0}, {"ratePerMinute": 0}} {
		e.call(e.operator, "PATCH", show, object{"queue": queue}).fails(http.StatusUnprocessableEntity, codeInvalid)
		e.operate(show, "preview", object{"queue": queue}).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
	e.call(e.operator, "POST", "/api/shows", object{"title": "x", "queue": object{"maxActive": 501, "ratePerMinute": 10}}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.operator, "PATCH", show, object{"queue": object{"maxActive": 10}}).is(http.StatusOK)
}

func TestAPreviewChangesNothing(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1, "sessionSeconds": 60}})
	e.inside(show)
	for range 9 {
		e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	}
	seen := e.operate(show, "preview", object{"queue": object{"maxActive": 5}}).is(http.StatusOK)
	require.EqualValues(t, 9, seen.number("waiting"))
	require.Greater(t, seen.number("medianSecondsBefore"), seen.number("medianSecondsAfter"))
	var stays showView
	e.call("", "GET", show, nil).into(&stays)
	require.Equal(t, 1, stays.Queue.MaxActive)
}

func TestATurnIsExtendedOnceOverHTTP(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1}})
	me := e.person()
	e.call(me, "POST", show+"/admission/extend", nil).fails(http.StatusConflict, codeNotAdmitted)
	first := e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	more := e.call(me, "POST", show+"/admission/extend", nil).is(http.StatusOK)
	require.Greater(t, more.text("claimBy"), first.text("claimBy"))
	require.Equal(t, more.text("claimBy"), e.call(me, "POST", show+"/admission/extend", "{}").is(http.StatusOK).text("claimBy"))
	e.call(me, "POST", show+"/admission/claim", nil).is(http.StatusOK)
	require.Equal(t, "ACTIVE", e.call(me, "POST", show+"/admission/extend", nil).is(http.StatusOK).text("status"))
}

func TestOddsAreToldToWhoWaits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1}})
	buyer := e.inside(show)
	e.decide(e.book(buyer, show, e.hold(buyer, show, "A-1-1", "A-1-2", "A-1-3"), "key"))
	e.inside(show)
	var last answer
	for range 3 {
		last = e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	}
	var told struct{ Odds domain.Odds }
	require.NoError(t, json.Unmarshal(last.body, &told))
	three := 3.0
	require.Equal(t, domain.Odds{SeatsLeft: 7, Ahead: 3, SeatsPerBuyer: &three, SoldOutLikely: true}, told.Odds, fmt.Sprint(last.json))
}
