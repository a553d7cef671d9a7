package lua

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// contextOf is a context of the test, cancelled from the start when asked for.
func contextOf(t *testing.T, cancelled bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	if cancelled {
		cancel()
	}
	return ctx, cancel
}

// Phase is derived in Go for what SQL shows and in Lua for what is decided. They must
// never differ.
func TestPhaseEqualsTheDomains(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		now := time.Now().Truncate(time.Millisecond)
		times := []*time.Time{nil}
		for _, d := range []time.Duration{-2 * time.Hour, -time.Hour, time.Hour, 2 * time.Hour} {
			at := now.Add(d)
			times = append(times, &at)
		}
		const all = 5 * 4 * 5 * 8
		steps := New(rdb)
		for n := 0; n < all; n += all / fewer(t, all) {
			show := defaultShow(testenv.ShowID(t))
			show.PrequeueAt, show.OpensAt, show.ClosesAt = times[n%5], *times[1+n/5%4], times[n/20%5]
			show.Paused, show.Closed = n/100%2 == 1, n/200%2 == 1
			var sold []domain.SoldSeat
			if n/400%2 == 1 {
				sold = soldTo("r", "b", show.Seating.AllSeats()...)
			}
			_, err := steps.Restore(t.Context(), show, sold)
			require.NoError(t, err)
			stats, err := steps.Stats(t.Context(), show.ID)
			require.NoError(t, err)
			require.Equal(t, show.Phase(now, len(sold)), stats[0].Phase, "%+v", show)
		}
	})
}

// Settings that arrive out of order must not undo newer ones.
func TestOlderSettingsAreIgnored(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		old := w.show
		w.change(func(s *domain.Show) { s.Queue.MaxActive = 9; s.Closed = true })
		before := w.stats()
		require.NoError(t, w.Configure(t.Context(), old))
		require.Equal(t, before, w.stats())
		end := time.Now().Add(time.Hour)
		w.change(func(s *domain.Show) { s.Closed, s.ClosesAt = false, &end })
		require.Equal(t, domain.PhaseOpen, w.stats().Phase)
		w.travel(2 * time.Hour)
		require.Equal(t, domain.PhaseClosed, w.stats().Phase)
		w.change(func(s *domain.Show) { s.ClosesAt = nil })
		require.Equal(t, domain.PhaseOpen, w.stats().Phase)
	})
}

// A restart or failover forgets all scripts; single calls and pipelines both recover.
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	options, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	w := load(t, rdb)
	w.join("a")
	require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
	require.Equal(t, domain.StatusAdmitted, w.join("a").Status)
	require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
	_, found, err := w.Places(t.Context(), []PlaceKey{{w.show.ID, "a"}, {w.show.ID, "b"}})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, found)
	require.EqualValues(t, 1, w.stats().Joined)
}

// All who find no show wait for one load; without a loader each is told.
func TestAMissingShowIsLoadedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		show := defaultShow(testenv.ShowID(t))
		_, err := New(rdb).Place(t.Context(), show.ID, "a")
		require.ErrorIs(t, err, domain.ErrNotLoaded)

		plain := New(rdb)
		var loads atomic.Int64
		steps := New(rdb, WithLoader(func(ctx context.Context, id domain.ShowID) error {
			loads.Add(1)
			_, err := plain.Restore(ctx, show, nil)
			return err
		}))
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				_, _, err := steps.Join(t.Context(), JoinRequest{ShowID: show.ID, RequestID: domain.RequestID(fmt.Sprint("p", i))})
				if err != nil {
					t.Error(err)
				}
				if _, err := steps.Stats(t.Context(), show.ID); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, loads.Load())
		require.NoError(t, steps.Configure(t.Context(), show))

		failing := New(rdb, WithLoader(func(context.Context, domain.ShowID) error { return domain.ErrShowNotFound }))
		_, err = failing.Place(t.Context(), testenv.ShowID(t), "a")
		require.ErrorIs(t, err, domain.ErrShowNotFound)
		_, err = failing.Stats(t.Context(), testenv.ShowID(t))
		require.ErrorIs(t, err, domain.ErrShowNotFound)
	})
}

// A lost connection is an error that says what failed and keeps its cause.
func TestAnUnreachableRedisIsAnError(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	options, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	options.MaxRetries, options.DialerRetries = -1, 1
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	w := load(t, rdb)
	server.Kill()
	_, err = w.Place(t.Context(), w.show.ID, "a")
	require.ErrorContains(t, err, "admission_place")
	require.NotErrorIs(t, err, domain.ErrNotJoined)
	_, err = w.Stats(t.Context(), w.show.ID)
	require.ErrorContains(t, err, "show_stats")
	require.Error(t, w.joinError("a"))
	require.Error(t, w.joinError("a"), "the next batch is not stuck behind the failed one")
}

// A ticket opens one socket, in time, and carries any bytes.
func TestTicketsAreGoodOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := unloaded(t, rdb)
		payload := []byte("a:b\x00\xff\n}")
		require.NoError(t, w.IssueTicket(t.Context(), "t1"+string(w.show.ID), payload, 30*time.Second))
		got, ok, err := w.RedeemTicket(t.Context(), "t1"+string(w.show.ID))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, payload, got)
		_, ok, err = w.RedeemTicket(t.Context(), "t1"+string(w.show.ID))
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, w.IssueTicket(t.Context(), "t2"+string(w.show.ID), nil, 30*time.Second))
		w.travel(30 * time.Second)
		_, ok, err = w.RedeemTicket(t.Context(), "t2"+string(w.show.ID))
		require.NoError(t, err)
		require.False(t, ok, "the deadline is judged, whether or not the key is gone")
		require.Error(t, w.IssueTicket(t.Context(), "t3", nil, 0))
	})
}

// A person reads their own write, also when notes arrive out of order.
func TestReadNotesNeverGoBack(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := unloaded(t, rdb)
		person := domain.PersonID("p{}" + string(w.show.ID))
		note := func(room domain.RoomID, upTo, epoch int64) {
			require.NoError(t, w.NoteRead(t.Context(), domain.ReadMark{RoomID: room, PersonID: person, UpTo: upTo, Epoch: epoch}))
		}
		noted := func() map[domain.RoomID]domain.ReadMark {
			notes, err := w.NotedReads(t.Context(), person, []domain.RoomID{"r1", "none", "r2"})
			require.NoError(t, err)
			return notes
		}
		require.Empty(t, noted())
		note("r1", 7, 0)
		note("r1", 5, 0)
		note("r2", 1, 4)
		require.Equal(t, map[domain.RoomID]domain.ReadMark{
			"r1": {RoomID: "r1", PersonID: person, UpTo: 7},
			"r2": {RoomID: "r2", PersonID: person, UpTo: 1, Epoch: 4},
		}, noted())
		note("r1", 2, 1) // marked unread meanwhile: a new epoch may go back
		note("r1", 9, 0) // and what is from before is void
		require.Equal(t, domain.ReadMark{RoomID: "r1", PersonID: person, UpTo: 2, Epoch: 1}, noted()["r1"])
		w.travel(noteLife)
		require.Empty(t, noted())
		note("r1", 1, 0)
		require.EqualValues(t, 1, noted()["r1"].UpTo, "what is over does not count")
		empty, err := w.NotedReads(t.Context(), person, nil)
		require.NoError(t, err)
		require.Empty(t, empty)
	})
}

// Callers who come while a batch is under way travel in the next, in order; a batch
// that fails fails its own callers only, and a panic leaves nobody waiting.
func TestGathering(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan []int, 10), make(chan error)
	g := newGatherer(3, func(_ context.Context, _ domain.ShowID, in []int) ([]outcome[int], error) {
		started <- in
		err := <-proceed
		outcomes := make([]outcome[int], len(in))
		for i, n := range in {
			outcomes[i].value = n * n
		}
		return outcomes, err
	})
	results := make(chan string, 10)
	call := func(ctx context.Context, n int) {
		go func() {
			got, err := g.do(ctx, "s", n)
			results <- fmt.Sprint(n, " ", got, " ", err)
		}()
	}
	queued := func(n int) {
		testenv.Eventually(t, 5*time.Second, "calls wait", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.lines["s"] != nil && len(g.lines["s"].waiting) == n
		})
	}
	call(t.Context(), 1)
	require.Equal(t, []int{1}, <-started)
	quitting, quit := context.WithCancel(t.Context())
	for i, n := range []int{2, 3, 4, 5, 6} {
		ctx := t.Context()
		if n == 3 {
			ctx = quitting
		}
		call(ctx, n)
		queued(i + 1)
	}
	quit()
	require.Equal(t, "3 0 context canceled", <-results)
	proceed <- nil
	require.Equal(t, "1 1 <nil>", <-results)
	require.Equal(t, []int{2, 4, 5}, <-started, "at most three")
	proceed <- errors.New("lost")
	for range 3 {
		require.Contains(t, <-results, "lost")
	}
	require.Equal(t, []int{6}, <-started)
	proceed <- nil
	require.Equal(t, "6 36 <nil>", <-results)
	testenv.Eventually(t, 5*time.Second, "nothing is left over", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.lines) == 0
	})
}

func TestAPanicInABatchLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	calls := 0
	g := newGatherer(3, func(_ context.Context, _ domain.ShowID, in []int) ([]outcome[int], error) {
		if calls++; calls == 1 {
			panic("first")
		}
		return make([]outcome[int], len(in)), nil
	})
	require.Panics(t, func() { _, _ = g.do(t.Context(), "s", 1) })
	_, err := g.do(t.Context(), "s", 2)
	require.NoError(t, err)
}
