package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

func str(n int64) string { return strconv.FormatInt(n, 10) }

// onBoth runs a test on every kind of database.
func onBoth(t *testing.T, run func(t *testing.T, e *edge)) {
	t.Helper()
	for _, db := range databases {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			run(t, newEdgeOn(t, db.url(t), testenv.RedisURL(t)))
		})
	}
}

// B12: choosing the best seats again at checkout sold other seats than those shown.
// A booking takes exactly the seats of its hold.
func TestABookingTakesTheSeatsOfItsHold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		hold := e.call(me, "POST", show+"/holds", object{"best": object{"count": 3}}).is(http.StatusCreated)
		pending := e.call(me, "POST", show+"/bookings", object{"holdId": hold.text("holdId")}, headerKey, "k1").is(http.StatusAccepted)
		require.Equal(t, "PENDING", pending.text("status"))
		require.Equal(t, hold.json["seats"], pending.json["seats"])
		require.Equal(t, 76.5, pending.json["price"])
		id := pending.text("bookingId")
		require.Equal(t, "/api/bookings/"+id, pending.header.Get("Location"))
		commands := e.entries(events.StreamBooking, id)
		require.Len(t, commands, 1)
		require.Equal(t, pending.text("commandId"), commands[0].Values["id"])
		e.decide(id)
		confirmed := e.call(me, "GET", "/api/bookings/"+id, nil).is(http.StatusOK)
		require.Equal(t, "CONFIRMED", confirmed.text("status"))
		require.NotNil(t, confirmed.json["decidedAt"])
		require.Equal(t, int64(3), e.call("", "GET", show, nil).number("sold"))
		require.Equal(t, "LEFT", e.call(me, "GET", show+"/admission", nil).text("status"), "a booking ends its person's session")
	})
}

// G7: a double click, or a retry after a lost answer, booked twice.
func TestTheSameKeyIsTheSameBooking(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		hold := e.hold(me, show, "A-1-1", "A-1-2")
		id := e.book(me, show, hold, "k1")
		require.Equal(t, id, e.book(me, show, hold, "k1"))
		commands := e.entries(events.StreamBooking, id)
		for _, command := range commands {
			require.Equal(t, commands[0].Values["id"], command.Values["id"], "every repeat is the same command")
		}
		require.Equal(t, id, e.book(me, show, hold, "k2"), "a hold is one intent, whatever its key")
		e.decide(id)
		require.Equal(t, id, e.book(me, show, hold, "k1"))
		require.Equal(t, id, e.book(me, show, hold, "k3"), "the hold is gone; its booking is found")
		require.Len(t, e.call(me, "GET", "/api/bookings", nil).is(http.StatusOK).json["bookings"], 1)
	})
}

func TestAKeyMeansOneRequest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me, other := e.inside(show), e.inside(show)
		one, two := e.hold(me, show, "A-1-1"), e.hold(me, show, "A-1-2")
		e.book(me, show, one, "k1")
		e.call(me, "POST", show+"/bookings", object{"holdId": two}, headerKey, "k1").
			fails(http.StatusUnprocessableEntity, codeIdempotencyMismatch)
		all, _ := states(e.call(me, "GET", show+"/seats", nil))
		require.Equal(t, "HELD", all["A-1-2"], "the other hold is as it was")
		e.call(me, "DELETE", show+"/holds/"+two, nil).is(http.StatusNoContent)
		e.book(other, show, e.hold(other, show, "A-2-1"), "k1") // another person's key is another key
	})
}

// G6: the same request twice at once. One is handled; the other is told to wait or
// gets the same booking; there is one effect.
func TestTheSameKeyTwiceAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		hold := e.hold(me, show, "A-1-1")
		const times = 8
		answers := make([]answer, times)
		var asking sync.WaitGroup
		for i := range answers {
			asking.Go(func() {
				request, _ := http.NewRequestWithContext(t.Context(), "POST", e.url+show+"/bookings", strings.NewReader(`{"holdId":"`+hold+`"}`))
				request.Header.Set("Authorization", "Bearer "+me)
				request.Header.Set(headerKey, "k1")
				answers[i] = e.send(request)
			})
		}
		asking.Wait()
		ids := map[string]bool{}
		for _, a := range answers {
			if a.status == http.StatusConflict {
				a.fails(http.StatusConflict, codeInProgress)
				require.Equal(t, "1", a.header.Get("Retry-After"))
				continue
			}
			ids[a.is(http.StatusAccepted).text("bookingId")] = true
		}
		require.Len(t, ids, 1)
		require.Len(t, e.call(me, "GET", "/api/bookings", nil).json["bookings"], 1)
	})
}

// G8: a header that was sent twice, or joined by a proxy, became another key.
func TestTheKeyIsOneHeader(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	body := object{"holdId": e.hold(me, show, "A-1-1")}
	path := show + "/bookings"
	e.call(me, "POST", path, body).fails(http.StatusBadRequest, codeKeyRequired)
	e.call(me, "POST", path, body, headerKey, "").fails(http.StatusBadRequest, codeKeyRequired)
	e.call(me, "POST", path, body, headerKey, "k1", headerKey, "k1").fails(http.StatusBadRequest, codeKeyRepeated)
	e.call(me, "POST", path, body, headerKey, "k1, k1").fails(http.StatusBadRequest, codeKeyRepeated)
	e.call(me, "POST", path, body, headerKey, strings.Repeat("k", 256)).fails(http.StatusBadRequest, codeKeyRequired)
	e.call(me, "POST", path, body, headerKey, "k y").fails(http.StatusBadRequest, codeKeyRequired)
	require.Empty(t, e.call(me, "GET", "/api/bookings", nil).json["bookings"])
}

// B13, E2: a rule held when seats were put aside and not when they were booked. One
// picture of the show judges every step.
func TestEveryStepOfASaleAsksTheSameRules(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	hold := e.hold(me, show, "A-1-1")
	e.call(e.operator, "PATCH", show, object{"closed": true}).is(http.StatusOK)
	steps := map[string]answer{
		"hold":   e.call(me, "POST", show+"/holds", object{"seats": []string{"A-1-2"}}),
		"best":   e.call(me, "POST", show+"/holds", object{"best": object{"count": 1}}),
		"swap":   e.call(me, "PUT", show+"/holds/"+hold, object{"seats": []string{"A-1-2"}}),
		"extend": e.call(me, "POST", show+"/holds/"+hold+"/extend", nil),
		"book":   e.call(me, "POST", show+"/bookings", object{"holdId": hold}, headerKey, "k1"),
	}
	for step, a := range steps {
		require.Equal(t, http.StatusConflict, a.status, "%s: %s", step, a.body)
		require.Equal(t, codeClosed, a.json["code"], step)
	}
	require.Empty(t, e.call(me, "GET", "/api/bookings", nil).json["bookings"])
}

// I5: who booked before the hold was made was told nothing useful.
func TestBookingsThatCannotBe(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me, thief := e.inside(show), e.inside(show)
	hold := e.hold(me, show, "A-1-1")
	ask := func(token, show string, body any) answer {
		return e.call(token, "POST", show+"/bookings", body, headerKey, domain.NewID())
	}
	ask(me, show, object{"holdId": "none"}).fails(http.StatusNotFound, codeHoldNotFound)
	ask(me, show, object{"holdId": ""}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, show, object{}).fails(http.StatusUnprocessableEntity, codeInvalid)
	ask(me, show, object{"holdId": hold, "seats": []string{"A-1-1"}}).fails(http.StatusBadRequest, codeUnknownField)
	ask(thief, show, object{"holdId": hold}).fails(http.StatusNotFound, codeHoldNotFound)
	ask(me, e.show(nil), object{"holdId": hold}).fails(http.StatusNotFound, codeHoldNotFound)
	ask(me, "/api/shows/none", object{"holdId": hold}).fails(http.StatusNotFound, codeShowNotFound)
	id := e.book(me, show, hold, "k1")
	ask(thief, show, object{"holdId": hold}).fails(http.StatusNotFound, codeHoldNotFound)
	e.decide(id)
	ask(thief, show, object{"holdId": hold}).fails(http.StatusNotFound, codeHoldNotFound)
	e.call(thief, "GET", "/api/bookings/"+id, nil).fails(http.StatusNotFound, codeBookingNotFound)
	e.call(thief, "DELETE", "/api/bookings/"+id, nil).fails(http.StatusNotFound, codeBookingNotFound)
	e.call(me, "GET", "/api/bookings/none", nil).fails(http.StatusNotFound, codeBookingNotFound)
	e.call(me, "GET", "/api/bookings/no%00ne", nil).fails(http.StatusNotFound, codeBookingNotFound)
	require.Equal(t, id, e.call(e.operator, "GET", "/api/bookings/"+id, nil).is(http.StatusOK).text("bookingId"))
}

// A hold that is being booked can neither be given back nor changed.
func TestAHoldThatIsBeingBookedStays(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	hold := e.hold(me, show, "A-1-1")
	e.book(me, show, hold, "k1")
	path := show + "/holds/" + hold
	e.call(me, "DELETE", path, nil).fails(http.StatusConflict, codeInProgress)
	e.call(me, "PUT", path, object{"seats": []string{"A-1-2"}}).fails(http.StatusConflict, codeInProgress)
}

func ids(bookings []domain.Booking) (all []domain.BookingID) {
	for _, b := range bookings {
		all = append(all, b.BookingID)
	}
	return all
}

func TestCancelling(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		id := e.book(me, show, e.hold(me, show, "A-1-1"), "k1")
		pending := e.call(me, "DELETE", "/api/bookings/"+id, nil).fails(http.StatusConflict, codeInProgress)
		require.NotEmpty(t, pending.header.Get("Retry-After"))
		e.decide(id)
		for range 2 {
			require.Equal(t, "CONFIRMED", e.call(me, "DELETE", "/api/bookings/"+id, nil).is(http.StatusAccepted).text("status"))
		}
		asked, err := e.store.Cancellations(t.Context(), 0, 100)
		require.NoError(t, err)
		require.Contains(t, ids(asked), domain.BookingID(id), "what was accepted is recorded, whatever becomes of its command")
		commands := e.entries(events.StreamBooking, "cancel-"+id)
		require.Len(t, commands, 2)
		_, err = e.store.CancelBooking(t.Context(), domain.CommandID("cancel-"+id), domain.BookingID(id))
		require.NoError(t, err)
		require.Equal(t, "CANCELLED", e.call(me, "DELETE", "/api/bookings/"+id, nil).is(http.StatusAccepted).text("status"))
	})
}

func TestARejectedBookingNamesItsConflictsAndHasNothingToCancel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		id := e.book(me, show, e.hold(me, show, "A-1-1", "A-1-2"), "k1")
		// A hold is advice. That Redis lost this one must not sell a seat twice.
		e.loseRedis(show)
		other := e.inside(show)
		e.decide(e.book(other, show, e.hold(other, show, "A-1-2"), "k1"))
		e.decide(id)
		rejected := e.call(me, "GET", "/api/bookings/"+id, nil).is(http.StatusOK)
		require.Equal(t, "REJECTED", rejected.text("status"))
		require.Equal(t, "SEAT_UNAVAILABLE", rejected.text("reason"))
		require.Equal(t, []any{"A-1-2"}, rejected.json["conflicts"])
		e.call(me, "DELETE", "/api/bookings/"+id, nil).fails(http.StatusConflict, codeNotCancellable)
	})
}

func TestBookingsArePaged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		var made []string
		for _, seat := range []string{"A-1-1", "A-1-2", "A-1-3"} {
			made = append(made, e.book(me, show, e.hold(me, show, seat), "key-"+seat))
		}
		var seen []string
		path := "/api/bookings?limit=2"
		for path != "" {
			page := e.call(me, "GET", path, nil).is(http.StatusOK)
			for _, b := range page.json["bookings"].([]any) {
				seen = append(seen, b.(map[string]any)["bookingId"].(string))
			}
			path = ""
			if next, ok := page.json["next"].(string); ok {
				path = "/api/bookings?limit=2&before=" + next
			}
		}
		require.Equal(t, []string{made[2], made[1], made[0]}, seen)
		for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?before=%00"} {
			e.call(me, "GET", "/api/bookings"+query, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
		}
	})
}
