package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// line is the server's end of one socket.
type line struct {
	*websocket.Conn
	t *testing.T
}

func (l line) send(format string, args ...any) {
	assert.NoError(l.t, l.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)))
}

// next returns the client's next frame as "type target".
func (l line) next() string {
	_, raw, err := l.ReadMessage()
	if err != nil {
		return "end"
	}
	var f struct {
		Type, ShowID, Topic, RoomID string
		UpTo                        int64
	}
	assert.NoError(l.t, json.Unmarshal(raw, &f))
	text := f.Type + " " + f.ShowID + f.Topic + f.RoomID
	if f.UpTo > 0 {
		text += " " + strconv.FormatInt(f.UpTo, 10)
	}
	return text
}

// bye closes with a code and waits for the client's goodbye, as the server does.
func (l line) bye(code int, reason string) {
	_ = l.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
	l.await()
}

// await reads until the client is gone.
func (l line) await() {
	for {
		if _, _, err := l.ReadMessage(); err != nil {
			return
		}
	}
}

// sockets serves the n-th socket (from 1) with script, on a mux for more routes.
func sockets(t *testing.T, script func(l line, n int)) *http.ServeMux {
	t.Helper()
	var (
		mu   sync.Mutex
		n    int
		open sync.WaitGroup
		mux  = http.NewServeMux()
		up   = websocket.Upgrader{Subprotocols: []string{subprotocol}}
	)
	t.Cleanup(open.Wait)
	mux.HandleFunc("POST /api/socket-tickets", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		answerJSON(w, 200, `{"ticket":"once","expiresInSeconds":30}`)
	})
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "once", r.URL.Query().Get("ticket"))
		assert.Empty(t, r.Header.Get("Authorization"))
		open.Add(1)
		defer open.Done()
		conn, err := up.Upgrade(w, r, nil)
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.Close() }()
		assert.Equal(t, subprotocol, conn.Subprotocol())
		mu.Lock()
		n++
		nth := n
		mu.Unlock()
		script(line{conn, t}, nth)
	})
	return mux
}

// hasty are the times of a client that cannot wait.
var hasty = LiveOptions{BackoffLeast: time.Millisecond, BackoffMost: 5 * time.Millisecond}

func frameOf(t *testing.T, l *Live, event string) Frame {
	t.Helper()
	for f := range l.Frames() {
		if f.Event == event {
			return f
		}
	}
	require.FailNow(t, "session ended before "+event, "%v", l.Err())
	return Frame{}
}

func ended(t *testing.T, l *Live) error {
	t.Helper()
	for range l.Frames() {
	}
	<-l.Done()
	return l.Err()
}

func TestLiveTakesAPersonThroughTheDoor(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, _ int) {
		l.send(`{"event":"HELLO","epoch":1,"version":0,"connectionId":"c","heartbeatSeconds":1,"places":[]}`)
		assert.Equal(t, "join x", l.next())
		l.send(`{"event":"ADMISSION","topic":"/topic/admission/q","showId":"x","epoch":1,"version":3,"requestId":"q","status":"WAITING","place":{"rank":4}}`)
		l.send(`{"event":"RANK","topic":"/topic/rank/q","showId":"x","epoch":1,"version":4,"rank":2,"waiting":9,"eta":{"minSeconds":1,"maxSeconds":2}}`)
		l.send(`{"event":"ADMISSION","topic":"/topic/admission/q","showId":"x","epoch":1,"version":5,"status":"ADMITTED","claimBy":"2026-05-01T18:00:00Z"}`)
		assert.Equal(t, "claim x", l.next())
		l.send(`{"event":"BOOKING","showId":"x","bookingId":"b","status":"CONFIRMED","seats":["A-1-1"],"price":12.5}`)
		assert.Equal(t, "read r 7", l.next())
		assert.Equal(t, "leave x", l.next())
		l.await()
	}))
	ctx := within(t)
	l := c.Live(ctx, hasty)
	defer l.Close()
	assert.Equal(t, "c", frameOf(t, l, EventHello).Hello.ConnectionID)
	require.NoError(t, l.Join(ctx, "x"))
	assert.Equal(t, int64(4), *frameOf(t, l, EventAdmission).Admission.Place.Rank)
	assert.Equal(t, Rank{Rank: 2, Waiting: 9, ETA: &domain.ETA{MinSeconds: 1, MaxSeconds: 2}}, *frameOf(t, l, EventRank).Rank)
	assert.Equal(t, domain.StatusAdmitted, frameOf(t, l, EventAdmission).Admission.Status)
	require.NoError(t, l.Claim(ctx, "x"))
	assert.Equal(t, domain.Price(1250), frameOf(t, l, EventBooking).Booking.Price)
	require.NoError(t, l.Read(ctx, "r", 7))
	require.NoError(t, l.Leave(ctx, "x"))
}

// A join that was on its way when the socket broke never reached the server: it
// must be sent again, and topics as well; what was answered must not be, since
// joining anew after one's turn has passed is for the person to decide (T30, R27).
func TestLiveRepeatsAfterAReconnectWhatWasNotAnswered(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, n int) {
		switch n {
		case 1:
			assert.ElementsMatch(t, []string{"subscribe /topic/stats/show/x", "join x"}, []string{l.next(), l.next()})
			// Broken without a word.
		case 2:
			assert.ElementsMatch(t, []string{"subscribe /topic/stats/show/x", "join x"}, []string{l.next(), l.next()})
			l.send(`{"event":"ADMISSION","topic":"a","showId":"x","epoch":1,"version":3,"status":"WAITING"}`)
			l.bye(4002, "slow")
		case 3:
			assert.Equal(t, "subscribe /topic/stats/show/x", l.next())
			l.send(`{"event":"STATS","topic":"s","showId":"x","epoch":1,"version":3,"waiting":5}`)
			assert.Equal(t, "unsubscribe /topic/stats/show/x", l.next())
			l.await()
		}
	}))
	ctx := within(t)
	l := c.Live(ctx, hasty)
	defer l.Close()
	require.NoError(t, l.Subscribe(ctx, "/topic/stats/show/x"))
	require.NoError(t, l.Join(ctx, "x"))
	assert.Equal(t, int64(5), frameOf(t, l, EventStats).Stats.Waiting)
	require.NoError(t, l.Unsubscribe(ctx, "/topic/stats/show/x"))
}

func TestLiveKeepsToTheCloseCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code  int
		again bool
	}{
		{1000, false}, {1001, true}, {1009, false}, {1011, true}, {1012, true}, {1013, true},
		{4000, true}, {4001, true}, {4003, true}, {4005, true}, {4499, true},
		{4500, false}, {4501, false}, {4502, false}, {4503, false}, {4999, false},
	} {
		t.Run(strconv.Itoa(tt.code), func(t *testing.T) {
			t.Parallel()
			c := serve(t, sockets(t, func(l line, n int) {
				if n == 1 {
					l.bye(tt.code, "because")
					return
				}
				l.send(`{"event":"HELLO"}`)
				l.await()
			}))
			l := c.Live(within(t), hasty)
			defer l.Close()
			if tt.again {
				frameOf(t, l, EventHello)
				return
			}
			var e *CloseError
			require.ErrorAs(t, ended(t, l), &e)
			assert.Equal(t, CloseError{Code: tt.code, Reason: "because"}, *e)
			require.ErrorIs(t, l.Join(within(t), "x"), ErrClosed)
		})
	}
}

// R41: a restart tells when to come back; a fixed timer would bring everybody at once.
func TestLiveComesBackWithinTheWindowOfARestart(t *testing.T) {
	t.Parallel()
	var restarted time.Time
	c := serve(t, sockets(t, func(l line, n int) {
		if n == 1 {
			restarted = time.Now()
			l.bye(websocket.CloseServiceRestart, "restart retryMs=150-200")
			return
		}
		assert.GreaterOrEqual(t, time.Since(restarted), 150*time.Millisecond)
		l.send(`{"event":"HELLO"}`)
		l.await()
	}))
	l := c.Live(within(t), hasty)
	defer l.Close()
	frameOf(t, l, EventHello)
}

func TestLiveEndsWhenTheTokenIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerProblem(w, 401, "UNAUTHORIZED") }))
	l := c.Live(within(t), hasty)
	defer l.Close()
	assert.True(t, HasCode(ended(t, l), "UNAUTHORIZED"))
}

// Behind a proxy that breaks sockets a person must get in as well: after two failed
// openings admission is polled, and joining and claiming go over HTTP.
func TestLivePollsAdmissionWhileNoSocketOpens(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	usable := make(chan struct{})
	polls := 0
	mux := sockets(t, func(l line, _ int) {
		l.send(`{"event":"HELLO","places":[{"showId":"x","status":"ACTIVE"}]}`)
		l.await()
	})
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		status := ""
		switch r.Method + " " + r.URL.Path {
		case "GET /ws":
			select {
			case <-usable:
				mu.Unlock()
				mux.ServeHTTP(w, r)
				mu.Lock()
			default:
				w.WriteHeader(http.StatusBadGateway)
			}
			return
		case "POST /api/socket-tickets":
			mux.ServeHTTP(w, r)
			return
		case "POST /api/shows/x/admission":
			status = "WAITING"
		case "POST /api/shows/x/admission/claim":
			status = "ACTIVE"
		case "GET /api/shows/x/admission":
			if status = "WAITING"; polls == 2 {
				status = "ADMITTED"
			}
			polls++
		}
		asked = append(asked, r.Method)
		answerJSON(w, 200, fmt.Sprintf(`{"requestId":"q","showId":"x","status":%q,"epoch":1,"version":%d,"pollAfterMs":100}`, status, len(asked)))
	})
	ctx := within(t)
	c := serve(t, outer)
	l := c.Live(ctx, hasty)
	defer l.Close()
	require.NoError(t, l.Join(ctx, "x"))
	var seen []domain.Status
	for f := range l.Frames() {
		if f.Event == EventHello {
			assert.False(t, f.Polled)
			break
		}
		assert.True(t, f.Polled)
		seen = append(seen, f.Admission.Status)
		switch f.Admission.Status {
		case domain.StatusAdmitted:
			require.NoError(t, l.Claim(ctx, "x"))
		case domain.StatusActive:
			select {
			case <-usable:
			default:
				close(usable)
			}
		}
	}
	assert.Equal(t, []domain.Status{"WAITING", "WAITING", "WAITING", "ADMITTED", "ACTIVE"}, seen[:5])
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, []string{"POST", "GET", "GET", "GET", "POST"}, asked[:5])
}

func TestLivePassesRefusalsOfPollingOn(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/socket-tickets", func(w http.ResponseWriter, _ *http.Request) { answerProblem(w, 503, "UNAVAILABLE") })
	mux.HandleFunc("POST /api/shows/x/admission", func(w http.ResponseWriter, _ *http.Request) { answerProblem(w, 409, CodeSoldOut) })
	mux.HandleFunc("DELETE /api/shows/y/admission", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	ctx, c := within(t), serve(t, mux)
	l := c.Live(ctx, hasty)
	defer l.Close()
	require.NoError(t, l.Join(ctx, "x"))
	f := frameOf(t, l, EventError)
	assert.Equal(t, FrameError{Code: CodeSoldOut, Detail: "D", Ref: "join-1", Extra: map[string]json.RawMessage{}}, *f.Error)
	require.NoError(t, l.Follow(ctx, "y"))
	require.NoError(t, l.Leave(ctx, "y"))
	assert.Equal(t, domain.StatusLeft, frameOf(t, l, EventAdmission).Admission.Status)
}
