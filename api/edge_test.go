package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
	"foyer/store"
)

const testSecret = "a secret that only tests know"

// soon is the patience of tests with what follows behind an answer.
const soon = 10 * time.Second

// edge is the HTTP half on a real Redis and a real database, without workers: a
// test does the work of a worker by its steps where it needs one.
type edge struct {
	t        *testing.T
	rdb      *redis.Client
	store    *store.DB
	steps    *lua.Steps
	commands *events.Commands
	bus      *events.Bus
	server   *Server
	url      string
	spec     *spec
	heard    *hearing
	operator string // token of an operator
}

// hearing keeps the notifications that came over the real bus, and passes them on.
type hearing struct {
	events.Sink
	mu  sync.Mutex
	all []events.Notification
}

func (h *hearing) Notify(n events.Notification) {
	h.mu.Lock()
	h.all = append(h.all, n)
	h.mu.Unlock()
	h.Sink.Notify(n)
}

// database opens one kind of database, empty and migrated.
type database struct {
	name string
	url  func(t *testing.T) string
}

func sqlite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "edge.db") }

var databases = []database{
	{"sqlite", sqlite},
	{"postgres", func(t *testing.T) string { return testenv.DatabaseURL(t) }},
}

func newEdge(t *testing.T, changes ...func(*Config, *Deps)) *edge {
	return newEdgeOn(t, sqlite(t), testenv.RedisURL(t), changes...)
}

func newEdgeOn(t *testing.T, databaseURL, redisURL string, changes ...func(*Config, *Deps)) *edge {
	t.Helper()
	e := &edge{t: t, spec: loadSpec(t), rdb: redisClient(t, redisURL)}
	db, err := store.Open(t.Context(), databaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(t.Context()))
	e.store = db
	e.steps = lua.New(e.rdb, lua.WithLoader(e.load))
	log := slog.New(slog.DiscardHandler)
	e.commands, err = events.NewCommands(e.rdb, log)
	require.NoError(t, err)
	t.Cleanup(e.commands.Close)
	e.bus = events.NewBus(e.rdb, events.BusConfig{Partitions: 1, Log: log})
	config := Config{JWTSecret: []byte(testSecret), SigningKey: bytes.Repeat([]byte{7}, 32)}
	deps := Deps{
		Steps: e.steps, Store: e.store, Commands: e.commands, Bus: e.bus, DeadLetters: events.NewDeadLetters(e.rdb),
		Ready: map[string]func(context.Context) error{
			"redis":    func(ctx context.Context) error { return e.rdb.Ping(ctx).Err() },
			"database": db.Ping,
		},
		Log: log, Metrics: prometheus.NewRegistry(),
	}
	for _, change := range changes {
		change(&config, &deps)
	}
	e.server, err = New(config, deps)
	require.NoError(t, err)
	e.operator = e.token("op-"+domain.NewID(), roleOperator)
	web := httptest.NewServer(e.server.Handler())
	e.url = web.URL
	t.Cleanup(func() {
		web.Close()
		e.server.afterwards.wait()
	})
	return e
}

// load is what the wiring gives to the steps: a show comes back from SQL.
func (e *edge) load(ctx context.Context, id domain.ShowID) error {
	show, err := e.store.NextEpoch(ctx, id)
	if err != nil {
		return err
	}
	sold, err := e.store.SoldSeats(ctx, id)
	if err != nil {
		return err
	}
	_, err = e.steps.Restore(ctx, show, sold)
	return err
}

func redisClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	options.MaxRetries = -1
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// listen connects the edge to the bus, as the wiring does.
func (e *edge) listen() {
	e.t.Helper()
	e.heard = &hearing{Sink: e.server}
	ctx, stop := context.WithCancel(e.t.Context())
	done := make(chan struct{})
	rdb := redisClient(e.t, "redis://"+e.rdb.Options().Addr)
	go func() {
		defer close(done)
		_ = e.bus.Run(ctx, rdb, e.heard)
	}()
	e.t.Cleanup(func() {
		stop()
		<-done
	})
	testenv.Eventually(e.t, soon, "the bus is healthy", e.bus.Healthy)
}

// hears waits for a notification that fits.
func (e *edge) hears(what string, fits func(events.Notification) bool) events.Notification {
	e.t.Helper()
	var found events.Notification
	testenv.Eventually(e.t, soon, "notification: "+what, func() bool {
		e.heard.mu.Lock()
		defer e.heard.mu.Unlock()
		for _, n := range e.heard.all {
			if fits(n) {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// token makes an identity token that is good for an hour.
func (e *edge) token(sub string, roles ...string) string {
	return signToken(e.t, jwt.SigningMethodHS256, []byte(testSecret), "", jwt.MapClaims{
		"sub": sub, "name": "Name of " + sub, "roles": roles, "exp": time.Now().Add(time.Hour).Unix(),
	})
}

func signToken(t *testing.T, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	signed, err := token.SignedString(key)
	require.NoError(t, err)
	return signed
}

// person makes a token for somebody new.
func (e *edge) person() string { return e.token("p-" + domain.NewID()) }

// answer is what the server sent.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
	json   map[string]any // nil when the body is no JSON object
}

// call sends one request. body is JSON text, or anything to be encoded, or nil.
// headers are names and values by turns. Every answer is held against openapi.yaml.
func (e *edge) call(token, method, path string, body any, headers ...string) answer {
	e.t.Helper()
	request, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, encodeBody(e.t, body))
	require.NoError(e.t, err)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Del(headers[i])
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return e.send(request)
}

func (e *edge) send(request *http.Request) answer {
	e.t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(e.t, err)
	defer func() { _ = response.Body.Close() }()
	a := answer{t: e.t, status: response.StatusCode, header: response.Header}
	a.body, err = io.ReadAll(response.Body)
	require.NoError(e.t, err)
	if strings.HasSuffix(response.Header.Get("Content-Type"), "json") {
		_ = json.Unmarshal(a.body, &a.json)
	}
	require.NotEmpty(e.t, response.Header.Get(headerCorrelation), "every answer names its request")
	e.spec.check(e.t, request.Method, request.URL.EscapedPath(), a)
	return a
}

func encodeBody(t *testing.T, body any) io.Reader {
	t.Helper()
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	}
	encoded, err := json.Marshal(body)
	require.NoError(t, err)
	return bytes.NewReader(encoded)
}

// is requires a status of a success.
func (a answer) is(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	return a
}

// fails requires a problem.
func (a answer) fails(status int, code string) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	require.Equal(a.t, code, a.json["code"], "%s", a.body)
	return a
}

// into decodes the body.
func (a answer) into(target any) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal(a.body, target), "%s", a.body)
}

// text is a member that is a string.
func (a answer) text(name string) string {
	a.t.Helper()
	text, ok := a.json[name].(string)
	require.True(a.t, ok, "%s is no string in %s", name, a.body)
	return text
}

// number is a member that is a number.
func (a answer) number(name string) int64 {
	a.t.Helper()
	number, ok := a.json[name].(float64)
	require.True(a.t, ok, "%s is no number in %s", name, a.body)
	return int64(number)
}

// object is a shorthand for bodies.
type object = map[string]any

// show creates a show that is open, with two rows of five seats, and returns its
// path. Members of more replace or add.
func (e *edge) show(more object) string {
	e.t.Helper()
	body := object{
		"id": testenv.ShowID(e.t), "title": "A show",
		"seating": object{"sections": []object{{"name": "A", "rows": 2, "seatsPerRow": 5, "price": 25.5}}},
	}
	for name, value := range more {
		body[name] = value
	}
	e.call(e.operator, "POST", "/api/shows", body).is(http.StatusCreated)
	return fmt.Sprintf("/api/shows/%s", body["id"])
}

// inside creates a person who is inside a show.
func (e *edge) inside(show string) string {
	e.t.Helper()
	token := e.person()
	require.Equal(e.t, "ADMITTED", e.call(token, "POST", show+"/admission", nil).is(http.StatusCreated).text("status"))
	require.Equal(e.t, "ACTIVE", e.call(token, "POST", show+"/admission/claim", nil).is(http.StatusOK).text("status"))
	return token
}

// hold holds seats and returns the hold's id.
func (e *edge) hold(token, show string, seats ...string) string {
	e.t.Helper()
	return e.call(token, "POST", show+"/holds", object{"seats": seats}).is(http.StatusCreated).text("holdId")
}

// book asks for a hold's seats and returns the booking's id.
func (e *edge) book(token, show, hold, key string) string {
	e.t.Helper()
	return e.call(token, "POST", show+"/bookings", object{"holdId": hold}, headerKey, key).is(http.StatusAccepted).text("bookingId")
}

// decide does the work of a booking worker for one booking.
func (e *edge) decide(id string) domain.Booking {
	e.t.Helper()
	ctx := e.t.Context()
	booking, err := e.store.Booking(ctx, domain.BookingID(id))
	require.NoError(e.t, err)
	outcomes, err := e.store.Book(ctx, []domain.Booking{booking})
	require.NoError(e.t, err)
	require.NoError(e.t, outcomes[0].Err)
	if outcomes[0].Booking.Status == domain.BookingConfirmed {
		_, err = e.steps.CompleteBooking(ctx, outcomes[0].Booking)
	} else {
		_, err = e.steps.RejectBooking(ctx, outcomes[0].Booking, outcomes[0].SoldBy)
	}
	require.NoError(e.t, err)
	return outcomes[0].Booking
}

// entries are the entries of a stream that mention a text.
func (e *edge) entries(stream, mention string) []redis.XMessage {
	e.t.Helper()
	all, err := e.rdb.XRange(e.t.Context(), stream, "-", "+").Result()
	require.NoError(e.t, err)
	var found []redis.XMessage
	for _, entry := range all {
		for _, value := range entry.Values {
			if strings.Contains(fmt.Sprint(value), mention) {
				found = append(found, entry)
				break
			}
		}
	}
	return found
}

func decodeAll(r io.Reader, target any) error { return json.NewDecoder(r).Decode(target) }

// loseRedis takes everything that Redis knows of a show away.
func (e *edge) loseRedis(show string) {
	e.t.Helper()
	keys, err := e.rdb.Keys(e.t.Context(), "*{"+string(showID(show))+"}*").Result()
	require.NoError(e.t, err)
	require.NoError(e.t, e.rdb.Del(e.t.Context(), keys...).Err())
}
