package events

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// listener keeps what a Bus tells it.
type listener struct {
	mu    sync.Mutex
	notes []Notification
	gaps  []string
}

func (l *listener) Notify(n Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, n)
}

func (l *listener) Gap(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = append(l.gaps, reason)
}

func (l *listener) versions(show domain.ShowID) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var versions []int64
	for _, n := range l.notes {
		if n.ShowID == show {
			versions = append(versions, n.Version)
		}
	}
	return versions
}

func (l *listener) reasons() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.gaps)
}

// listen runs a bus as an API process does, until the test ends.
func (w *world) listen(cfg BusConfig) (*Bus, *listener) {
	w.t.Helper()
	cfg.Log = w.log
	publishing, receiving := w.client(), w.client()
	bus, heard := NewBus(publishing, cfg), &listener{}
	require.False(w.t, bus.Healthy())
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bus.Run(ctx, receiving, heard) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("bus: %v", err)
		}
		_ = publishing.Close()
		_ = receiving.Close()
		if bus.Healthy() {
			w.t.Error("a bus that has ended is not healthy")
		}
	})
	w.eventually("the bus is healthy", bus.Healthy)
	return bus, heard
}

func count(from, to int64) []int64 {
	var all []int64
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// T61: a broadcast reached one process only. Every subscriber gets every
// notification, its own among them, in order and without a gap.
func TestEverySubscriberGetsEverything(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 8} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, heardFirst := w.listen(BusConfig{Partitions: partitions})
			second, heardSecond := w.listen(BusConfig{Partitions: partitions})
			var publishing sync.WaitGroup
			var shows []domain.ShowID
			for _, bus := range []*Bus{first, second} {
				for range 5 {
					show := testenv.ShowID(t)
					shows = append(shows, show)
					publishing.Go(func() {
						for v := int64(1); v <= 100; v += 2 {
							if err := bus.Publish(t.Context(),
								Notification{Event: EventStats, ShowID: show, Version: v},
								Notification{Event: EventStats, ShowID: show, Version: v + 1}); err != nil {
								t.Errorf("publish: %v", err)
							}
						}
					})
				}
			}
			publishing.Wait()
			for _, heard := range []*listener{heardFirst, heardSecond} {
				for _, show := range shows {
					w.eventually("all have come", func() bool { return len(heard.versions(show)) == 100 })
					require.Equal(t, count(1, 100), heard.versions(show))
				}
				require.Equal(t, []string{GapSubscribed}, heard.reasons())
			}
		})
	}
}

// T57, T58: what is published while a subscriber's connection is down is lost;
// the subscriber must come back by itself and must say that something is missing.
func TestKilledSubscriptionComesBackWithAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	bus, heard := w.listen(BusConfig{})
	show := testenv.ShowID(t)
	require.NoError(t, bus.Publish(ctx, Notification{Event: EventShow, ShowID: show, Version: 1}))
	w.eventually("the first has come", func() bool { return len(heard.versions(show)) == 1 })
	killed, err := w.rdb.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Int()
	require.NoError(t, err)
	require.Equal(t, 1, killed)
	w.eventually("it says that something may be missing", func() bool {
		return slices.Equal(heard.reasons(), []string{GapSubscribed, GapReconnected})
	})
	require.NoError(t, bus.Publish(ctx, Notification{Event: EventShow, ShowID: show, Version: 2}))
	w.eventually("the next has come", func() bool { return slices.Equal(heard.versions(show), []int64{1, 2}) })
	w.eventually("it is healthy", bus.Healthy)
}

// T58: the whole server ends and comes back.
func TestRestartedRedisIsHeardAgain(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	w := worldOn(t, server.URL)
	bus, heard := w.listen(BusConfig{Heartbeat: 200 * time.Millisecond})
	server.Kill()
	w.eventually("it is unhealthy", func() bool { return !bus.Healthy() })
	server.Restart()
	w.eventually("it is healthy", bus.Healthy)
	require.Contains(t, heard.reasons(), GapReconnected)
	show := testenv.ShowID(t)
	require.NoError(t, bus.Publish(t.Context(), Notification{Event: EventShow, ShowID: show, Version: 1}))
	w.eventually("delivery goes on", func() bool { return len(heard.versions(show)) == 1 })
}

// T59: a subscriber that hears nothing stayed green. The client library never
// notices a frozen server; one's own heartbeats do.
func TestFrozenRedisIsNoticed(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	w := worldOn(t, server.URL)
	bus, heard := w.listen(BusConfig{Heartbeat: 200 * time.Millisecond})
	server.Stop(syscall.SIGSTOP)
	before := w.dials.Load()
	w.eventually("it is unhealthy", func() bool { return !bus.Healthy() })
	w.eventually("it gives the connection up", func() bool { return w.dials.Load() > before })
	server.Stop(syscall.SIGCONT)
	w.eventually("it is healthy", bus.Healthy)
	w.eventually("it says that something may be missing", func() bool { return slices.Contains(heard.reasons(), GapReconnected) })
}

// T57: a hole in a publisher's numbers is a loss; a number seen before is a
// repeat, and is not told twice; another publisher's numbers are its own.
func TestHoleInTheNumbersIsAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, heard := w.listen(BusConfig{})
	show := testenv.ShowID(t)
	say := func(publisher string, seq uint64) {
		payload := fmt.Sprintf(`{"event":"SHOW","showId":%q,"version":%d,"publisher":%q,"seq":%d,"at":"2026-05-01T18:30:00Z"}`,
			show, seq, publisher, seq)
		require.NoError(t, w.rdb.Publish(t.Context(), NotificationChannel, payload).Err())
	}
	require.NoError(t, w.rdb.Publish(t.Context(), NotificationChannel, "nonsense").Err())
	say("p", 7)
	say("q", 1)
	say("p", 8)
	say("p", 8)
	say("p", 7)
	say("p", 9)
	say("p", 12)
	say("p", 13)
	w.eventually("all have come", func() bool { return len(heard.versions(show)) == 6 })
	require.Equal(t, []int64{7, 1, 8, 9, 12, 13}, heard.versions(show))
	require.Equal(t, []string{GapSubscribed, GapSequence}, heard.reasons())
}

// A publisher that cannot reach Redis leaves a hole that the others see.
func TestFailedPublishLeavesAHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, heard := w.listen(BusConfig{})
	rdb := w.client()
	defer rdb.Close()
	breaking := &breakPipeline{}
	rdb.AddHook(breaking)
	bus := NewBus(rdb, BusConfig{})
	show := testenv.ShowID(t)
	for version := int64(1); version <= 3; version++ {
		breaking.on = version == 2
		err := bus.Publish(t.Context(), Notification{Event: EventShow, ShowID: show, Version: version})
		require.Equal(t, version == 2, err != nil)
	}
	w.eventually("the others have come", func() bool { return slices.Equal(heard.versions(show), []int64{1, 3}) })
	require.Equal(t, []string{GapSubscribed, GapSequence}, heard.reasons())
}

// breakPipeline fails pipelines while it is on.
type breakPipeline struct{ on bool }

func (b *breakPipeline) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (b *breakPipeline) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b *breakPipeline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if b.on {
			return errGone
		}
		return next(ctx, commands)
	}
}

// A caller that gives up does not keep others from publishing.
func TestPublishHeedsItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bus, heard := w.listen(BusConfig{Heartbeat: time.Hour})
	_ = heard
	bus.turn <- struct{}{} // somebody is publishing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, bus.Publish(ctx, Notification{Event: EventShow}), context.Canceled)
	<-bus.turn
	require.NoError(t, bus.Publish(t.Context(), Notification{Event: EventShow}))
	require.NoError(t, bus.Publish(t.Context()))
}

// The embedded twin carries notifications as well.
func TestEmbeddedRedisCarriesNotifications(t *testing.T) {
	t.Parallel()
	embedded := miniredis.RunT(t)
	w := worldOn(t, "redis://"+embedded.Addr()+"/0")
	bus, heard := w.listen(BusConfig{Partitions: 2})
	show := testenv.ShowID(t)
	require.NoError(t, bus.Publish(t.Context(), Notification{Event: EventShow, ShowID: show, Version: 1}))
	w.eventually("it has come", func() bool { return len(heard.versions(show)) == 1 })
}

func TestBusReceivesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bus, heard := w.listen(BusConfig{})
	require.Error(t, bus.Run(t.Context(), w.rdb, heard))
}
