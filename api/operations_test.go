package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// recordedLog keeps what is logged.
type recordedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *recordedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *recordedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *recordedLog) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, path := range []string{"/api", "/api/", "/api/nothing", "/api/shows/", "/nothing", "/api/shows/x/y/z", "/../etc/passwd", "/.git/config", "//"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			e.call("", method, path, nil).fails(http.StatusNotFound, codeNotFound)
		}
	}
	for _, path := range []string{"/api/shows", "/healthz", "/api/bookings"} {
		refused := e.call("", "PUT", path, nil).fails(http.StatusMethodNotAllowed, codeMethodNotAllowed)
		require.Contains(t, refused.header.Get("Allow"), "GET")
	}
}

// HEAD was refused where GET is answered. It is the same answer without its body, and
// shows nobody anything: what is read by looking is not read by it.
func TestHeadIsGetWithoutItsBody(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	room := e.call(me, "POST", "/api/chat/rooms", object{"name": "A room"}).is(http.StatusCreated).text("id")
	friend := e.person()
	e.call(friend, "POST", "/api/chat/rooms/"+room+"/members", nil).is(http.StatusNoContent)
	e.call(me, "POST", "/api/chat/rooms/"+room+"/messages", object{"text": "hello"}).is(http.StatusCreated)
	for path, token := range map[string]string{
		"/api/shows": "", show: "", show + "/admission": me, show + "/seats": me, show + "/holds": me, "/api/bookings": me, "/api/bookings/none": me,
		"/api/chat/rooms/" + room + "/messages": friend, "/api/operator/shows": e.operator, "/healthz": "", "/metrics": "", "/openapi.yaml": "", "/api/nothing": "",
	} {
		head, get := e.call(token, "HEAD", path, nil), e.call(token, "GET", path, nil)
		require.Equal(t, get.status, head.status, path)
		require.Equal(t, get.header.Get("Content-Type"), head.header.Get("Content-Type"), path)
		require.Empty(t, head.body, path)
	}
	e.call(me, "HEAD", show+"/admission/claim", nil).is(http.StatusMethodNotAllowed)
	e.call(me, "HEAD", show+"/admission/stream", nil).is(http.StatusMethodNotAllowed)
}

func TestHeadMarksNothingAsRead(t *testing.T) {
	t.Parallel()
	redisServer := testenv.StartRedis(t)
	e := newEdgeOn(t, sqlite(t), redisServer.URL)
	me := e.person()
	room := e.call(me, "POST", "/api/chat/rooms", object{"name": "A room"}).is(http.StatusCreated).text("id")
	e.call(me, "POST", "/api/chat/rooms/"+room+"/messages", object{"text": "hello"}).is(http.StatusCreated)
	marks := func() int64 { return e.rdb.XLen(t.Context(), events.StreamChatRead).Val() }
	before := marks()
	e.call(me, "HEAD", "/api/chat/rooms/"+room+"/messages", nil).is(http.StatusOK)
	e.call(me, "GET", "/api/chat/rooms/"+room+"/messages", nil).is(http.StatusOK)
	testenv.Eventually(t, 10*time.Second, "what GET has shown is marked", func() bool { return marks() > before })
	require.Equal(t, before+1, marks())
}

func TestTheCorrelationIDIsTakenOnlyWhenHarmless(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	require.Equal(t, "abc-123_x.y", e.call("", "GET", "/healthz", nil, headerCorrelation, "abc-123_x.y").header.Get(headerCorrelation))
	for _, id := range []string{"", "a b", `a"b`, strings.Repeat("x", 129), "<script>", "é"} {
		made := e.call("", "GET", "/healthz", nil, headerCorrelation, id).header.Get(headerCorrelation)
		require.NotEqual(t, id, made)
		require.True(t, plain(made, maxCorrelationBytes))
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, path := range []string{"/healthz", "/api/shows", "/nothing"} {
		h := e.call("", "GET", path, nil).header
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "DENY", h.Get("X-Frame-Options"))
		require.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
	require.Equal(t, "no-store", e.call("", "GET", "/api/shows", nil).header.Get("Cache-Control"))
}

// T52: a list of allowed names was searched so that a pattern matched anything.
func TestOnlyAllowedOriginsMayCall(t *testing.T) {
	t.Parallel()
	e := newEdge(t, func(c *Config, _ *Deps) { c.AllowedOrigins = []string{"https://tickets.example"} })
	allowed := func(origin string) string {
		return e.call("", "GET", "/api/shows", nil, "Origin", origin).header.Get("Access-Control-Allow-Origin")
	}
	require.Equal(t, "https://tickets.example", allowed("https://tickets.example"))
	for _, origin := range []string{"https://evil.example", "https://tickets.example.evil.example", "http://tickets.example", "null", "https://ticketsXexample"} {
		require.Empty(t, allowed(origin), origin)
	}
	preflight := e.call("", "OPTIONS", "/api/shows", nil, "Origin", "https://tickets.example", "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusNoContent, preflight.status)
	require.Contains(t, preflight.header.Get("Access-Control-Allow-Headers"), headerKey)
	require.Empty(t, preflight.header.Get("Access-Control-Allow-Credentials"), "identity is never a cookie")
}

func TestReadinessSaysWhatFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("no route to 10.0.0.7")
	failing := map[string]func(context.Context) error{"redis": func(context.Context) error { return nil }, "database": func(context.Context) error { return broken }}
	e := newEdge(t, func(_ *Config, d *Deps) { d.Ready = failing })
	refused := e.call("", "GET", "/readyz", nil).fails(http.StatusServiceUnavailable, codeUnavailable)
	require.Equal(t, object{"redis": "ok", "database": "failing", "notifications": "failing", "serving": "ok"}, refused.json["checks"])
	require.NotContains(t, string(refused.body), "10.0.0.7")
	e.call("", "GET", "/healthz", nil).is(http.StatusOK)
	good := newEdge(t)
	good.call("", "GET", "/readyz", nil).fails(http.StatusServiceUnavailable, codeUnavailable)
	good.listen()
	require.Equal(t, "ready", good.call("", "GET", "/readyz", nil).is(http.StatusOK).text("status"))
}

func TestRequestsAreCountedByRouteAndNeverByPath(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	e.call("", "GET", show, nil).is(http.StatusOK)
	e.call("", "GET", "/api/shows/none", nil)
	e.call("", "GET", "/wp-login.php", nil)
	e.call("", "BREW", "/api/shows", nil)
	text := string(e.call("", "GET", "/metrics", nil).is(http.StatusOK).body)
	require.Contains(t, text, `foyer_http_requests_total{method="GET",route="/api/shows/:show",status="200"} 1`)
	require.Contains(t, text, `foyer_http_requests_total{method="GET",route="/api/shows/:show",status="404"} 1`)
	require.Contains(t, text, `route="other"`)
	require.Contains(t, text, `method="other"`)
	require.NotContains(t, text, string(showID(show)))
	require.NotContains(t, text, "wp-login")
}

func TestPagesAreServedAndAskedForAgain(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html>front")}, "show.html": {Data: []byte("<!doctype html>show")},
		"js/app.js": {Data: []byte("export {}")}, "css/app.css": {Data: []byte("body{}")},
	}
	e := newEdge(t, func(_ *Config, d *Deps) { d.Web = files })
	get := func(method, path string, headers ...string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), method, e.url+path, nil)
		require.NoError(t, err)
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	kinds := map[string]string{"/": "text/html", "/index.html": "text/html", "/show": "text/html", "/show?id=x": "text/html", "/js/app.js": "text/javascript", "/css/app.css": "text/css"}
	for path, kind := range kinds {
		page := get("GET", path)
		require.Equal(t, http.StatusOK, page.StatusCode, path)
		require.True(t, strings.HasPrefix(page.Header.Get("Content-Type"), kind), path)
		require.Equal(t, "no-cache", page.Header.Get("Cache-Control"))
		again := get("GET", path, "If-None-Match", page.Header.Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.StatusCode, path)
		require.Equal(t, http.StatusOK, get("HEAD", path).StatusCode)
	}
	for _, path := range []string{"/js", "/js/", "/absent.js", "/show.txt", "/js/../../etc/passwd"} {
		require.Equal(t, http.StatusNotFound, get("GET", path).StatusCode, path)
	}
}

func TestDeadLettersAreListedRequeuedAndDropped(t *testing.T) {
	t.Parallel()
	redisServer := testenv.StartRedis(t)
	e := newEdgeOn(t, sqlite(t), redisServer.URL)
	var ids []string
	for range 2 {
		id, err := e.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: events.StreamBooking + ".dead", Values: map[string]any{
			"id": "c1", "type": "BOOK_SEATS", "version": "1", "payload": "{}", "dead.origin": "1-1", "dead.reason": "gave up",
			"dead.deliveries": "5", "dead.first_error": "a", "dead.last_error": "b",
		}}).Result()
		require.NoError(t, err)
		ids = append(ids, id)
	}
	list := func(query string) []any {
		return e.call(e.operator, "GET", "/api/operator/dead-letters"+query, nil).is(http.StatusOK).json["deadLetters"].([]any)
	}
	require.Len(t, list(""), 2)
	require.Len(t, list("?stream="+events.StreamBooking+"&limit=1"), 1)
	require.Empty(t, list("?stream="+events.StreamAdmission))
	e.call(e.operator, "GET", "/api/operator/dead-letters?stream=show:x", nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	name := func(i int) object { return object{"stream": events.StreamBooking, "id": ids[i]} }
	e.call(e.person(), "POST", "/api/operator/dead-letters", name(0)).fails(http.StatusForbidden, codeForbidden)
	e.call(e.operator, "POST", "/api/operator/dead-letters", name(0)).is(http.StatusNoContent)
	e.call(e.operator, "DELETE", "/api/operator/dead-letters", name(1)).is(http.StatusNoContent)
	require.Empty(t, list(""))
	var audit struct{ Actions []actionView }
	e.call(e.operator, "GET", "/api/operator/dead-letters/audit?limit=2", nil).is(http.StatusOK).into(&audit)
	require.Len(t, audit.Actions, 2, "who did what is written down")
	require.Equal(t, domain.ActionDropLetter, audit.Actions[0].Action)
	require.Equal(t, domain.ActionRequeueLetter, audit.Actions[1].Action)
	require.JSONEq(t, `{"stream":"commands.booking","id":"`+ids[0]+`","commandId":"c1","type":"BOOK_SEATS","reason":"gave up"}`, string(audit.Actions[1].Detail))
	require.JSONEq(t, `{"done":true}`, string(audit.Actions[1].Outcome))
	require.True(t, strings.HasPrefix(string(audit.Actions[1].Operator), "op-"))
	e.call(e.operator, "GET", "/api/operator/dead-letters/audit?before="+audit.Actions[1].ID, nil).is(http.StatusOK).into(&audit)
	require.Empty(t, audit.Actions)
	e.call(e.person(), "GET", "/api/operator/dead-letters/audit", nil).fails(http.StatusForbidden, codeForbidden)
	for _, nothing := range []object{{}, {"stream": events.StreamBooking}, {"id": ids[0]}} {
		e.call(e.operator, "POST", "/api/operator/dead-letters", nothing).fails(http.StatusBadRequest, codeMalformedBody)
		e.call(e.operator, "DELETE", "/api/operator/dead-letters", nothing).fails(http.StatusBadRequest, codeMalformedBody)
	}
	require.Len(t, e.entries(events.StreamBooking, "c1"), 1, "the requeued one is back")
	e.call(e.operator, "POST", "/api/operator/dead-letters", name(0)).fails(http.StatusNotFound, codeDeadLetterNotFound)
	e.call(e.operator, "DELETE", "/api/operator/dead-letters", object{"stream": "show:x", "id": "1-1"}).fails(http.StatusNotFound, codeDeadLetterNotFound)
}

func TestAnOperatorSeesLiveNumbers(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"maxActive": 1}})
	me := e.inside(show)
	e.hold(me, show, "A-1-1")
	e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	live := e.call(e.operator, "GET", "/api/operator/shows/"+string(showID(show)), nil).is(http.StatusOK)
	for name, number := range map[string]int64{"waiting": 1, "active": 1, "held": 1, "sold": 0, "capacity": 10, "joined": 2, "maxActive": 1} {
		require.Equal(t, number, live.number(name), name)
	}
	listed := e.call(e.operator, "GET", "/api/operator/shows", nil).is(http.StatusOK)
	require.Len(t, listed.json["shows"], 1)
	e.call(e.operator, "GET", "/api/operator/shows/none", nil).fails(http.StatusNotFound, codeShowNotFound)
}

// A stop says "not ready", lets requests finish, and leaves nothing running.
func TestServingStopsGracefully(t *testing.T) {
	e := newEdge(t)
	before := goleak.IgnoreCurrent()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.server.Serve(ctx, listener) }()
	url := "http://" + listener.Addr().String()
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Get(url + "/healthz")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	stop()
	require.NoError(t, <-done)
	_, err = client.Get(url + "/healthz")
	require.Error(t, err)
	client.CloseIdleConnections()
	checks, ready := e.server.runChecks(t.Context())
	require.False(t, ready)
	require.Equal(t, checkFailing, checks["serving"])
	goleak.VerifyNone(t, before)
}

func TestSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]Config{
		"no way to identify": {SigningKey: make([]byte, 32)},
		"no signing key":     {JWTSecret: []byte("x")},
		"absent JWKS file":   {JWKS: "/nowhere/jwks.json", SigningKey: make([]byte, 32)},
	} {
		_, err := New(config, Deps{})
		require.Error(t, err, name)
	}
}

// TestTheWireIsStable pins the documents that other programs parse.
func TestTheWireIsStable(t *testing.T) {
	t.Parallel()
	p := newProblem(409, codeLimitReached, "Seat limit reached", "limit of 4 seats reached, 3 in use").with("limit", 4).with("used", 3)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"urn:foyer:problem:limit-reached","title":"Seat limit reached","status":409,
		"detail":"limit of 4 seats reached, 3 in use","code":"LIMIT_REACHED","limit":4,"used":3}`, string(text))
}
