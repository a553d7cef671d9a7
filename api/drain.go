package api

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Window that clients are asked to come back in after a restart. It grows with
// their number, so that other processes get them at the rate they can take.
const (
	restartLeast = 500 * time.Millisecond
	restartMost  = 30 * time.Second
	restartShort = 2 * time.Second // the window for a handful
)

// Drain ends the hub: no more handshakes, every socket told to come back (1012)
// in slices, and then waiting until all are gone. What is not gone by the drain
// limit, or when ctx ends, is cut. Nobody leaves a show by it. It is safe to call
// twice and before Start; every call returns when all is over.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	first := !h.draining
	h.draining = true
	serving := h.sockets
	h.mu.Unlock()
	if !first {
		<-h.drained
		return
	}
	defer close(h.drained)
	if serving == nil {
		return
	}
	limit, cancel := context.WithTimeout(ctx, h.config.drainLimit)
	defer cancel()
	h.closeAll(limit)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		serving.stop()
	}()
	select {
	case <-gone:
	case <-limit.Done():
		for _, c := range h.all() {
			c.cut()
		}
		<-gone
	}
	h.writers.stop()
	h.stop()
	h.loops.Wait()
}

// closeAll says goodbye to everybody, a slice at a time: all at once would be as
// many frames, and as many clients dialling elsewhere, in the same instant.
func (h *Hub) closeAll(ctx context.Context) {
	all := h.all()
	reason := h.restartReason(len(all))
	pause := time.NewTicker(h.config.drainPause)
	defer pause.Stop()
	for i, c := range all {
		if i > 0 && i%h.config.drainSlice == 0 {
			select {
			case <-pause.C:
			case <-ctx.Done():
				return
			}
		}
		c.close(closeRestart, reason)
	}
}

// restartReason tells clients when to come back: a time in the window, drawn by
// each for itself.
func (h *Hub) restartReason(sockets int) string {
	spread := time.Duration(math.Ceil(float64(sockets) / h.config.handshakesPerSecond * float64(time.Second)))
	most := restartLeast + min(max(spread, restartShort), restartMost)
	return fmt.Sprintf("restart retryMs=%d-%d", restartLeast.Milliseconds(), most.Milliseconds())
}
