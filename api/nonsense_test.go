package api

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/events"
)

// nonsense are bodies that no route may do anything for.
var nonsense = []string{
	``, `null`, `[]`, `"x"`, `1`, `{`, `{}{}`, `{"x":1}`, `{"seats":"A-1-1"}`, `{"seats":[1]}`, `{"seats":["` + strings.Repeat("x", 300) + `"]}`,
	`{"seats":[]}`, `{"seats":["A-1-1","A-1-1"]}`, `{"seats":["a-1-1"]}`, `{"seats":["A-1-0"]}`, `{"seats":["A--1-1"]}`, `{"seats":["A-1-99999999999999999999"]}`,
	`{"best":{}}`, `{"best":{"count":-1}}`, `{"best":{"count":2147483648}}`, `{"best":{"count":1e400}}`, `{"best":null}`,
	`{"holdId":null}`, `{"holdId":7}`, `{"holdId":""}`, `{"holdId":"h:x:y:1"}`, `{"holdId":"\u0000"}`,
	`{"title":""}`, `{"title":"` + strings.Repeat("x", 201) + `"}`, `{"title":null}`, `{"id":"../x","title":"x"}`, `{"title":"x","opensAt":"0000-00-00T00:00:00Z"}`,
	`{"title":"x","opensAt":"1999-12-31T23:59:59Z"}`, `{"title":"x","startsAt":"9999-12-31T23:59:59Z"}`, `{"title":"x","queue":{"maxActive":1e7}}`, `{"title":"x","queue":null}`, `{"title":"x","queue":[]}`,
	`{"title":"x","seating":{"sections":[{"name":"A","rows":1000,"seatsPerRow":1000,"price":1}]}}`, `{"title":"x","seating":{"sections":[{"name":"A","rows":1,"seatsPerRow":1,"price":1.001}]}}`,
	`{"title":"x","seating":{"sections":[{"name":"","rows":1,"seatsPerRow":1,"price":1}]}}`, `{"title":"x","seating":{"sections":[null]}}`,
	`{"paused":"yes"}`, `{"pause":null}`, `{"closed":1}`, `{"name":""}`, `{"name":["x"]}`, `{"name":"x","showId":"none"}`,
	`{"text":""}`, `{"text":"` + strings.Repeat("x", 2001) + `"}`, `{"upTo":0}`, `{"upTo":9223372036854775807}`, `{"upTo":9223372036854775808}`, `{"from":-1}`, `{"from":1e3}`,
	`{"stream":"commands.booking","id":"x"}`, `{"stream":"show:x","id":"1-1"}`, `{"stream":{},"id":"1-1"}`, strings.Repeat(`{"x":`, 1000),
}

// state is what everybody can see of the world of this test.
func (e *edge) state(me, show, room string) string {
	e.t.Helper()
	var all []string
	for _, path := range []string{show, show + "/seats", show + "/holds", show + "/admission", "/api/bookings", "/api/chat/rooms", room + "/messages?before=99", "/api/shows"} {
		all = append(all, string(e.call(me, "GET", path, nil).is(http.StatusOK).body))
	}
	all = append(all, string(e.call(e.operator, "GET", "/api/operator/shows", nil).is(http.StatusOK).body))
	moving := regexp.MustCompile(`"serverTime":"[^"]*"`)
	return moving.ReplaceAllString(strings.Join(all, "\n"), "")
}

// Whatever nonsense is sent to whatever route, by a person or an operator, is
// refused as the caller's fault, and nothing has changed after it.
func TestNonsenseChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		show := e.show(nil)
		me := e.inside(show)
		hold := e.hold(me, show, "A-1-1")
		room := e.newRoom(me)
		e.says(me, room, "1")
		before := e.state(me, show, room)
		routes := []struct{ token, method, path string }{
			{e.operator, "POST", "/api/shows"},
			{e.operator, "PATCH", show},
			{me, "POST", show + "/holds"},
			{me, "PUT", show + "/holds/" + hold},
			{me, "POST", show + "/bookings"},
			{me, "POST", "/api/chat/rooms"},
			{me, "POST", room + "/messages"},
			{me, "POST", room + "/read"},
			{me, "POST", room + "/unread"},
			{e.operator, "POST", "/api/operator/dead-letters"},
			{e.operator, "DELETE", "/api/operator/dead-letters"},
		}
		for _, r := range routes {
			for i, body := range nonsense {
				if means(r.path, r.method, body) {
					continue
				}
				a := e.call(r.token, r.method, r.path, body, headerKey, fmt.Sprintf("key-%d", i))
				require.GreaterOrEqual(t, a.status, 400, "%s %s %s: %s", r.method, r.path, body, a.body)
				require.Less(t, a.status, 500, "%s %s %s: %s", r.method, r.path, body, a.body)
			}
		}
		require.Equal(t, before, e.state(me, show, room))
		require.Empty(t, e.entries(events.StreamBooking, hold))
	})
}

// means tells the bodies that are nonsense elsewhere and mean something here.
func means(path, method, body string) bool {
	change := method == "PATCH"
	return change && strings.HasPrefix(body, `{"title":"x"`) && !strings.Contains(body, "At") && !strings.Contains(body, "queue") && !strings.Contains(body, "seating")
}

func TestOddPathsChangeNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me := e.person()
		odd := []string{"%00", "%ff", "..", "%2e%2e", "a%2fb", "%20", "{x}", "*", ":show", strings.Repeat("x", 5000), "'%20OR%201=1--", "%F0%9F%8E%AD", "$%7B7%7D", "A", "a_b"}
		for _, id := range odd {
			for _, r := range []struct{ method, path string }{
				{"GET", "/api/shows/%s"}, {"POST", "/api/shows/%s/admission"}, {"GET", "/api/shows/%s/admission"}, {"DELETE", "/api/shows/%s/admission"},
				{"GET", "/api/shows/%s/seats"}, {"GET", "/api/shows/%s/holds"}, {"GET", "/api/bookings/%s"}, {"DELETE", "/api/bookings/%s"},
				{"GET", "/api/chat/rooms/%s/messages"}, {"POST", "/api/chat/rooms/%s/members"}, {"DELETE", "/api/chat/rooms/%s/members"}, {"GET", "/api/chat/rooms/%s/readers?seq=1"},
			} {
				a := e.call(me, r.method, strings.ReplaceAll(r.path, "%s", id), nil)
				if r.method == "DELETE" && strings.HasSuffix(r.path, "members") && a.status == http.StatusNoContent {
					continue // leaving a chat room that is not there is no error
				}
				require.GreaterOrEqual(t, a.status, 400, "%s %s: %s", r.method, a.body, id)
				require.Less(t, a.status, 500, "%s %s: %s", r.method, a.body, id)
			}
		}
		require.Empty(t, e.call("", "GET", "/api/shows", nil).json["shows"])
	})
}
