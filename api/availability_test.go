package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// decided is one buyer's whole way to seats, decided as a worker would.
func (e *edge) decided(show string, seats ...string) (booking string) {
	e.t.Helper()
	me := e.inside(show)
	booking = e.book(me, show, e.hold(me, show, seats...), domain.NewID())
	e.decide(booking)
	return booking
}

// D5: a list said "available" for minutes after the last seat was sold, because it was
// kept. Here what is sold is asked each time: every process and every answer says it at
// once, and takes it back at once.
func TestD5EveryListSaysSoldOutAtOnce(t *testing.T) {
	t.Parallel()
	database := testenv.DatabaseURL(t)
	here, there := newEdgeOn(t, database, testenv.RedisURL(t)), newEdgeOn(t, database, testenv.RedisURL(t))
	show := here.show(object{"seating": object{"sections": []object{{"name": "A", "rows": 1, "seatsPerRow": 2, "price": 10}}}})
	requireEverywhere := func(availability string, sold float64) {
		for _, e := range []*edge{here, there} {
			listed := e.call("", "GET", "/api/shows", nil).is(http.StatusOK).json["shows"].([]any)
			require.Len(t, listed, 1)
			for _, told := range []object{listed[0].(object), e.call("", "GET", show, nil).is(http.StatusOK).json} {
				require.Equal(t, availability, told["availability"])
				require.Equal(t, sold, told["sold"])
			}
		}
	}
	requireEverywhere("AVAILABLE", 0)
	here.decided(show, "A-1-1")
	requireEverywhere("AVAILABLE", 1)
	last := there.decided(show, "A-1-2")
	requireEverywhere("SOLD_OUT", 2)
	b, err := here.store.CancelBooking(t.Context(), domain.CommandID("cancel-"+last), domain.BookingID(last))
	require.NoError(t, err)
	_, err = here.steps.CancelBooking(t.Context(), b)
	require.NoError(t, err)
	requireEverywhere("AVAILABLE", 1)
}

// D9: kinds of tickets that share seats were counted each by itself, and their sum was
// more than the hall. Here there is one pool, the seats; sections are parts of it.
func TestD9AvailabilityIsOfTheSeatsAndNotOfTheirKinds(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"seating": object{"sections": []object{
		{"name": "A", "rows": 1, "seatsPerRow": 1, "price": 50}, {"name": "B", "rows": 1, "seatsPerRow": 2, "price": 10},
	}}})
	requireState := func(availability string, sold int64) {
		told := e.call("", "GET", show, nil).is(http.StatusOK)
		require.Equal(t, availability, told.text("availability"))
		require.Equal(t, sold, told.number("sold"))
		require.EqualValues(t, 3, told.number("capacity"))
	}
	e.decided(show, "A-1-1")
	requireState("AVAILABLE", 1)
	me := e.inside(show)
	e.call(me, "POST", show+"/holds", object{"best": object{"count": 1, "section": "A"}}).fails(http.StatusConflict, codeNoBlock)
	e.hold(me, show, "B-1-1", "B-1-2")
	requireState("ALL_HELD", 1)
	e.call(e.inside(show), "POST", show+"/holds", object{"best": object{"count": 1}}).fails(http.StatusConflict, codeNoBlock)
	for _, held := range e.call(me, "GET", show+"/holds", nil).json["holds"].([]any) {
		e.decide(e.book(me, show, held.(object)["holdId"].(string), "k"))
	}
	requireState("SOLD_OUT", 3)
}

// G9: somebody joined twice, as mail and as mail+alias. Who is who is the identity
// provider's word: the token's sub, to the byte. The same sub is one person, whatever
// else the tokens say; two subs are two people, however alike.
func TestG9APersonIsTheSubOfTheToken(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	ada := "ada-" + domain.NewID() + "@example.org"
	place := e.call(e.token(ada), "POST", show+"/admission", nil).is(http.StatusCreated)
	again := e.call(e.token(ada, "member"), "POST", show+"/admission", nil).is(http.StatusOK)
	require.Equal(t, place.text("requestId"), again.text("requestId"))
	for _, alike := range []string{"A" + ada[1:], ada + " ", "+" + ada} {
		other := e.call(e.token(alike), "POST", show+"/admission", nil).is(http.StatusCreated)
		require.NotEqual(t, place.text("requestId"), other.text("requestId"), alike)
	}
	live := e.call(e.operator, "GET", "/api/operator/shows/"+string(showID(show)), nil).is(http.StatusOK)
	require.EqualValues(t, 4, live.number("joined"))
}
