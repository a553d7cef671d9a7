package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// serve starts a server and returns a client of it that leaves nothing behind.
func serve(t *testing.T, handler http.Handler, opts ...Option) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	transport := &http.Transport{}
	t.Cleanup(server.Close)
	t.Cleanup(transport.CloseIdleConnections)
	opts = append([]Option{WithHTTPClient(&http.Client{Transport: transport}), WithToken("secret")}, opts...)
	c, err := New(server.URL, opts...)
	require.NoError(t, err)
	return c
}

// within bounds a test that waits for something that never comes.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func answerProblem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"urn:foyer:problem:x","title":"T","status":%d,"detail":"D","code":%q}`, status, code)
}

func TestNewRefusesAddressesItCannotUse(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://host", "http://", "http://host?x=1", "http://%zz"} {
		_, err := New(base)
		assert.Error(t, err, base)
	}
	_, err := New("http://host", WithHTTPClient(nil))
	require.Error(t, err)
	c, err := New("https://host/prefix/")
	require.NoError(t, err)
	assert.Equal(t, "https://host/prefix", c.base.String())
}

// request is a call of the client and what must go over the wire for it.
type request struct {
	want string // METHOD target body
	call func(ctx context.Context, c *Client) error
}

// Every method must send what the contract says, byte for byte where it matters.
func TestRequestsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(showRequests(), sellingRequests(), otherRequests()) {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			var got string
			c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.RequestURI + " " + string(body)
				if key := r.Header.Get("Idempotency-Key"); key != "" {
					got += " key=" + key
				}
				if len(body) > 0 {
					assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
				}
				assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
				answerJSON(w, http.StatusOK, `{}`)
			}))
			require.NoError(t, tt.call(within(t), c))
			assert.Equal(t, tt.want, got)
		})
	}
}

func showRequests() []request {
	at := time.Date(2026, 5, 1, 18, 0, 0, 0, time.UTC)
	yes, two := true, 2
	return []request{
		{"GET /api/shows ", func(ctx context.Context, c *Client) error { _, err := c.Shows(ctx); return err }},
		{"GET /api/shows/x ", func(ctx context.Context, c *Client) error { _, err := c.Show(ctx, "x"); return err }},
		{`POST /api/shows {"id":"x","title":"X","opensAt":"2026-05-01T18:00:00Z"}`, func(ctx context.Context, c *Client) error {
			_, err := c.CreateShow(ctx, NewShow{ID: "x", Title: "X", OpensAt: &at})
			return err
		}},
		{`PATCH /api/shows/x {"paused":true,"queue":{"maxActive":2}}`, func(ctx context.Context, c *Client) error {
			_, err := c.ChangeShow(ctx, "x", ShowChange{Paused: &yes, Queue: &QueueChange{MaxActive: &two}})
			return err
		}},
		{"POST /api/shows/x/admission ", func(ctx context.Context, c *Client) error { _, _, err := c.Join(ctx, "x"); return err }},
		{"GET /api/shows/x/admission ", func(ctx context.Context, c *Client) error { _, err := c.Place(ctx, "x"); return err }},
		{"POST /api/shows/x/admission/claim ", func(ctx context.Context, c *Client) error { _, err := c.Claim(ctx, "x"); return err }},
		{"DELETE /api/shows/x/admission ", func(ctx context.Context, c *Client) error { return c.Leave(ctx, "x") }},
		{"GET /api/shows/x/seats ", func(ctx context.Context, c *Client) error { _, err := c.Seats(ctx, "x", 0); return err }},
		{"GET /api/shows/x/seats?since=7 ", func(ctx context.Context, c *Client) error { _, err := c.Seats(ctx, "x", 7); return err }},
	}
}

func sellingRequests() []request {
	return []request{
		{`POST /api/shows/x/holds {"seats":["A-1-1","A-1-2"]}`, func(ctx context.Context, c *Client) error {
			_, err := c.HoldSeats(ctx, "x", []domain.SeatID{"A-1-1", "A-1-2"})
			return err
		}},
		{`POST /api/shows/x/holds {"best":{"count":3,"section":"A"}}`, func(ctx context.Context, c *Client) error {
			_, err := c.HoldBest(ctx, "x", 3, "A")
			return err
		}},
		{`POST /api/shows/x/holds {"best":{"count":1}}`, func(ctx context.Context, c *Client) error { _, err := c.HoldBest(ctx, "x", 1, ""); return err }},
		{`PUT /api/shows/x/holds/h {"seats":["A-1-1"]}`, func(ctx context.Context, c *Client) error {
			_, err := c.SwapHold(ctx, "x", "h", []domain.SeatID{"A-1-1"})
			return err
		}},
		{"POST /api/shows/x/holds/h/extend ", func(ctx context.Context, c *Client) error { _, err := c.ExtendHold(ctx, "x", "h"); return err }},
		{"DELETE /api/shows/x/holds/h ", func(ctx context.Context, c *Client) error { return c.ReleaseHold(ctx, "x", "h") }},
		{`POST /api/shows/x/bookings {"holdId":"h"} key=k`, func(ctx context.Context, c *Client) error { _, err := c.Book(ctx, "x", "h", "k"); return err }},
		{"GET /api/bookings/b ", func(ctx context.Context, c *Client) error { _, err := c.Booking(ctx, "b"); return err }},
		{"GET /api/bookings?before=b&limit=5 ", func(ctx context.Context, c *Client) error { _, err := c.Bookings(ctx, "b", 5); return err }},
		{"DELETE /api/bookings/b ", func(ctx context.Context, c *Client) error { _, err := c.CancelBooking(ctx, "b"); return err }},
	}
}

func otherRequests() []request {
	return []request{
		{`POST /api/chat/rooms {"name":"Lobby","showId":"x"}`, func(ctx context.Context, c *Client) error { _, err := c.CreateRoom(ctx, "Lobby", "x"); return err }},
		{"GET /api/chat/rooms ", func(ctx context.Context, c *Client) error { _, err := c.Rooms(ctx); return err }},
		{"GET /api/shows/s/chat/rooms ", func(ctx context.Context, c *Client) error { _, err := c.ShowRooms(ctx, "s"); return err }},
		{"POST /api/chat/rooms/r%2F1/members ", func(ctx context.Context, c *Client) error { return c.JoinRoom(ctx, "r/1") }},
		{"DELETE /api/chat/rooms/r/members ", func(ctx context.Context, c *Client) error { return c.LeaveRoom(ctx, "r") }},
		{`POST /api/chat/rooms/r/messages {"text":"hi"}`, func(ctx context.Context, c *Client) error { _, err := c.Say(ctx, "r", "hi"); return err }},
		{"GET /api/chat/rooms/r/messages?before=9&limit=10 ", func(ctx context.Context, c *Client) error { _, err := c.Messages(ctx, "r", 9, 10); return err }},
		{`POST /api/chat/rooms/r/read {"upTo":4}`, func(ctx context.Context, c *Client) error { return c.MarkRead(ctx, "r", 4) }},
		{`POST /api/chat/rooms/r/unread {"from":4}`, func(ctx context.Context, c *Client) error { return c.MarkUnread(ctx, "r", 4) }},
		{"GET /api/chat/rooms/r/readers?seq=4 ", func(ctx context.Context, c *Client) error { _, err := c.Readers(ctx, "r", 4); return err }},
		{"DELETE /api/chat/rooms/r/messages/4 ", func(ctx context.Context, c *Client) error { return c.DeleteMessage(ctx, "r", 4) }},
		{"GET /api/shows/x/holds ", func(ctx context.Context, c *Client) error { _, err := c.Holds(ctx, "x"); return err }},
		{"GET /api/operator/shows ", func(ctx context.Context, c *Client) error { _, err := c.OperatorShows(ctx); return err }},
		{"GET /api/operator/dead-letters?stream=s ", func(ctx context.Context, c *Client) error { _, err := c.DeadLetters(ctx, "s"); return err }},
		{`POST /api/operator/dead-letters {"id":"1-0","stream":"s"}`, func(ctx context.Context, c *Client) error {
			return c.RequeueDeadLetter(ctx, "s", "1-0")
		}},
		{`DELETE /api/operator/dead-letters {"id":"1-0","stream":"s"}`, func(ctx context.Context, c *Client) error {
			return c.DropDeadLetter(ctx, "s", "1-0")
		}},
		{"GET /api/operator/shows/x ", func(ctx context.Context, c *Client) error { _, err := c.OperatorShow(ctx, "x"); return err }},
		{`POST /api/dev/token {"name":"Ann","roles":["operator"],"sub":"ann"}`, func(ctx context.Context, c *Client) error {
			_, err := c.DevToken(ctx, "ann", "Ann", "operator")
			return err
		}},
		{"GET /readyz ", func(ctx context.Context, c *Client) error { return c.Ready(ctx) }},
	}
}

func TestAnswersAreDecoded(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for pattern, body := range map[string]string{
		"GET /api/shows": `{"shows":[{"id":"x","title":"X","phase":"OPEN","availability":"ALL_HELD","capacity":10,"sold":3,
			"opensAt":"2026-05-01T18:00:00Z","seating":{"seatLimit":4,"holdSeconds":300,"sections":[{"name":"A","rows":2,"seatsPerRow":5,"price":25.5}]},
			"draw":{"seedHash":"abc"}}]}`,
		"GET /api/shows/x/seats":         `{"showId":"x","epoch":1,"version":8,"seats":[{"id":"A-1-1","state":"HELD","holdId":"h"}]}`,
		"GET /api/chat/rooms/r/messages": `{"messages":[{"seq":1,"sender":"ann","senderName":"Ann","text":"hi","at":"2026-05-01T18:00:00Z"}]}`,
		"GET /api/chat/rooms/r/readers":  `{"readers":[{"person":"bob","name":"Bob","upTo":4}]}`,
		"POST /api/shows/x/holds":        `{"holdId":"h","seats":["A-1-1"],"price":25.5,"expiresAt":"2026-05-01T18:05:00Z","version":9}`,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, body) })
	}
	mux.HandleFunc("POST /api/shows/x/admission", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusCreated, `{"requestId":"q","showId":"x","status":"WAITING","rank":12,"waiting":40,"eta":{"minSeconds":3,"maxSeconds":9},"pollAfterMs":1500}`)
	})
	c, ctx := serve(t, mux), within(t)

	shows, err := c.Shows(ctx)
	require.NoError(t, err)
	assert.Equal(t, domain.AllHeld, shows[0].Availability)
	assert.Equal(t, domain.Price(2550), shows[0].Seating.Sections[0].Price)

	seats, err := c.Seats(ctx, "x", 0)
	require.NoError(t, err)
	assert.Equal(t, []domain.Seat{{ID: "A-1-1", State: domain.SeatHeld, HoldID: "h"}}, seats.Seats)

	place, created, err := c.Join(ctx, "x")
	require.NoError(t, err)
	assert.True(t, created)
	assert.Equal(t, int64(12), *place.Rank)
	assert.Equal(t, 1500*time.Millisecond, place.PollAfter())

	messages, err := c.Messages(ctx, "r", 0, 0)
	require.NoError(t, err)
	assert.Equal(t, domain.RoomID("r"), messages[0].RoomID)

	readers, err := c.Readers(ctx, "r", 4)
	require.NoError(t, err)
	assert.Equal(t, domain.PersonID("bob"), readers[0].PersonID)

	hold, err := c.HoldBest(ctx, "x", 1, "")
	require.NoError(t, err)
	assert.Equal(t, domain.Price(2550), hold.Price)
}

func TestPlacePollsAtABelievablePace(t *testing.T) {
	t.Parallel()
	assert.Equal(t, pollDefault, Place{}.PollAfter())
	assert.Equal(t, pollLeast, Place{PollAfterMs: 1}.PollAfter())
	assert.Equal(t, pollMost, Place{PollAfterMs: 1 << 40}.PollAfter())
}

func TestProblemBecomesError(t *testing.T) {
	t.Parallel()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"type":"urn:x","title":"Seats not available","status":409,"detail":"Some are sold.",
			"code":"SEAT_UNAVAILABLE","conflicts":["A-1-1","A-1-2"]}`)
	}))
	_, err := c.HoldBest(within(t), "x", 2, "")
	var e *Error
	require.ErrorAs(t, fmt.Errorf("hold: %w", err), &e)
	assert.Equal(t, 409, e.Status)
	assert.Equal(t, CodeSeatUnavailable, e.Code)
	assert.Equal(t, "Seats not available", e.Title)
	assert.Equal(t, "foyer answered 409 SEAT_UNAVAILABLE: Some are sold.", e.Error())
	var conflicts []domain.SeatID
	require.True(t, e.Into("conflicts", &conflicts))
	assert.Equal(t, []domain.SeatID{"A-1-1", "A-1-2"}, conflicts)
	assert.False(t, e.Into("limit", new(int)))
	assert.Len(t, e.Extra, 1)
	assert.True(t, HasCode(err, CodeSeatUnavailable))
	after, ok := RetryAfter(err)
	assert.True(t, ok)
	assert.Equal(t, 3*time.Second, after)
	assert.False(t, e.Temporary())
}

// A proxy between us and the server answers with pages of its own; what is left to
// go by is the status.
func TestAnswerThatIsNoProblemDocumentBecomesErrorToo(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"<html>Bad gateway</html>", "", "null", "[1]", `{"code":7}`} {
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, body)
		}))
		err := c.Ready(within(t))
		var e *Error
		require.ErrorAs(t, err, &e, body)
		assert.Equal(t, "HTTP_502", e.Code)
		assert.True(t, e.Temporary())
		_, asked := RetryAfter(err)
		assert.False(t, asked)
	}
}

func TestAnswerThatIsNotJSONIsAnError(t *testing.T) {
	t.Parallel()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 200, "{") }))
	_, err := c.Shows(within(t))
	require.ErrorContains(t, err, "answer of GET /api/shows")
}

func TestNotOpenSaysWhenItOpens(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 18, 0, 0, 0, time.UTC)
	err := fmt.Errorf("join: %w", &Error{Code: CodeNotOpen, Extra: map[string]json.RawMessage{"opensAt": json.RawMessage(`"2026-05-01T18:00:00Z"`)}})
	got, ok := NotOpenUntil(err)
	assert.True(t, ok)
	assert.True(t, at.Equal(got))
	_, ok = NotOpenUntil(errors.New("other"))
	assert.False(t, ok)
}

func TestTokenSourceIsAskedForEachRequestAndItsErrorKept(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	broken := errors.New("no key")
	tokens := []string{"one", "two"}
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		answerJSON(w, 200, `{}`)
	}), WithTokenSource(func(context.Context) (string, error) {
		if len(tokens) == 0 {
			return "", broken
		}
		token := tokens[0]
		tokens = tokens[1:]
		return token, nil
	}))
	require.NoError(t, c.Ready(within(t)))
	require.NoError(t, c.Ready(within(t)))
	require.ErrorIs(t, c.Ready(within(t)), broken)
	require.NoError(t, c.As("three").Ready(within(t)))
	assert.Equal(t, []string{"Bearer one", "Bearer two", "Bearer three"}, seen)
}

func TestRetryRepeatsOnlyWhatMaySucceedLater(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	fails := func(err error) (tries int, got error) {
		got = Retry(ctx, 3, func(context.Context) error { tries++; return err })
		return tries, got
	}
	tries, err := fails(nil)
	assert.Equal(t, 1, tries)
	require.NoError(t, err)

	final := &Error{Status: 409, Code: CodeSoldOut}
	tries, err = fails(final)
	assert.Equal(t, 1, tries)
	require.ErrorIs(t, err, final)

	busy := &Error{Status: 409, Code: CodeInProgress, RetryAfter: time.Millisecond}
	tries, err = fails(busy)
	assert.Equal(t, 3, tries)
	require.ErrorIs(t, err, busy)

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	tries = 0
	require.Error(t, Retry(cancelled, 3, func(context.Context) error { tries++; return io.ErrUnexpectedEOF }))
	assert.Equal(t, 1, tries)
}

func TestWaitBookingOutlastsPendingAndAMomentOfUnavailability(t *testing.T) {
	t.Parallel()
	answers := []string{"PENDING", "away", "PENDING", "CONFIRMED", "CANCELLED"}
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := answers[0]
		answers = answers[1:]
		if answer == "away" {
			answerProblem(w, http.StatusServiceUnavailable, "UNAVAILABLE")
			return
		}
		answerJSON(w, 200, `{"bookingId":"b","status":"`+answer+`"}`)
	}))
	b, err := c.WaitBooking(within(t), "b")
	require.NoError(t, err)
	assert.Equal(t, domain.BookingConfirmed, b.Status)
	b, err = c.WaitBooking(within(t), "b", domain.BookingConfirmed)
	require.NoError(t, err)
	assert.Equal(t, domain.BookingCancelled, b.Status)
}

func TestWaitBookingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, 200, `{"status":"PENDING"}`)
		cancel()
	}))
	_, err := c.WaitBooking(ctx, "b")
	require.ErrorIs(t, err, context.Canceled)
}

func TestWaitAdmissionPollsUntilInOrOver(t *testing.T) {
	t.Parallel()
	for _, end := range []domain.Status{domain.StatusAdmitted, domain.StatusActive, domain.StatusSoldOut, domain.StatusExpired} {
		answers := []domain.Status{domain.StatusPrequeue, domain.StatusWaiting, end}
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answerJSON(w, 200, fmt.Sprintf(`{"status":%q,"pollAfterMs":100}`, answers[0]))
			answers = answers[1:]
		}))
		p, err := c.WaitAdmission(within(t), "x")
		require.NoError(t, err)
		assert.Equal(t, end, p.Status)
	}
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerProblem(w, 404, CodeNotJoined) }))
	_, err := c.WaitAdmission(within(t), "x")
	assert.True(t, HasCode(err, CodeNotJoined))
	assert.True(t, strings.Contains(err.Error(), "NOT_JOINED"))
}
