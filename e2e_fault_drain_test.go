package foyer_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

const (
	// handedOnWithin is how soon after a worker is told to stop everything that it had is
	// done, by itself or elsewhere.
	handedOnWithin = 2 * time.Second
	// reclaimAfter is the silence after which a dead worker's commands are taken over,
	// sweptWithin the longest time to the look that finds them, by the defaults of events,
	// and doneWithin what doing them may take.
	reclaimAfter = time.Second
	sweptWithin  = 5*time.Second + 5*time.Second/4
	doneWithin   = time.Second
	// settledWithin is how soon Redis has what SQL decided, although the worker died in
	// between, where commands are taken over after 3 s.
	settledWithin = 3*time.Second + sweptWithin + doneWithin
)

// deploySlowly starts workers whose way to SQL is so long that there is always a handler
// in the middle of its work.
func deploySlowly(t *testing.T, workers int, env ...string) *deployment {
	t.Helper()
	dbURL := testenv.DatabaseURL(t)
	d := deployOn(t, servers{redis: testenv.StartRedis(t), dbURL: dbURL}, 1, 0, env...)
	at := address(dbURL)
	way := testenv.StartProxy(t, at)
	way.Delay(20 * time.Millisecond)
	d.env = append(d.env, "FOYER_DATABASE_URL="+strings.Replace(dbURL, at, way.Addr, 1))
	for range workers {
		d.workers = append(d.workers, d.startWorker(t))
	}
	return d
}

// address is the host and port of a database's URL.
func address(url string) string {
	at, _, _ := strings.Cut(url[strings.Index(url, "@")+1:], "/")
	return at
}

// Trap 5: every deploy repeated work. Workers are told to stop under load, one after
// the other: no handler runs twice, which everybody would hear, and what was accepted
// before is decided at once, by the worker that ends or by the others. Only silence of
// half a minute would have a command taken from a worker that is merely gone.
func TestE2EFaultWorkersAreDeployed(t *testing.T) {
	d := deploySlowly(t, 2, "FOYER_RECLAIM_IDLE=30s")
	told := d.listen(t)
	c := d.openTo(t, 20)
	for n := range 4 {
		c.flows("sales between two deploys", 10)
		old := d.workers[n%2]
		d.workers[n%2] = d.startWorker(t)
		waiting := c.pending(t)
		require.NoError(t, old.cmd.Process.Signal(syscall.SIGTERM))
		testenv.Eventually(t, handedOnWithin, "what was accepted before the stop is decided", func() bool {
			return c.decided(waiting)
		})
		old.ends(t)
	}
	c.goHome()
	for decision, times := range told() {
		require.Equal(t, 1, times, "%s was handled %d times", decision, times)
	}
}

// H1: a worker is killed in the middle of its work, and nobody is told. What it had is
// taken over as soon as it has been silent for long enough and somebody looks.
func TestE2EFaultWorkersAreKilled(t *testing.T) {
	d := deploySlowly(t, 2, "FOYER_RECLAIM_IDLE="+reclaimAfter.String())
	c := d.openTo(t, 20)
	for n := range 2 {
		c.flows("sales between two deaths", 10)
		waiting := c.pending(t)
		d.workers[n].kill()
		testenv.Eventually(t, reclaimAfter+sweptWithin+doneWithin, "what was accepted before the death is decided", func() bool {
			return c.decided(waiting)
		})
		d.workers[n] = d.startWorker(t)
	}
	c.goHome()
}

// pending waits until there are bookings that nobody has decided yet.
func (c *crowd) pending(t *testing.T) (waiting []domain.BookingID) {
	t.Helper()
	testenv.Eventually(t, workedWithin, "bookings that wait", func() bool {
		waiting = slices.DeleteFunc(c.undecided(), func(id domain.BookingID) bool { return c.decided([]domain.BookingID{id}) })
		return len(waiting) > 0
	})
	return waiting
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

// decision is what was told of a booking.
type decision struct {
	booking domain.BookingID
	status  domain.BookingStatus
}

// listen counts how often each decision about a booking is told until told is called:
// once for each run of its handler.
func (d *deployment) listen(t *testing.T) (told func() map[decision]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	heard := d.redis.Client(t).Subscribe(ctx, events.NotificationChannel)
	t.Cleanup(func() { _ = heard.Close() })
	_, err := heard.Receive(ctx)
	require.NoError(t, err)
	counts := map[decision]int{}
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
				counts[decision{fact.Booking.BookingID, fact.Booking.Status}]++
				mu.Unlock()
			}
		}
	}()
	return func() map[decision]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(counts)
	}
}
