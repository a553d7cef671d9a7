package foyer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

const (
	// truthWithin is how soon after a loss every socket shows what is true.
	truthWithin = 3 * time.Second
	// unreadyWithin is how soon a process says that it cannot hear Redis.
	unreadyWithin = 8 * time.Second
	// recoveredWithin is how soon it is ready again when it can.
	recoveredWithin = 10 * time.Second
)

// front is one address for processes that come and go, as a load balancer gives it.
type front struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
}

func newFront(t *testing.T, p *process) *front {
	t.Helper()
	f := &front{}
	f.to(t, p)
	f.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(f.target.Load()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(f.Close)
	return f
}

func (f *front) to(t *testing.T, p *process) {
	t.Helper()
	target, err := url.Parse(p.url())
	require.NoError(t, err)
	f.target.Store(target)
}

// waiter is a person with a socket, and what it said last.
type waiter struct {
	web  *client.Client
	live *client.Live

	mu    sync.Mutex
	place client.Admission
	moved int // how often the place was another
}

func (f *front) newWaiter(t *testing.T, name string, show domain.ShowID) *waiter {
	t.Helper()
	web, err := client.New(f.URL, client.WithToken(token(t, name)))
	require.NoError(t, err)
	w := &waiter{web: web, live: web.Live(t.Context(), client.LiveOptions{BackoffLeast: 100 * time.Millisecond, BackoffMost: time.Second})}
	t.Cleanup(w.live.Close)
	require.NoError(t, w.live.Join(t.Context(), show))
	go w.listen()
	testenv.Eventually(t, readyWithin, name+" has a place", func() bool { return w.status() != "" })
	return w
}

func (w *waiter) listen() {
	for frame := range w.live.Frames() {
		if frame.Admission == nil || frame.Polled {
			continue
		}
		w.mu.Lock()
		if w.place.RequestID != "" && w.place.RequestID != frame.Admission.RequestID {
			w.moved++
		}
		w.place = *frame.Admission
		w.mu.Unlock()
	}
}

func (w *waiter) status() domain.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.place.Status
}

// line is a show with one slot, somebody in it, and people who wait in order.
func (f *front) line(t *testing.T, d *deployment, people int) (domain.ShowID, []*waiter) {
	t.Helper()
	show := d.putOnSale(t, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive = 1
		s.Queue = &queue
	})
	waiters := make([]*waiter, people)
	for i := range waiters {
		waiters[i] = f.newWaiter(t, fmt.Sprintf("person-%d", i), show)
	}
	require.Equal(t, domain.StatusAdmitted, waiters[0].status())
	return show, waiters
}

// next has the person in front leave, and the one behind hear of the turn in time.
func next(t *testing.T, show domain.ShowID, waiters []*waiter, within time.Duration) []*waiter {
	t.Helper()
	require.NoError(t, waiters[0].web.Leave(context.WithoutCancel(t.Context()), show))
	testenv.Eventually(t, within, "the next hears of the turn", func() bool {
		return waiters[1].status() == domain.StatusAdmitted && waiters[0].status() == domain.StatusLeft
	})
	for _, w := range waiters[2:] {
		require.Equal(t, domain.StatusWaiting, w.status())
	}
	return waiters[1:]
}

func (d *deployment) ready(t *testing.T) bool {
	t.Helper()
	for _, p := range d.apis {
		response, err := http.Get(p.url() + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return false
		}
	}
	return true
}

// R19, R22, R27, R28, T57: a process whose subscription was cut, or whose Redis froze, or
// cut it off for being slow, must notice by itself, say that it is not ready, and tell
// all its sockets what they missed. It runs beside no other test, for the times that
// it holds it to.
func TestE2ESocketsShowTheTruthAfterALoss(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 1, 1)
	f := newFront(t, d.apis[0])
	show, waiters := f.line(t, d, 6)
	rdb := d.redis.Client(t)

	killed, err := rdb.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Int()
	require.NoError(t, err)
	require.GreaterOrEqual(t, killed, 1)
	waiters = next(t, show, waiters, truthWithin)

	// A subscriber that cannot keep up is cut by Redis without a word.
	before := subscribers(t, rdb)
	require.NoError(t, rdb.ConfigSet(t.Context(), "client-output-buffer-limit", "pubsub 1 1 1").Err())
	require.NoError(t, rdb.Publish(t.Context(), events.NotificationChannel, strings.Repeat("x", 1<<20)).Err())
	testenv.Eventually(t, recoveredWithin, "the subscriber is cut", func() bool { return !slices.Equal(before, subscribers(t, rdb)) })
	require.NoError(t, rdb.ConfigSet(t.Context(), "client-output-buffer-limit", "pubsub 33554432 8388608 60").Err())
	waiters = next(t, show, waiters, truthWithin)

	d.redis.Stop(syscall.SIGSTOP)
	frozen := time.Now()
	testenv.Eventually(t, unreadyWithin, "not being ready is said", func() bool { return !d.ready(t) })
	testenv.Eventually(t, time.Minute, "Redis to have been frozen for 10 s", func() bool { return time.Since(frozen) > 10*time.Second })
	d.redis.Stop(syscall.SIGCONT)
	testenv.Eventually(t, recoveredWithin, "being ready again", func() bool { return d.ready(t) })
	waiters = next(t, show, waiters, truthWithin)
	require.Equal(t, domain.StatusAdmitted, waiters[0].status())
}

// subscribers are the ids of the connections that are subscribed.
func subscribers(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	list, err := rdb.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	require.NoError(t, err)
	var ids []string
	for line := range strings.Lines(list) {
		id, _, _ := strings.Cut(line, " ")
		ids = append(ids, id)
	}
	return ids
}

// R36, R37, R42: a process that is killed, and a deploy of every process in turn, cost
// nobody the place. The clients come back by themselves, and find it as it was.
func TestE2ESocketsSurviveADeploy(t *testing.T) {
	t.Parallel()
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 2, 1)
	f := newFront(t, d.apis[0])
	show, waiters := f.line(t, d, 8)
	order := func() []domain.RequestID {
		var line []domain.RequestID
		for _, w := range waiters {
			place, err := w.web.Place(t.Context(), show)
			require.NoError(t, err)
			line = append(line, place.RequestID)
			if w != waiters[0] {
				require.NotNil(t, place.Rank)
				require.EqualValues(t, len(line)-1, *place.Rank)
			}
		}
		return line
	}
	before := order()

	f.to(t, d.apis[1])
	d.apis[0].kill()
	require.Equal(t, before, order())
	waiters, before = next(t, show, waiters, recoveredWithin), before[1:]
	require.Equal(t, before, order())

	for range 2 { // every process that there is now, one after the other
		old := d.apis[1]
		d.apis[1] = start(t, d.env, "foyer: listening on ", "api")
		f.to(t, d.apis[1])
		old.terminate(t)
		d.workers[0].terminate(t)
		d.workers[0] = d.startWorker(t)
		require.Equal(t, before, order())
		waiters, before = next(t, show, waiters, recoveredWithin), before[1:]
	}
	for _, w := range waiters {
		w.mu.Lock()
		require.Zero(t, w.moved, "a place stays the same place")
		w.mu.Unlock()
	}
	require.False(t, slices.ContainsFunc(waiters[1:], func(w *waiter) bool { return w.status() != domain.StatusWaiting }))
}
