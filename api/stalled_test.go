package api

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// R5, R6, R7: one client that took no bytes held a lock, or the line, and everybody
// waited. Here a thousand hear the news as fast beside it as without it, until it is
// cut for the age of its frame. It runs beside no other test, for the times it holds.
func TestStalledClientCostsAThousandNothing(t *testing.T) {
	const healthy = 1000
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.slowAfter, c.sweepEvery, c.tap = 0, 0, nil // as in production
	})
	var heard atomic.Int64 // frames with wanted in them
	var wanted atomic.Pointer[string]
	want := func(text string) {
		heard.Store(0)
		wanted.Store(&text)
	}
	want(`"event":"STATS"`)
	topic := statsTopic(w.show.ID)
	for i := range healthy {
		conn := w.tryDial(fmt.Sprintf("healthy-%d", i))
		require.NotNil(t, conn)
		require.NoError(t, conn.WriteJSON(map[string]string{"type": "subscribe", "topic": topic}))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				_, frame, err := conn.ReadMessage()
				if err != nil {
					return
				}
				if strings.Contains(string(frame), *wanted.Load()) {
					heard.Add(1)
				}
			}
		}()
		t.Cleanup(func() {
			_ = conn.Close()
			<-done
		})
	}
	testenv.Eventually(t, socketWait, "the numbers for all", func() bool { return heard.Load() >= healthy })
	stats := w.stats()
	fastest := func() time.Duration {
		best, begun := time.Hour, time.Now()
		for round := 0; round < 3 || round < 10 && time.Since(begun) < 2*time.Second; round++ {
			stats.Version, stats.Active = stats.Version+1, stats.Active+1
			want(fmt.Sprintf(`"version":%d,`, stats.Version))
			began := time.Now()
			w.notifyStats(stats)
			testenv.Eventually(t, socketWait, "the news for all", func() bool { return heard.Load() == healthy })
			best = min(best, time.Since(began))
		}
		return best
	}
	alone := fastest()
	c, _ := w.unread("stalled")
	stall(c)
	c.mu.Lock()
	c.inFlight, c.sentAt = true, time.Now() // what fills the line is in flight
	c.mu.Unlock()
	began := time.Now()
	require.Less(t, fastest(), 3*alone+50*time.Millisecond)
	require.Equal(t, healthy+1, w.hub.Sockets())
	testenv.Eventually(t, socketWait, "the stalled one to be cut", func() bool { return w.hub.Sockets() == healthy })
	require.Less(t, time.Since(began), 6*time.Second)
}
