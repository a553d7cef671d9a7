package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// A draw that only the organiser can check is a promise. Here somebody who has nothing
// but what everybody can read recomputes it, in their own words.
func TestAnybodyCanRecomputeTheDraw(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	closes := time.Now().Add(1500 * time.Millisecond).UTC().Truncate(time.Millisecond)
	show := e.show(object{"prequeueAt": closes.Add(-time.Hour), "opensAt": closes.Add(-time.Second), "queue": object{"maxActive": 3, "lateJoinSeconds": 1}})
	public := e.call("", "GET", show, nil).json["draw"].(object)
	require.Nil(t, public["seed"])
	require.Equal(t, closes.Format(time.RFC3339Nano), public["closesAt"])

	people, requests := map[string]string{}, []string{}
	for range 20 {
		token := e.person()
		place := e.call(token, "POST", show+"/admission", nil).is(http.StatusCreated)
		require.NotContains(t, place.json, "draw", "nobody is told anything while the draw is open")
		people[place.text("requestId")] = token
		requests = append(requests, place.text("requestId"))
	}
	e.call("", "GET", show+"/draw", nil).fails(http.StatusConflict, codeDrawOpen)
	e.call(people[requests[0]], "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	testenv.Eventually(t, soon, "the draw closes", func() bool { return e.call("", "GET", show+"/draw", nil).status == http.StatusOK })
	e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)

	var told []object
	for len(told) < len(requests) {
		page := e.call("", "GET", fmt.Sprintf("%s/draw?after=%d&limit=7", show, len(told)), nil).is(http.StatusOK)
		require.Equal(t, public["seedHash"], page.text("seedHash"), "the seed was fixed before anybody joined")
		require.EqualValues(t, len(requests), page.number("total"))
		for _, entry := range page.json["entries"].([]any) {
			told = append(told, entry.(object))
		}
	}
	seed, err := hex.DecodeString(e.call("", "GET", show+"/draw", nil).text("seed"))
	require.NoError(t, err)
	require.Equal(t, public["seedHash"], fmt.Sprintf("%x", sha256.Sum256(seed)))
	score := func(request string) uint64 {
		mac := hmac.New(sha256.New, seed)
		mac.Write([]byte(request))
		return binary.BigEndian.Uint64(mac.Sum(nil))>>24 + 1
	}
	slices.SortFunc(requests, func(a, b string) int { return int(int64(score(a)) - int64(score(b))) })
	for i, request := range requests {
		require.Equal(t, request, told[i]["requestId"])
		require.EqualValues(t, i+1, told[i]["place"])
		require.EqualValues(t, score(request), told[i]["score"])
		own := e.call(people[request], "GET", show+"/admission", nil).is(http.StatusOK)
		require.Equal(t, object{"score": float64(score(request)), "place": float64(i + 1)}, own.json["draw"], "a person has the proof of their own")
	}
	late := e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	require.NotContains(t, late.json, "draw", "who came later was not drawn")
	require.Empty(t, e.call("", "GET", show+"/draw?after=99", nil).is(http.StatusOK).json["entries"])
	e.call("", "GET", show+"/draw?limit=0", nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call("", "GET", "/api/shows/none/draw", nil).fails(http.StatusNotFound, codeShowNotFound)
}

// Once the seed is known a draw must not open again: whoever joined then could tell
// their place before they join.
func TestAClosedDrawDoesNotOpenAgain(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	now := time.Now()
	drawn := e.show(object{"prequeueAt": now.Add(-time.Hour), "opensAt": now.Add(-time.Minute)})
	for _, change := range []object{
		{"opensAt": now.Add(time.Hour)},
		{"queue": object{"lateJoinSeconds": 3600}},
		{"opensAt": now.Add(time.Hour), "prequeueAt": nil},
	} {
		e.call(e.operator, "PATCH", drawn, change).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
	e.call(e.operator, "PATCH", drawn, object{"title": "Another"}).is(http.StatusOK)

	plain := e.show(object{"opensAt": now.Add(-time.Minute)})
	before := e.call("", "GET", plain, nil).json["draw"].(object)
	require.NotNil(t, before["seed"])
	after := e.call(e.operator, "PATCH", plain, object{"opensAt": now.Add(time.Hour), "prequeueAt": now.Add(time.Minute)}).is(http.StatusOK).json["draw"].(object)
	require.Nil(t, after["seed"])
	require.NotEqual(t, before["seedHash"], after["seedHash"], "the known seed is not used")
}

// Where people have joined in the order in which they came, a draw that begins afterwards
// put everybody who was drawn before them, and whoever had left and came back stood in it
// without having taken part. Moving the opening alone passes nobody; a reset draws.
func TestADrawDoesNotBeginWhereSomebodyWaits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	now := time.Now()
	show := e.show(object{"opensAt": now.Add(-time.Minute), "queue": object{"maxActive": 1}})
	first, second := e.person(), e.person()
	e.call(first, "POST", show+"/admission", nil).is(http.StatusCreated)
	e.call(second, "POST", show+"/admission", nil).is(http.StatusCreated)
	drawn := object{"opensAt": now.Add(time.Hour), "prequeueAt": now.Add(-time.Second)}
	e.call(e.operator, "PATCH", show, drawn).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.operator, "PATCH", show, object{"queue": object{"lateJoinSeconds": 3600}}).fails(http.StatusUnprocessableEntity, codeInvalid)

	e.call(e.operator, "PATCH", show, object{"opensAt": now.Add(time.Hour)}).is(http.StatusOK)
	e.call(e.operator, "PATCH", show, object{"prequeueAt": now.Add(-time.Second)}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.operator, "PATCH", show, object{"opensAt": now.Add(-time.Second)}).is(http.StatusOK)
	require.EqualValues(t, 1, e.call(second, "GET", show+"/admission", nil).is(http.StatusOK).json["rank"])

	e.call(e.operator, "POST", strings.Replace(show, "/api", "/api/operator", 1)+"/reset", drawn).is(http.StatusOK)
	require.Equal(t, "PREQUEUE", e.call(first, "POST", show+"/admission", nil).is(http.StatusCreated).json["status"])
}

// A process that has not heard of a reset yet drew places by the seed of before, which
// everybody knew. It finds out from the step that would give the place.
func TestNobodyIsDrawnByASeedThatIsKnown(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	now := time.Now()
	show := e.show(object{"prequeueAt": now.Add(-time.Hour), "opensAt": now.Add(-time.Minute)})
	id := domain.ShowID(show[strings.LastIndexByte(show, '/')+1:])
	known := e.call("", "GET", show, nil).is(http.StatusOK).json["draw"].(object)["seed"]
	require.NotNil(t, known)
	// Another process resets the show; this one hears nothing of it.
	desk := *e.server.newDesk()
	_, err := desk.Reset(t.Context(), "olga", id, struct{}{}, func(s *domain.Show) error {
		s.OpensAt = now.Add(time.Hour).UTC()
		return nil
	})
	require.NoError(t, err)
	e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)

	reset, err := e.store.Show(t.Context(), id)
	require.NoError(t, err)
	require.NotEqual(t, known, reset.DrawSeed)
	drawn, err := e.steps.Drawn(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, drawn.Waiting, 1)
	for request, score := range drawn.Waiting {
		require.Equal(t, domain.DrawScore(reset.DrawSeed, request), score)
	}
}
