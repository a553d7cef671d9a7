package events

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// H1, S56: entries of a consumer that vanished between reading and acknowledging
// were never read again. Another takes them, and learns that it is not the first.
func TestVanishedConsumersEntriesAreTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(300) // more than a page, more than there are places
	w.abandon(ids...)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		assert.Equal(t, 2, d.Attempt)
		ran.add(d.CommandID)
		return nil
	}})
	w.eventually("all have run", func() bool { return ran.distinct() == len(ids) })
	w.settled()
	require.Equal(t, len(ids), ran.total())
}

// H1 with a real process and a real kill: the child runs a consumer whose
// handlers never return, and is killed while they run.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	block := Handlers{BookSeats: func(ctx context.Context, d Delivery, _ BookSeats) error {
		fmt.Println("running", d.CommandID)
		<-ctx.Done()
		return ctx.Err()
	}}
	if url := os.Getenv("FOYER_TEST_CONSUME"); url != "" {
		worldOn(t, url).work(block)
		select {}
	}
	w := newWorld(t)
	ids := w.book(20)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcessLosesNothing$")
	child.Env = append(os.Environ(), "FOYER_TEST_CONSUME="+w.url)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for running := 0; running < len(ids) && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "running") {
			running++
		}
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.EqualValues(t, len(ids), w.pending())

	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.eventually("all have run", func() bool { return ran.distinct() == len(ids) })
	w.settled()
	require.Equal(t, len(ids), ran.total())
}

// A command that ends its worker each time must end up as a dead letter without
// being run: the deliveries are counted before running.
func TestCommandThatKillsItsWorkersDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(2)
	entries := w.abandon(ids...)
	for _, e := range []struct {
		entry string
		count int
	}{{entries[0], 5}, {entries[1], 4}} {
		require.NoError(t, w.rdb.Do(t.Context(), "XCLAIM", StreamBooking, "booking-workers", ghost, 0, e.entry,
			"RETRYCOUNT", e.count, "IDLE", 100_000, "JUSTID").Err())
	}
	var ran tally
	told := make(chan string, 1)
	w.work(Handlers{
		BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
			assert.Equal(t, 5, d.Attempt)
			ran.add(d.CommandID)
			return nil
		},
		BookingDead: func(_ context.Context, d Delivery, c BookSeats, reason string) error {
			assert.Equal(t, c.Booking.CommandID, d.CommandID)
			told <- reason
			return nil
		},
	})
	require.Equal(t, DeadExhausted, <-told)
	w.eventually("one is dead", func() bool { return len(w.letters()) == 1 })
	w.settled()
	require.Equal(t, ids[0], w.letters()[0].CommandID)
	require.Equal(t, 1, ran.total())
	require.Equal(t, 1, ran.of(ids[1]))
}

// S3, S40: an entry that was deleted while it was pending was claimed 1427 times.
// It leaves the pending list instead.
func TestDeletedPendingEntryIsLetGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entries := w.abandon(w.book(2)...)
	require.NoError(t, w.rdb.XDel(t.Context(), StreamBooking, entries[0]).Err())
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.eventually("the other has run", func() bool { return ran.total() == 1 })
	w.settled()
}

// A storm of abandoned entries has places of its own and keeps no new command
// waiting; slow new ones keep no abandoned entry waiting.
func TestAbandonedAndNewDoNotStarveEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.book(100)
	w.abandon(old...)
	var fresh, again atomic.Int32
	release := make(chan struct{})
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		if d.Attempt == 1 {
			fresh.Add(1)
			return nil
		}
		again.Add(1)
		<-release
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Limits = map[string]Limits{GroupBooking: {InFlight: 8}} })
	w.eventually("the abandoned have their places", func() bool { return again.Load() == 2 })
	w.book(50)
	w.eventually("the new have run", func() bool { return fresh.Load() == 50 })
	require.EqualValues(t, 2, again.Load(), "no more than a quarter of the places")
	close(release)
	w.eventually("the abandoned have run", func() bool { return again.Load() == 100 })
	w.settled()
}

// A handler whose command another worker took over must stop, and must leave the
// command to the other.
func TestLostOwnershipCancelsTheHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book(1)
	started := make(chan string, 1)
	cause := make(chan error, 1)
	w.work(Handlers{BookSeats: func(ctx context.Context, d Delivery, _ BookSeats) error {
		started <- d.EntryID
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}})
	entry := <-started
	require.NoError(t, w.rdb.XClaim(t.Context(), &redis.XClaimArgs{
		Stream: StreamBooking, Group: "booking-workers", Consumer: ghost, Messages: []string{entry},
	}).Err())
	require.ErrorIs(t, <-cause, errLostOwnership)
	pending, err := w.rdb.XPendingExt(t.Context(), &redis.XPendingExtArgs{
		Stream: StreamBooking, Group: "booking-workers", Start: "-", End: "+", Count: 10,
	}).Result()
	require.NoError(t, err)
	require.Len(t, pending, 1)
	require.Equal(t, ghost, pending[0].Consumer)
	require.Empty(t, w.letters())
}

// S22: what a stopping worker cannot finish in time is another's at once, without
// waiting until it is idle, and an attempt that never began is not counted.
func TestStoppingHandsBackWhatItCannotFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	patient := func(cfg *ConsumerConfig) {
		cfg.Timing.Idle, cfg.Timing.Sweep, cfg.Timing.Drain = time.Hour, time.Hour, 10*time.Millisecond
		cfg.Limits = map[string]Limits{GroupBooking: {InFlight: 4}}
	}
	ids := w.book(6)
	stuck := make(chan struct{})
	var begun tally
	first := w.work(Handlers{BookSeats: func(ctx context.Context, d Delivery, _ BookSeats) error {
		begun.add(d.CommandID)
		switch d.CommandID {
		case ids[0]: // heeds its context
			<-ctx.Done()
			return ctx.Err()
		case ids[1]: // does not
			<-stuck
			return nil
		case ids[2]: // waits for another try
			return errors.New("not yet")
		}
		<-ctx.Done()
		return nil // finishes when told to
	}}, patient, func(cfg *ConsumerConfig) { cfg.Timing.Retry = time.Hour })
	w.eventually("the places are taken and one waits", func() bool { return begun.distinct() >= 5 })

	var ran tally
	attempts := make(chan Delivery, len(ids))
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		attempts <- d
		return nil
	}}, patient)
	first.stop()
	for _, id := range ids[:3] {
		w.eventually("what was left has run", func() bool { return ran.of(id) == 1 })
	}
	close(stuck)
	w.settled()
	for range ran.total() {
		d := <-attempts
		if begun.of(d.CommandID) == 1 {
			require.Equal(t, 2, d.Attempt)
		} else {
			require.Equal(t, 1, d.Attempt)
		}
	}
}

// An entry that was read while the worker was stopping never began: handed back,
// its next delivery is the first that counts.
func TestHandedBackUnstartedEntryIsNotCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	sub := newSubscription(&subscriber{group: allGroups()[1], timing: fast(), commands: w.rdb, readers: w.rdb, log: w.log}, StreamBooking)
	require.NoError(t, sub.ensureGroup(ctx))
	w.book(1)
	entries, err := sub.readOnce(ctx, 10)
	require.NoError(t, err)
	require.Len(t, sub.owned.add(entries), 1)
	sub.handBack(ctx, sub.owned.all())
	got := make(chan Delivery, 1)
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		got <- d
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Timing.Idle, cfg.Timing.Sweep = time.Minute, time.Minute })
	require.Equal(t, 1, (<-got).Attempt)
	w.settled()
}

// S32, S35: the name of a consumer that is merely quiet was taken for a dead one's
// and removed while it was reading. It goes on, and loses nothing.
func TestConsumerGoesOnWhenItsNameWasRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Timing.Block = 2 * time.Second })
	w.book(1)
	w.eventually("it has run", func() bool { return ran.distinct() == 1 })
	w.settled()
	consumers, err := w.rdb.XInfoConsumers(ctx, StreamBooking, "booking-workers").Result()
	require.NoError(t, err)
	require.Len(t, consumers, 1)
	removed, err := leaveScript.Run(ctx, w.rdb, []string{StreamBooking}, "booking-workers", consumers[0].Name).Int()
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	w.book(10)
	w.eventually("they have run", func() bool { return ran.distinct() == 11 })
	w.settled()
	w.eventually("they are trimmed", func() bool { return w.rdb.XLen(ctx, StreamBooking).Val() == 0 })
}

// S1: a busy worker took commands in advance that idle ones could have run.
func TestBusyConsumerReservesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := func(cfg *ConsumerConfig) { cfg.Limits = map[string]Limits{GroupBooking: {InFlight: 1}} }
	release := make(chan struct{})
	busy := make(chan struct{}, 10)
	w.work(Handlers{BookSeats: func(context.Context, Delivery, BookSeats) error {
		busy <- struct{}{}
		<-release
		return nil
	}}, one)
	w.book(1)
	<-busy
	w.book(5)
	require.EqualValues(t, 1, w.pending())
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}}, one)
	w.eventually("the idle one has run the rest", func() bool { return ran.distinct() == 5 })
	close(release)
	w.settled()
}

// S4: a reader that was stopped on an empty stream stayed behind and stole the
// next command.
func TestStoppedReaderStealsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.work(Handlers{BookSeats: func(context.Context, Delivery, BookSeats) error { return nil }})
	began := time.Now()
	worker.stop()
	require.Less(t, time.Since(began), fast().Drain)
	w.book(1)
	require.Zero(t, w.pending())
}
