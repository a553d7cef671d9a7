package api

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// H9, R42: http.Server.Shutdown ignores sockets, and exiting after a close
// broadcast gives every client 1006. Every one of them is to see 1012 with a window
// to come back in, and no place is lost by it. T60: the window spreads them.
func TestDrainTellsEverybody(t *testing.T) {
	t.Parallel()
	const people = 500
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.drainSlice = 50 })
	w.fill()
	waiting := w.join("waiting")[0]
	pages := make([]*tab, people)
	for i, person := range names("drained", people) {
		pages[i] = w.dial(person)
	}
	for _, page := range pages {
		page.await(eventHello)
	}
	w.hub.Drain(t.Context())
	require.NoError(t, w.http.Config.Shutdown(t.Context()))
	require.Zero(t, w.hub.Sockets())
	window := regexp.MustCompile(`^restart retryMs=(\d+)-(\d+)$`)
	for _, page := range pages {
		code, reason := page.ended()
		require.Equal(t, closeRestart, code)
		bounds := window.FindStringSubmatch(reason)
		require.NotNil(t, bounds, reason)
		least, _ := strconv.Atoi(bounds[1])
		most, _ := strconv.Atoi(bounds[2])
		require.Less(t, least, most)
	}
	place, err := w.steps.Place(t.Context(), w.show.ID, w.request("waiting"))
	require.NoError(t, err)
	require.Equal(t, waiting.Rank, place.Rank)
}

// T60: the window grows with the number of those who come back, and is bounded.
func TestRestartWindow(t *testing.T) {
	t.Parallel()
	h := newHub(hubConfig{}, hubDeps{})
	require.Equal(t, "restart retryMs=500-2500", h.restartReason(1))
	require.Equal(t, "restart retryMs=500-10500", h.restartReason(3000))
	require.Equal(t, "restart retryMs=500-30500", h.restartReason(10_000_000))
}

// While draining, a handshake is refused with a time to come back.
func TestDrainRefusesHandshakes(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.hub.Drain(t.Context())
	w.hub.Drain(t.Context()) // safe twice
	status, code, retry := w.refusedDial("", w.authorization("late"))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, codeRestarting, code)
	require.NotEmpty(t, retry)
	never := newHub(hubConfig{}, hubDeps{})
	never.Drain(t.Context()) // safe before Start
	never.Start(t.Context())
	require.Nil(t, never.sockets)
}

// A client that takes no goodbye holds nobody up for longer than the limit.
func TestDrainCutsWhoDoesNotGo(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.drainLimit, c.writeWait, c.closeWait = 200*time.Millisecond, time.Hour, time.Hour
	})
	c, _ := w.unread("stuck")
	stall(c)
	began := time.Now()
	w.hub.Drain(t.Context())
	require.Less(t, time.Since(began), socketWait)
	require.Zero(t, w.hub.Sockets())
}

// H3: melody.Close under connect churn leaves handlers blocked for ever. Draining
// in the middle of a storm of connects and closes ends with no socket and nothing
// running; whatever stays behind fails the whole package's run. R1, R2, R4, R13.
func TestDrainDuringStorm(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), socketWait)
	defer cancel()
	var storm sync.WaitGroup
	for i := range 8 {
		storm.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				conn := w.tryDial(fmt.Sprintf("storm-%d-%d", i, n%5))
				if conn == nil {
					return
				}
				_ = conn.WriteJSON(map[string]any{"type": "join", "showId": w.show.ID})
				if n%2 == 0 {
					_, _, _ = conn.ReadMessage()
				}
				_ = conn.Close()
			}
		})
	}
	testenv.Eventually(t, socketWait, "the storm is under way", func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return len(w.hub.connections) > 2
	})
	w.hub.Drain(t.Context())
	cancel()
	storm.Wait()
	require.Zero(t, w.hub.Sockets())
	require.Zero(t, w.hub.registry.entries(), "an interest outlived its socket")
	require.Zero(t, w.hub.reserved)
	require.Empty(t, w.hub.persons)
}
