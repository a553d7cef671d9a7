package client

import (
	"context"
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

// R32: a snapshot that took longer than a later frame would turn the clock back.
func TestLiveDropsWhatIsOlderThanWhatItDelivered(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, n int) {
		for _, at := range []string{`1,"version":5`, `1,"version":4`, `1,"version":5`, `2,"version":1`, `1,"version":9`} {
			l.send(`{"event":"STATS","topic":"s","showId":"x","epoch":%s}`, at)
		}
		l.send(`{"event":"CHAT_MESSAGE","topic":"c","epoch":0,"version":2,"roomId":"r","message":{"seq":2,"text":"b"}}`)
		l.send(`{"event":"CHAT_MESSAGE","topic":"c","epoch":0,"version":1,"roomId":"r","message":{"seq":1,"text":"a"}}`)
		l.send(`{"event":"NEWS","more":1}`)
		l.send(`{"event":"HEARTBEAT"}`)
		l.await()
	}))
	l := c.Live(within(t), hasty)
	defer l.Close()
	var seen []string
	for f := range l.Frames() {
		if f.Event == EventHeartbeat {
			break
		}
		seen = append(seen, fmt.Sprintf("%s %d.%d", f.Event, f.Epoch, f.Version))
	}
	assert.Equal(t, []string{"STATS 1.5", "STATS 1.5", "STATS 2.1", "CHAT_MESSAGE 0.2", "CHAT_MESSAGE 0.1", "NEWS 0.0"}, seen)
}

// What the server refuses it must not be asked again after each reconnect.
func TestLiveForgetsWhatTheServerRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, n int) {
		if n == 1 {
			assert.Equal(t, "join x", l.next())
			l.send(`{"event":"ERROR","code":"NOT_OPEN","detail":"later","ref":"join-1","extra":{"opensAt":"2026-05-01T18:00:00Z"}}`)
			l.bye(4005, "resync")
			return
		}
		assert.Equal(t, "join y", l.next())
		l.send(`{"event":"HEARTBEAT"}`)
		l.await()
	}))
	ctx := within(t)
	l := c.Live(ctx, hasty)
	defer l.Close()
	require.NoError(t, l.Join(ctx, "x"))
	err := frameOf(t, l, EventError).Error.Problem()
	opens, ok := NotOpenUntil(err)
	assert.True(t, ok)
	assert.Equal(t, 2026, opens.Year())
	assert.Equal(t, "foyer refused: NOT_OPEN: later", err.Error())
	require.NoError(t, l.Join(ctx, "y"))
	frameOf(t, l, EventHeartbeat)
}

// A join that is sent as soon as the socket is open may be answered by HELLO alone;
// who listens for ADMISSION would wait for ever.
func TestLiveTellsThePlacesOfHelloAsAdmission(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, n int) {
		if n == 1 {
			assert.Equal(t, "join x", l.next())
			l.send(`{"event":"HELLO","places":[{"requestId":"q","showId":"x","status":"ADMITTED","epoch":1,"version":3,"claimBy":"2026-05-01T18:00:00Z"}]}`)
			l.bye(4005, "resync")
			return
		}
		l.send(`{"event":"HELLO","places":[{"requestId":"q","showId":"x","status":"WAITING","epoch":1,"version":2}]}`)
		l.send(`{"event":"HEARTBEAT"}`)
		assert.Equal(t, "claim x", l.next(), "the join was answered")
		l.await()
	}))
	ctx := within(t)
	l := c.Live(ctx, hasty)
	defer l.Close()
	require.NoError(t, l.Join(ctx, "x"))
	f := frameOf(t, l, EventAdmission)
	assert.Equal(t, domain.StatusAdmitted, f.Admission.Status)
	assert.Equal(t, 2026, f.Admission.ClaimBy.Year())
	assert.Nil(t, f.Raw)
	frameOf(t, l, EventHello)
	f = <-l.Frames()
	assert.Equal(t, EventHeartbeat, f.Event, "an older place is none to tell")
	require.NoError(t, l.Claim(ctx, "x"))
}

func TestNewestIsBounded(t *testing.T) {
	t.Parallel()
	n := newest{}
	for i := range 3 * maxNewest {
		n.stale(Frame{Event: EventStats, Topic: strconv.Itoa(i)})
	}
	assert.LessOrEqual(t, len(n), maxNewest)
}

// The server closes with 4003 who sends more than 5 frames a second beyond a burst
// of 10; a client that joins many shows at once must pace itself.
func TestLivePacesWhatItSends(t *testing.T) {
	t.Parallel()
	const many = sendBurst + 2
	got := make(chan time.Time, many)
	c := serve(t, sockets(t, func(l line, _ int) {
		for range many {
			assert.NotEqual(t, "end", l.next())
			got <- time.Now()
		}
		l.send(`{"event":"HEARTBEAT"}`)
		l.await()
	}))
	ctx := within(t)
	l := c.Live(ctx, hasty)
	defer l.Close()
	for i := range many {
		require.NoError(t, l.Join(ctx, domain.ShowID(strconv.Itoa(i))))
	}
	frameOf(t, l, EventHeartbeat)
	first := <-got
	var last time.Time
	for range many - 1 {
		last = <-got
	}
	assert.Greater(t, last.Sub(first), sendEvery)
}

func TestLiveRefusesWhatHasNoEnd(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerProblem(w, 503, "UNAVAILABLE") }))
	l := c.Live(ctx, LiveOptions{})
	defer l.Close()
	require.ErrorIs(t, l.Join(ctx, ""), errNoShow)
	require.ErrorIs(t, l.Subscribe(ctx, ""), errNoTopic)
	require.ErrorIs(t, l.Read(ctx, "r", 0), errNoRoom)
	for i := range maxTopics {
		require.NoError(t, l.Subscribe(ctx, strconv.Itoa(i)))
		require.NoError(t, l.Read(ctx, domain.RoomID(strconv.Itoa(i)), 1))
	}
	require.ErrorIs(t, l.Subscribe(ctx, "more"), errTooMany)
	require.ErrorIs(t, l.Read(ctx, "more", 1), errTooMany)
	require.NoError(t, l.Read(ctx, "1", 2))
}

// A server that is there but says nothing, not even a ping, is as good as gone.
func TestLiveLeavesASilentServer(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, n int) {
		if n > 1 {
			l.send(`{"event":"HELLO"}`)
		}
		l.await()
	}))
	l := c.Live(within(t), LiveOptions{BackoffLeast: time.Millisecond, BackoffMost: time.Millisecond, Silence: 50 * time.Millisecond})
	defer l.Close()
	frameOf(t, l, EventHello)
}

func TestLiveAnswersPings(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, _ int) {
		ponged := false
		l.SetPongHandler(func(string) error {
			ponged = true
			l.send(`{"event":"HEARTBEAT"}`)
			return nil
		})
		assert.NoError(t, l.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(time.Second)))
		l.await()
		assert.True(t, ponged)
	}))
	l := c.Live(within(t), hasty)
	defer l.Close()
	frameOf(t, l, EventHeartbeat)
}

// What is no frame is a broken server or a proxy's page: another connection is tried.
func TestLiveLeavesAServerThatTalksNonsense(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, n int) {
		switch n {
		case 1:
			l.send(`nonsense`)
		case 2:
			l.send(`{"event":"SEATS","seats":"nonsense"}`)
		default:
			l.send(`{"event":"HELLO"}`)
		}
		l.await()
	}))
	l := c.Live(within(t), hasty)
	defer l.Close()
	frameOf(t, l, EventHello)
}

// R43: closing while the socket is only being opened must end that too.
func TestCloseEndsAnOpeningAndIsSafeTwice(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	l := c.Live(within(t), hasty)
	<-arrived
	l.Close()
	l.Close()
	require.NoError(t, l.Err())
	require.ErrorIs(t, l.Join(t.Context(), "x"), ErrClosed)
}

// Nobody reads the frames: closing must work all the same, and from many at once.
func TestCloseWorksWhileFramesAreLeftLying(t *testing.T) {
	t.Parallel()
	c := serve(t, sockets(t, func(l line, _ int) {
		for l.WriteMessage(websocket.TextMessage, []byte(`{"event":"HEARTBEAT"}`)) == nil {
		}
	}))
	ctx, cancel := context.WithCancel(within(t))
	l := c.Live(ctx, hasty)
	<-l.Frames()
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(l.Close)
	}
	cancel()
	closers.Wait()
	require.NoError(t, ended(t, l))
}

func TestBackoffIsJitteredBoundedAndResets(t *testing.T) {
	t.Parallel()
	b := backoff{least: time.Second, most: 30 * time.Second}
	for i := range 200 {
		d := b.next(nil)
		require.GreaterOrEqual(t, d, time.Second)
		require.LessOrEqual(t, d, min(time.Second<<min(i+1, 10), 30*time.Second))
	}
	asked := b.next(&Error{RetryAfter: time.Minute})
	assert.GreaterOrEqual(t, asked, time.Minute)
	assert.Less(t, asked, time.Minute+time.Second)
	b.reset()
	assert.LessOrEqual(t, b.next(nil), 2*time.Second)
}

func TestWindowOfACloseReason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]window{
		"restart retryMs=500-2500":      {500 * time.Millisecond, 2500 * time.Millisecond},
		"restart":                       {},
		"restart retryMs=9-3":           {9 * time.Millisecond, 3 * time.Millisecond},
		"restart retryMs=1-999999999":   {time.Millisecond, 999999999 * time.Millisecond},
		"restart retryMs=1-99999999999": {time.Millisecond, 999999999 * time.Millisecond},
	} {
		w, ok := windowOf(&websocket.CloseError{Code: websocket.CloseServiceRestart, Text: reason})
		assert.Equal(t, want, w, reason)
		assert.Equal(t, want.high >= want.low && want.high > 0 && want.high < time.Hour, ok, reason)
	}
	_, ok := windowOf(&websocket.CloseError{Code: 4002, Text: "retryMs=1-2"})
	assert.False(t, ok)
}
