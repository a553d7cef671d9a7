package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// eventReader is a client of a stream.
type eventReader struct {
	t        *testing.T
	response *http.Response

	mu    sync.Mutex
	lines []string // blocks of lines, as they came
	over  bool
}

func (w *hubWorld) askStream(token string) *http.Response {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.http.URL+"/api/shows/"+string(w.show.ID)+"/admission/stream", nil)
	require.NoError(w.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := w.http.Client().Do(request)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (w *hubWorld) openStream(token string) *eventReader {
	w.t.Helper()
	r := &eventReader{t: w.t, response: w.askStream(token)}
	require.Equal(w.t, http.StatusOK, r.response.StatusCode)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.read()
	}()
	w.t.Cleanup(func() {
		_ = r.response.Body.Close()
		<-done
	})
	return r
}

func (r *eventReader) read() {
	lines := bufio.NewScanner(r.response.Body)
	block := ""
	for lines.Scan() {
		if block += lines.Text() + "\n"; lines.Text() == "" {
			r.mu.Lock()
			r.lines = append(r.lines, block)
			r.mu.Unlock()
			block = ""
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// await returns the first block that begins with start and has part in it.
func (r *eventReader) await(start, part string) string {
	r.t.Helper()
	found := ""
	testenv.Eventually(r.t, socketWait, start+" with "+part, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, block := range r.lines {
			if strings.HasPrefix(block, start) && strings.Contains(block, part) {
				found = block
				return true
			}
		}
		return false
	})
	return found
}

func (r *eventReader) ended() {
	r.t.Helper()
	testenv.Eventually(r.t, socketWait, "the end of the stream", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.over
	})
}

// TestStreamTellsOnesOwnPlace: a client without sockets hears of its place as one
// with a socket does, of this show and nobody else.
func TestStreamTellsOnesOwnPlace(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.heartbeat = 50 * time.Millisecond })
	require.Equal(t, http.StatusNotFound, w.askStream(w.token("ann", time.Hour)).StatusCode, "there is no place yet")
	w.fill()
	w.join("ann", "bob")
	r := w.openStream(w.token("ann", time.Hour))
	require.Equal(t, "text/event-stream", r.response.Header.Get("Content-Type"))
	require.Equal(t, "no", r.response.Header.Get("X-Accel-Buffering"))
	require.Equal(t, "no-store", r.response.Header.Get("Cache-Control"))
	r.await("retry: ", "\n\n")
	first := r.await("event: admission\nid: ", "WAITING")
	_, data, _ := strings.Cut(first, "data: ")
	var frame told
	require.NoError(t, json.Unmarshal([]byte(data), &frame))
	require.Equal(t, w.request("ann"), frame.RequestID)
	require.EqualValues(t, 1, *frame.Place.Rank)
	r.await("event: stats\nid: ", `"waiting":2`)
	r.await(":\n\n", "")

	stats := w.stats()
	stats.Version, stats.Sold = stats.Version+1, stats.Capacity
	w.notify(events.Notification{Event: events.EventSoldOut, Version: stats.Version, Stats: &stats})
	r.await("event: soldout\nid: ", `"soldOut":true`)
	claimBy := time.Now().Add(time.Minute)
	w.notify(events.Notification{Event: events.EventAdmission, Version: stats.Version + 1, Admitted: []domain.Admitted{{RequestID: w.request("ann"), ClaimBy: claimBy}}})
	r.await("event: admission\nid: ", "ADMITTED")
	w.notify(events.Notification{Event: events.EventBooking, Version: stats.Version + 2, Bookings: []events.BookingFact{
		{BookingID: "b-1", RequestID: w.request("ann"), Status: domain.BookingRejected},
	}})
	r.await("event: booking\nid: ", "b-1")
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotContains(t, strings.Join(r.lines, ""), string(w.request("bob")))
}

// TestStreamEndsLikeASocket: at the end of the token, and when the process stops;
// and it counts among a person's sockets. Nothing of it is left behind.
func TestStreamEndsLikeASocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.tokenGrace, c.maxPerPerson = time.Millisecond, 1 })
	w.join("ann", "bob")
	short := w.openStream(w.token("ann", 2*time.Second))
	short.await("event: admission", "")
	require.Equal(t, http.StatusTooManyRequests, w.askStream(w.token("ann", time.Hour)).StatusCode)
	short.await("event: close\n", `"code":4001`)
	short.ended()
	long := w.openStream(w.token("bob", time.Hour))
	long.await("event: admission", "")
	w.hub.Drain(context.WithoutCancel(t.Context()))
	long.await("event: close\n", `"code":1012,"reason":"restart retryMs=`)
	long.ended()
	require.Zero(t, w.hub.Sockets())
	require.Zero(t, w.hub.registry.entries())
	require.Equal(t, http.StatusServiceUnavailable, w.askStream(w.token("bob", time.Hour)).StatusCode)
}

// TestStreamOfAGoneClientIsGone: a client that hangs up, or takes no bytes, costs
// nothing for long.
func TestStreamOfAGoneClientIsGone(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.slowAfter, c.writeWait = 200*time.Millisecond, time.Hour
		c.tap = nil
	})
	w.http.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4096) // so that little is on its way before a write waits
		}
		return conn, err
	}
	w.join("ann", "bob")
	r := w.openStream(w.token("ann", time.Hour))
	r.await("event: admission", "")
	_ = r.response.Body.Close()
	testenv.Eventually(t, socketWait, "the end of who hung up", func() bool { return w.hub.Sockets() == 0 })
	require.Equal(t, http.StatusOK, w.askStream(w.token("bob", time.Hour)).StatusCode) // and reads nothing
	stats := w.stats()
	testenv.Eventually(t, 60*time.Second, "the end of who reads nothing", func() bool {
		for range 500 {
			stats.Version, stats.Active = stats.Version+1, stats.Active+1
			w.notifyStats(stats)
		}
		return w.hub.Sockets() == 0
	})
}
