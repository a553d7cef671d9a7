package events

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

func TestMain(m *testing.M) { testenv.MainLeak(m) }

// patience is how long a test waits for what should happen soon.
const patience = 60 * time.Second

// world is a Redis of a test's own, which it may fill and break.
type world struct {
	t        *testing.T
	url      string
	rdb      *redis.Client
	commands *Commands
	log      *slog.Logger
	dials    *atomic.Int64 // connections that clients of this world have tried to make
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, testenv.StartRedis(t).URL)
}

func worldOn(t *testing.T, url string) *world {
	t.Helper()
	w := &world{t: t, url: url, dials: &atomic.Int64{}, log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	w.rdb = w.client()
	t.Cleanup(func() { _ = w.rdb.Close() })
	commands, err := NewCommands(w.rdb, w.log)
	require.NoError(t, err)
	w.commands = commands
	return w
}

// testLog shows what a failed test logged.
type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	if l.t.Context().Err() == nil { // after the test logging is not allowed
		l.t.Log(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// client makes a client as a worker process has them.
func (w *world) client() *redis.Client {
	w.t.Helper()
	options, err := redis.ParseURL(w.url)
	require.NoError(w.t, err)
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	var dialer net.Dialer
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.dials.Add(1)
		return dialer.DialContext(ctx, network, addr)
	}
	return redis.NewClient(options)
}

// fast makes what takes half a minute in production take two seconds: little
// enough to wait for, and long enough that a busy machine renews in time.
func fast() Timing {
	return Timing{
		Block: 50 * time.Millisecond, Idle: 2 * time.Second, Sweep: 100 * time.Millisecond,
		Retry: 5 * time.Millisecond, Drain: 5 * time.Second, Janitor: 50 * time.Millisecond,
	}
}

// worker is a running Consumer.
type worker struct {
	*Consumer
	stop func() // drains, and returns when that is done
}

// work starts a consumer of bookings, or of the groups that change names.
func (w *world) work(handlers Handlers, change ...func(*ConsumerConfig)) *worker {
	w.t.Helper()
	cfg := ConsumerConfig{
		Redis:  func(string) redis.UniversalClient { return w.client() },
		Groups: []string{GroupBooking},
		Log:    w.log,
		Timing: fast(),
	}
	for _, c := range change {
		c(&cfg)
	}
	if handlers.CancelBooking == nil {
		handlers.CancelBooking = func(context.Context, Delivery, CancelBooking) error { return nil }
	}
	consumer, err := NewConsumer(cfg, handlers)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Errorf("consumer: %v", err)
			}
		})
	}
	w.t.Cleanup(stop)
	select {
	case <-consumer.Running():
	case <-time.After(patience):
		w.t.Fatal("consumer does not run")
	}
	return &worker{consumer, stop}
}

// book publishes n bookings and returns their command ids; few come in order.
func (w *world) book(n int) []domain.CommandID {
	w.t.Helper()
	ids := make([]domain.CommandID, n)
	var publishing sync.WaitGroup
	publishers := 1
	if n > 20 {
		publishers = 8
	}
	for p := range publishers {
		publishing.Go(func() {
			for i := p; i < n; i += publishers {
				ids[i] = domain.CommandID(fmt.Sprintf("c-%d-%s", i, domain.NewID()))
				if err := w.commands.BookSeats(w.t.Context(), ids[i], BookSeats{Booking: booking(ids[i])}); err != nil {
					w.t.Errorf("publish: %v", err)
				}
			}
		})
	}
	publishing.Wait()
	return ids
}

func booking(id domain.CommandID) domain.Booking {
	return domain.Booking{
		BookingID: domain.BookingID("b-" + id), CommandID: id, ShowID: "t-show", PersonID: "ann", RequestID: "req-1",
		HoldID: "hold-1", Seats: []domain.SeatID{"A-1-1", "A-1-2"}, Price: 5050, Status: domain.BookingPending,
		CreatedAt: time.Date(2026, 5, 1, 18, 30, 0, 0, time.UTC),
	}
}

// raw puts an entry on the bookings stream as it is.
func (w *world) raw(values ...any) string {
	w.t.Helper()
	id, err := w.rdb.XAdd(w.t.Context(), &redis.XAddArgs{Stream: StreamBooking, Values: values}).Result()
	require.NoError(w.t, err)
	return id
}

func (w *world) pending() int64 {
	w.t.Helper()
	p, err := w.rdb.XPending(w.t.Context(), StreamBooking, "booking-workers").Result()
	require.NoError(w.t, err)
	return p.Count
}

func (w *world) settled() {
	w.t.Helper()
	testenv.Eventually(w.t, patience, "nothing is pending", func() bool { return w.pending() == 0 })
}

func (w *world) letters() []DeadLetter {
	w.t.Helper()
	letters, err := NewDeadLetters(w.rdb).List(w.t.Context(), StreamBooking, 100)
	require.NoError(w.t, err)
	return letters
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	testenv.Eventually(w.t, patience, what, ok)
}

// tally counts how often each command ran.
type tally struct {
	mu   sync.Mutex
	runs map[domain.CommandID]int
}

func (y *tally) add(id domain.CommandID) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.runs == nil {
		y.runs = map[domain.CommandID]int{}
	}
	y.runs[id]++
	return y.runs[id]
}

func (y *tally) of(id domain.CommandID) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.runs[id]
}

func (y *tally) distinct() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.runs)
}

func (y *tally) total() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	sum := 0
	for _, n := range y.runs {
		sum += n
	}
	return sum
}
