package foyer_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// handedOnWithin is how soon what a stopping worker leaves runs elsewhere: 2 s where
// the machine is not busy with the tests themselves.
const handedOnWithin = 5 * time.Second

// Trap 5: every deploy repeated work. Workers are told to stop under load, one after
// the other: no handler runs twice, which everybody would hear, and what was accepted
// before a worker ended is decided by the others at once. Only silence of half a
// minute would have a command taken from a worker that is merely gone.
func TestE2EFaultWorkersAreDeployed(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 1, 2, "FOYER_RECLAIM_IDLE=30s")
	told := d.listen(t)
	c := d.openTo(t, 20)
	for n := range 4 {
		c.flows("sales between two deploys", 10)
		old := d.workers[n%2]
		d.workers[n%2] = d.startWorker(t)
		old.terminate(t)
		waiting := c.undecided()
		testenv.Eventually(t, handedOnWithin, "what was accepted before the stop is decided", func() bool {
			return c.decided(waiting)
		})
	}
	c.goHome()
	for id, times := range told() {
		require.Equal(t, 1, times, "booking %s was handled %d times", id, times)
	}
}

// undecided are the bookings that were accepted and not told of yet.
func (c *crowd) undecided() []domain.BookingID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []domain.BookingID
	for id, status := range c.accepted {
		if status == domain.BookingPending {
			ids = append(ids, id)
		}
	}
	return ids
}

// decided asks for bookings themselves: their people may be slow to ask.
func (c *crowd) decided(ids []domain.BookingID) bool {
	operator := c.d.as(c.t, 0, "operator", "operator")
	for _, id := range ids {
		if b, err := operator.Booking(c.t.Context(), id); err != nil || b.Status == domain.BookingPending {
			return false
		}
	}
	return true
}

// listen counts how often each confirmed booking is told of until told is called:
// once for each run of its handler.
func (d *deployment) listen(t *testing.T) (told func() map[domain.BookingID]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	heard := d.redis.Client(t).Subscribe(ctx, events.NotificationChannel)
	t.Cleanup(func() { _ = heard.Close() })
	_, err := heard.Receive(ctx)
	require.NoError(t, err)
	counts := map[domain.BookingID]int{}
	var mu sync.Mutex
	messages := heard.Channel()
	go func() {
		for message := range messages {
			var fact struct {
				Event   string `json:"event"`
				Booking *struct {
					BookingID domain.BookingID     `json:"bookingId"`
					Status    domain.BookingStatus `json:"status"`
				} `json:"booking"`
			}
			if json.Unmarshal([]byte(message.Payload), &fact) == nil && fact.Event == events.EventBooking && fact.Booking != nil {
				mu.Lock()
				counts[fact.Booking.BookingID]++
				mu.Unlock()
			}
		}
	}()
	return func() map[domain.BookingID]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(counts)
	}
}
