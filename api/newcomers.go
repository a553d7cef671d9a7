package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"foyer/domain"
	"foyer/events"
)

const (
	// newcomersWait is how long a new place waits for others to be told with.
	newcomersWait = 50 * time.Millisecond
	// maxNewcomers bounds the places told in one message.
	maxNewcomers = 1000
)

// newcomers tells every process which places were just taken, for a person may
// join here while their socket is open there. A rush of joins is a handful of
// messages, not one each. Losing one costs what the next turn, or the next time
// that all is read again, makes good.
type newcomers struct {
	tell       func(ctx context.Context, facts ...events.Notification)
	afterwards *afterwards

	mu      sync.Mutex
	waiting map[domain.ShowID][]domain.RequestID
}

// add has a place told soon. It returns at once.
func (n *newcomers) add(ctx context.Context, show domain.ShowID, request domain.RequestID) {
	n.mu.Lock()
	if n.waiting == nil {
		n.waiting = map[domain.ShowID][]domain.RequestID{}
	}
	first := len(n.waiting[show]) == 0
	n.waiting[show] = append(n.waiting[show], request)
	n.mu.Unlock()
	if first { // of this wait; who comes within it is told with them
		n.afterwards.goFor(ctx, newcomersWait+followUpTime, func(ctx context.Context) { n.flush(ctx, show) })
	}
}

func (n *newcomers) flush(ctx context.Context, show domain.ShowID) {
	timer := time.NewTimer(newcomersWait)
	defer timer.Stop()
	<-timer.C
	n.mu.Lock()
	joined := n.waiting[show]
	delete(n.waiting, show)
	n.mu.Unlock()
	for ids := range slices.Chunk(joined, maxNewcomers) {
		n.tell(ctx, events.Notification{Event: events.EventAdmission, ShowID: show, Joined: ids})
	}
}
