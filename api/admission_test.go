package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
)

// T6: a join that was delivered again took a second number and moved the person back.
func TestJoiningAgainIsTheSamePlace(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1}})
	e.inside(show)
	me, other := e.person(), e.person()
	first := e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	require.Equal(t, int64(1), first.number("rank"))
	require.Equal(t, int64(2), e.call(other, "POST", show+"/admission", nil).is(http.StatusCreated).number("rank"))
	again := e.call(me, "POST", show+"/admission", "{}").is(http.StatusOK)
	require.Equal(t, first.text("requestId"), again.text("requestId"))
	require.Equal(t, int64(1), again.number("rank"))
	require.Equal(t, int64(2), again.number("waiting"), "T65: people ahead are known")
}

// T30: a page showed "you are number 5" though the join never reached the server.
// Nobody has a place before the answer, and a refused join leaves none.
func TestAPlaceExistsOnlyOnceJoined(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"opensAt": time.Now().Add(time.Hour)})
	me := e.person()
	e.call(me, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	e.call(me, "POST", show+"/admission", nil).fails(http.StatusConflict, codeNotOpen)
	e.call(me, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	e.call(me, "POST", "/api/shows/none/admission", nil).fails(http.StatusNotFound, codeShowNotFound)
	e.call("", "POST", show+"/admission", nil).fails(http.StatusUnauthorized, codeUnauthorized)
}

func TestJoiningTooEarlySaysWhenItOpens(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	opens := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	prequeue := opens.Add(-time.Minute)
	plain := e.show(object{"opensAt": opens})
	drawn := e.show(object{"opensAt": opens, "prequeueAt": prequeue})
	for show, when := range map[string]time.Time{plain: opens, drawn: prequeue} {
		said, err := time.Parse(time.RFC3339Nano, e.call(e.person(), "POST", show+"/admission", nil).fails(http.StatusConflict, codeNotOpen).text("opensAt"))
		require.NoError(t, err)
		require.Equal(t, when, said)
		require.Equal(t, "SCHEDULED", e.call("", "GET", show, nil).text("phase"))
	}
}

func TestNobodyHasARankWhileTheDrawIsOpen(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"prequeueAt": time.Now().Add(-time.Hour), "opensAt": time.Now().Add(time.Hour)})
	place := e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	require.Equal(t, "PREQUEUE", place.text("status"))
	require.Nil(t, place.json["rank"])
	require.Nil(t, place.json["eta"])
}

func TestClaimingNeedsATurn(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1}})
	e.inside(show)
	me := e.person()
	e.call(me, "POST", show+"/admission/claim", nil).fails(http.StatusConflict, codeNotAdmitted)
	e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	e.call(me, "POST", show+"/admission/claim", nil).fails(http.StatusConflict, codeNotAdmitted)
	e.call(me, "POST", show+"/admission/claim", object{"now": true}).fails(http.StatusBadRequest, codeUnknownField)
	e.call(me, "POST", "/api/shows/none/admission/claim", nil).fails(http.StatusNotFound, codeShowNotFound)
}

func TestClaimingAgainIsTheSameSession(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.person()
	admitted := e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	require.NotNil(t, admitted.json["claimBy"])
	require.Nil(t, admitted.json["pass"])
	first := e.call(me, "POST", show+"/admission/claim", nil).is(http.StatusOK)
	again := e.call(me, "POST", show+"/admission/claim", nil).is(http.StatusOK)
	require.Equal(t, first.text("expiresAt"), again.text("expiresAt"))
	require.Equal(t, first.text("pass"), again.text("pass"))
	require.Nil(t, first.json["claimBy"])
}

func TestLeavingFreesTheSlotAtOnceAndIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.listen()
	show := e.show(object{"queue": object{"maxActive": 1}})
	id := showID(show)
	me, next := e.inside(show), e.person()
	e.call(next, "POST", show+"/admission", nil).is(http.StatusCreated)
	e.hold(me, show, "A-1-1")
	e.call(me, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	require.Equal(t, "LEFT", e.call(me, "GET", show+"/admission", nil).is(http.StatusOK).text("status"))
	require.Len(t, e.entries(events.StreamAdmission, string(id)), 1, "one command gives the slot on")
	e.hears("the seats came back", func(n events.Notification) bool {
		return n.Event == events.EventSeats && n.ShowID == id && len(n.SeatsChanged) == 1 && n.SeatsChanged[0].State == domain.SeatFree
	})
	e.hears("the place ended", func(n events.Notification) bool {
		return n.Event == events.EventAdmission && n.ShowID == id && len(n.Ended) == 1
	})
	result, err := e.steps.Admit(t.Context(), id, lua.AdmitOptions{})
	require.NoError(t, err)
	require.Len(t, result.Admitted, 1)
	for range 2 {
		e.call(me, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
		e.call(e.person(), "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	}
	require.Len(t, e.entries(events.StreamAdmission, string(id)), 1, "nothing was freed again")
	e.call(me, "DELETE", "/api/shows/none/admission", nil).fails(http.StatusNotFound, codeShowNotFound)
}

// T36: after a reset, old numbers were served from memory for up to a day. A new
// epoch shows in every place, and the old place is gone.
func TestANewEpochEndsOldPlaces(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.person()
	before := e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	e.loseRedis(show)
	e.call(me, "GET", show+"/admission", nil).fails(http.StatusNotFound, codeNotJoined)
	after := e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	require.Greater(t, after.number("epoch"), before.number("epoch"))
	require.Equal(t, "no-store", after.header.Get("Cache-Control"))
}

// T46, T47: an id that follows from public data, or was seen in a log, was enough to
// take somebody's place. Ids need the server's secret, and only a token acts.
func TestAnIDGivesNobodySomebodysPlace(t *testing.T) {
	t.Parallel()
	url := sqlite(t)
	one := newEdgeOn(t, url, testenv.RedisURL(t))
	other := newEdgeOn(t, url, testenv.RedisURL(t), func(c *Config, _ *Deps) { c.SigningKey[0]++ })
	show := one.show(object{"queue": object{"maxActive": 1}})
	me := one.person()
	id := one.call(me, "POST", show+"/admission", nil).is(http.StatusCreated).text("requestId")
	require.NotEqual(t, id, other.call(me, "POST", show+"/admission", nil).is(http.StatusCreated).text("requestId"))
	thief := one.person()
	for _, path := range []string{show + "/admission?requestId=" + id, show + "/admission/" + id} {
		require.GreaterOrEqual(t, one.call(thief, "GET", path, nil).status, http.StatusBadRequest)
	}
}

func TestPausedIsNoFieldOfANewShow(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.call(e.operator, "POST", "/api/shows", object{"title": "x", "paused": true}).fails(http.StatusBadRequest, codeUnknownField)
}

// T65: people ahead and the wait are told, and the page is told how often to ask.
func TestHowOftenToAskFollowsFromTheRank(t *testing.T) {
	t.Parallel()
	cases := []struct {
		status domain.Status
		rank   int64
		grace  time.Duration
		after  time.Duration
	}{
		{domain.StatusWaiting, 1, time.Minute, time.Second},
		{domain.StatusWaiting, 500, time.Minute, 6 * time.Second},
		{domain.StatusWaiting, 1_000_000, time.Minute, 10 * time.Second},
		{domain.StatusWaiting, 1_000_000, 15 * time.Second, 5 * time.Second},
		{domain.StatusWaiting, 1_000_000, time.Second, 500 * time.Millisecond},
		{domain.StatusPrequeue, 0, time.Minute, 10 * time.Second},
		{domain.StatusAdmitted, 0, time.Minute, 2 * time.Second},
		{domain.StatusActive, 0, time.Minute, 5 * time.Second},
		{domain.StatusSoldOut, 0, time.Minute, 30 * time.Second},
		{domain.StatusClosed, 0, time.Minute, 30 * time.Second},
		{domain.StatusExpired, 0, time.Minute, 0},
		{domain.StatusLeft, 0, time.Minute, 0},
	}
	for _, c := range cases {
		require.Equal(t, c.after, pollAfter(domain.Place{Status: c.status, Rank: c.rank}, c.grace), fmt.Sprint(c))
	}
}

// T50: what one request asked for leaked into later ones through a process global.
// Many people at once each get their own place, pass and correlation id.
func TestRequestsAtTheSameTimeDoNotMix(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	const people = 40
	type result struct{ request, correlation, asked string }
	results := make(chan result, people)
	for i := range people {
		token, asked := e.person(), fmt.Sprintf("asked-%d", i)
		go func() {
			request, _ := http.NewRequestWithContext(t.Context(), "POST", e.url+show+"/admission", nil)
			request.Header.Set("Authorization", "Bearer "+token)
			request.Header.Set(headerCorrelation, asked)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				results <- result{}
				return
			}
			defer func() { _ = response.Body.Close() }()
			var place placeView
			_ = decodeAll(response.Body, &place)
			results <- result{string(place.RequestID), response.Header.Get(headerCorrelation), asked}
		}()
	}
	seen := map[string]bool{}
	for range people {
		r := <-results
		require.Equal(t, r.asked, r.correlation)
		require.NotEmpty(t, r.request)
		require.False(t, seen[r.request])
		seen[r.request] = true
	}
}
