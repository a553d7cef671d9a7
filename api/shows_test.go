package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

func TestAShowIsCreatedWithDefaultsAndReadByAnybody(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	made := e.call(e.operator, "POST", "/api/shows", object{"title": "Plain"}).is(http.StatusCreated)
	require.Equal(t, "/api/shows/"+made.text("id"), made.header.Get("Location"))
	var show showView
	made.into(&show)
	require.Equal(t, domain.DefaultQueue(), show.Queue)
	require.Equal(t, domain.DefaultSeating(), show.Seating)
	require.Equal(t, domain.PhaseOpen, show.Phase)
	require.WithinDuration(t, time.Now(), show.OpensAt, time.Minute)
	require.NotNil(t, show.Draw.Seed)
	require.Equal(t, show.Draw.SeedHash, domain.SeedHash(*show.Draw.Seed))
	require.JSONEq(t, string(made.body), string(e.call("", "GET", "/api/shows/"+made.text("id"), nil).is(http.StatusOK).body))
	listed := e.call("", "GET", "/api/shows", nil).is(http.StatusOK)
	require.Len(t, listed.json["shows"], 1)
}

func TestOnlyOperatorsCreateAndChangeShows(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	somebody := e.person()
	e.call("", "POST", "/api/shows", object{"title": "x"}).fails(http.StatusUnauthorized, codeUnauthorized)
	e.call(somebody, "POST", "/api/shows", object{"title": "x"}).fails(http.StatusForbidden, codeForbidden)
	e.call(somebody, "PATCH", show, object{"title": "x"}).fails(http.StatusForbidden, codeForbidden)
	e.call(somebody, "GET", "/api/operator/shows", nil).fails(http.StatusForbidden, codeForbidden)
}

func TestACreatedShowSaysEverythingThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	refused := e.call(e.operator, "POST", "/api/shows", object{
		"id": "Not Valid", "title": " ", "prequeueAt": "2030-01-02T00:00:00Z", "opensAt": "2030-01-01T00:00:00Z",
		"closesAt": "2029-01-01T00:00:00Z", "queue": object{"maxActive": 0, "turnSeconds": 4},
		"seating": object{"seatLimit": 101, "sections": []object{{"name": "A", "rows": 0, "seatsPerRow": 1, "price": -1}}},
	}).fails(http.StatusUnprocessableEntity, codeInvalid)
	var fields []string
	for _, p := range refused.json["problems"].([]any) {
		fields = append(fields, p.(map[string]any)["field"].(string))
	}
	require.ElementsMatch(t, []string{"id", "title", "prequeueAt", "closesAt", "queue.maxActive", "queue.turnSeconds",
		"seating.seatLimit", "seating.sections[0].rows", "seating.sections[0].price"}, fields)
	require.Empty(t, e.call("", "GET", "/api/shows", nil).json["shows"])
}

func TestAnIDIsTakenOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	id := testenv.ShowID(t)
	e.show(object{"id": id, "title": "first"})
	e.call(e.operator, "POST", "/api/shows", object{"id": id, "title": "second"}).fails(http.StatusConflict, codeShowExists)
	require.Equal(t, "first", e.call("", "GET", "/api/shows/"+string(id), nil).text("title"))
}

func TestReadOnlyFieldsOfAShowCannotBeSet(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, name := range []string{"phase", "sold", "capacity", "draw", "epoch", "revision", "availability", "drawSeed"} {
		e.call(e.operator, "POST", "/api/shows", object{"title": "x", name: 1}).fails(http.StatusBadRequest, codeUnknownField)
	}
}

// F2, F3: each save of an edited show shifted its start by the offset from UTC, or
// only one of its times.
func TestReadingAShowAndSavingItChangesNothing(t *testing.T) {
	t.Parallel()
	for _, db := range databases {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			e := newEdgeOn(t, db.url(t), testenv.RedisURL(t))
			show := e.show(object{
				"venue": "Hall", "message": "Welcome", "startsAt": "2031-03-30T02:30:00.123456789+02:00", "prequeueAt": "2031-01-01T00:00:00Z",
				"opensAt": "2031-01-01T10:00:00+05:30", "closesAt": "2031-10-26T02:30:00-04:00",
				"queue": object{"maxActive": 7},
			})
			before := e.call("", "GET", show, nil).is(http.StatusOK)
			require.Equal(t, "2031-03-30T00:30:00.123Z", before.text("startsAt"), "kept to the millisecond, in UTC")
			require.Equal(t, "2031-01-01T04:30:00Z", before.text("opensAt"))
			edit := object{}
			for _, name := range []string{"title", "venue", "message", "startsAt", "prequeueAt", "opensAt", "closesAt", "queue", "paused"} {
				edit[name] = before.json[name]
			}
			after := e.call(e.operator, "PATCH", show, edit).is(http.StatusOK)
			delete(before.json, "revision")
			delete(after.json, "revision")
			require.Equal(t, before.json, after.json)
		})
	}
}

func TestAPatchChangesWhatItNamesAndNullClears(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"venue": "Hall", "closesAt": "2100-01-01T00:00:00Z", "queue": object{"maxActive": 7, "graceSeconds": 9}})
	e.call(e.operator, "PATCH", show, object{"closesAt": nil, "queue": object{"maxActive": 8}, "seating": object{"seatLimit": 2}}).is(http.StatusOK)
	var view showView
	e.call("", "GET", show, nil).is(http.StatusOK).into(&view)
	require.Nil(t, view.ClosesAt)
	require.Equal(t, "Hall", view.Venue)
	require.Equal(t, 8, view.Queue.MaxActive)
	require.Equal(t, 9, view.Queue.GraceSeconds)
	require.Equal(t, 2, view.Seating.SeatLimit)
	require.Equal(t, int64(2), view.Revision)
	e.call(e.operator, "PATCH", show, object{"opensAt": nil}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.operator, "PATCH", show, object{"title": nil}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.operator, "PATCH", "/api/shows/none", object{"title": "x"}).fails(http.StatusNotFound, codeShowNotFound)
	e.call(e.operator, "PATCH", "/api/shows/NO%00NE", object{"title": "x"}).fails(http.StatusNotFound, codeShowNotFound)
}

// E11: a plan was edited after sales, and a sold seat disappeared from it.
func TestThePlanOfAShowNeverChanges(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	e.call(e.operator, "PATCH", show, object{"title": "new", "seating": object{"sections": []object{}}}).
		fails(http.StatusUnprocessableEntity, codeInvalid)
	var view showView
	e.call("", "GET", show, nil).into(&view)
	require.Equal(t, "A show", view.Title)
	require.Len(t, view.Seating.Sections, 1)
}

// T33: a pause was recorded but invisible to those who wait, and could not be ended.
func TestAPauseIsSeenByAllAndEnds(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.listen()
	show := e.show(object{"queue": object{"maxActive": 1}})
	e.inside(show)
	waiting := e.person()
	e.call(waiting, "POST", show+"/admission", nil).is(http.StatusCreated)
	for _, name := range []string{"pause", "paused"} {
		paused := e.call(e.operator, "PATCH", show, object{name: true, "message": "Back in five minutes"}).is(http.StatusOK)
		require.Equal(t, "PAUSED", paused.text("phase"))
		require.Equal(t, "Back in five minutes", e.call("", "GET", show, nil).text("message"))
		require.Nil(t, e.call(waiting, "GET", show+"/admission", nil).is(http.StatusOK).json["eta"], "nobody knows how long a pause takes")
		resumed := e.call(e.operator, "PATCH", show, object{name: false}).is(http.StatusOK)
		require.Equal(t, "OPEN", resumed.text("phase"))
	}
	e.call(e.operator, "PATCH", show, object{"pause": true, "paused": false}).fails(http.StatusUnprocessableEntity, codeInvalid)
	id := showID(show)
	e.hears("the show changed", func(n events.Notification) bool {
		return n.Event == events.EventShow && n.ShowID == id && n.Version == 5
	})
	require.NotEmpty(t, e.entries(events.StreamAdmission, string(id)), "an ended pause lets people in at once, not at the tick")
}

func TestClosingByHandAndOpeningAgain(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	require.Equal(t, "CLOSED", e.call(e.operator, "PATCH", show, object{"closed": true}).is(http.StatusOK).text("phase"))
	e.call(e.person(), "POST", show+"/admission", nil).fails(http.StatusConflict, codeClosed)
	require.Equal(t, "OPEN", e.call(e.operator, "PATCH", show, object{"closed": false}).is(http.StatusOK).text("phase"))
	e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
}

func TestTheSeedOfADrawIsSecretUntilTheOpening(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"prequeueAt": time.Now().Add(-time.Hour), "opensAt": time.Now().Add(time.Hour)})
	var view showView
	e.call("", "GET", show, nil).into(&view)
	require.Equal(t, domain.PhasePrequeue, view.Phase)
	require.Nil(t, view.Draw.Seed)
	// Closed by hand, it may be opened again, and its draw goes on.
	e.call(e.operator, "PATCH", show, object{"closed": true}).into(&view)
	require.Equal(t, domain.PhaseClosed, view.Phase)
	require.Nil(t, view.Draw.Seed)
	hash := view.Draw.SeedHash
	e.call(e.operator, "PATCH", show, object{"closed": false, "opensAt": time.Now().Add(-time.Minute)}).into(&view)
	require.NotNil(t, view.Draw.Seed)
	require.Equal(t, hash, domain.SeedHash(*view.Draw.Seed))
}

// A show that another process changed is seen here as soon as its notification comes.
func TestAChangeByAnotherProcessIsSeen(t *testing.T) {
	t.Parallel()
	url := sqlite(t)
	one, other := newEdgeOn(t, url, testenv.RedisURL(t)), newEdgeOn(t, url, testenv.RedisURL(t))
	other.listen()
	show := one.show(nil)
	require.Equal(t, "A show", other.call("", "GET", show, nil).text("title"))
	one.call(one.operator, "PATCH", show, object{"title": "Another"}).is(http.StatusOK)
	testenv.Eventually(t, showCacheAge/2, "the new title", func() bool {
		return other.call("", "GET", show, nil).text("title") == "Another"
	})
}

// T64: several queues at once, each on and off by itself.
func TestShowsAreApart(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	one, two := e.show(nil), e.show(nil)
	e.call(e.operator, "PATCH", one, object{"paused": true}).is(http.StatusOK)
	somebody := e.person()
	require.Equal(t, "WAITING", e.call(somebody, "POST", one+"/admission", nil).is(http.StatusCreated).text("status"))
	require.Equal(t, "ADMITTED", e.call(somebody, "POST", two+"/admission", nil).is(http.StatusCreated).text("status"))
}

// F1, F4: the start of a sale was taken in the zone of whoever typed it, or computed
// on the other side of a change of clocks. An instant always says its offset; a time
// without one is refused and never guessed.
func TestATimeWithoutAnOffsetIsRefused(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	for _, given := range []any{"2031-10-26T02:30:00", "2031-10-26", "26.10.2031 02:30", "", 1950000000} {
		e.call(e.operator, "PATCH", show, object{"closesAt": given}).fails(http.StatusBadRequest, codeMalformedBody)
	}
	// The hour that a change of clocks repeats is two instants.
	first := e.call(e.operator, "PATCH", show, object{"closesAt": "2031-10-26T02:30:00+02:00"}).is(http.StatusOK).text("closesAt")
	second := e.call(e.operator, "PATCH", show, object{"closesAt": "2031-10-26T02:30:00+01:00"}).is(http.StatusOK).text("closesAt")
	require.Equal(t, []string{"2031-10-26T00:30:00Z", "2031-10-26T01:30:00Z"}, []string{first, second})
}
