package events

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// The tests of this file are named after what the stock subscriber of the
// message library does wrong. Each was reproduced there; ours must not do it.

// Trap 1: one entry at a time and two commands an entry bound a worker to some
// hundred bookings a second. Ours reads and acknowledges many in one command.
func TestTrap01ReadsAndAcknowledgesInBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const commands = 2000
	w.book(commands)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.eventually("all have run", func() bool { return ran.distinct() == commands })
	w.settled()
	require.Less(t, w.calls("xreadgroup"), commands/8)
	require.Less(t, w.calls("xack"), commands/8)
}

// calls is how often Redis ran a command.
func (w *world) calls(command string) int {
	w.t.Helper()
	info, err := w.rdb.Info(w.t.Context(), "commandstats").Result()
	require.NoError(w.t, err)
	found := regexp.MustCompile("cmdstat_" + command + `:calls=(\d+)`).FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	calls, err := strconv.Atoi(found[1])
	require.NoError(w.t, err)
	return calls
}

// Trap 2: a malformed entry ended the subscription, one worker after the other,
// while the process looked healthy. H7, S24: it becomes a dead letter.
func TestTrap02MalformedEntriesDoNotEndTheSubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raw("id", "x1", "type", typeBookSeats, "version", "1", "payload", "{not json")
	w.raw("nonsense", "\xff\xfe")
	w.raw("id", "x2", "type", typeBookSeats, "version", "1") // no payload
	w.raw("id", "x3", "type", typeBookSeats, "version", "1", "payload", "{}")
	w.raw("id", "x4", "type", "SELL_POPCORN", "version", "1", "payload", "{}")
	w.raw("id", "x5", "type", typeBookSeats, "version", "99", "payload", "{}")
	ids := w.book(10)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.eventually("all have run", func() bool { return ran.distinct() == len(ids) })
	w.settled()
	reasons := map[string]int{}
	for _, letter := range w.letters() {
		reasons[letter.Reason]++
		require.Equal(t, 1, letter.Deliveries)
		require.NotEmpty(t, letter.LastError)
	}
	require.Equal(t, map[string]int{DeadUndecodable: 3, DeadUnknown: 3}, reasons)
}

// Trap 3: a refused or panicking command came back at once and without end, up to
// 760,000 times a second, and nothing behind it ran. Here poison and panic are
// tried as often as they may, with delays, while thousands of others go by.
func TestTrap03PoisonAndPanicAmongThousands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const commands = 3000
	ids := w.book(commands)
	poison, panics := ids[100], ids[200]
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		assert.Equal(t, ran.add(d.CommandID), d.Attempt)
		switch d.CommandID {
		case poison:
			return errors.New("poisoned")
		case panics:
			panic("boom")
		}
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Consumers = 2 })
	w.eventually("all have run", func() bool { return ran.distinct() == commands })
	w.eventually("both are dead", func() bool { return len(w.letters()) == 2 })
	w.settled()
	require.Equal(t, 5, ran.of(poison))
	require.Equal(t, 5, ran.of(panics))
	require.Equal(t, commands+8, ran.total())
	for _, letter := range w.letters() {
		require.Equal(t, DeadExhausted, letter.Reason)
		require.Equal(t, 5, letter.Deliveries)
		require.Equal(t, typeBookSeats, letter.Type)
		require.Contains(t, []domain.CommandID{poison, panics}, letter.CommandID)
		require.Regexp(t, "poisoned|boom", letter.FirstError)
	}
}

// Trap 3, S8: a command that waits long for its next try holds up nobody.
func TestTrap03OthersGoOnWhileOneWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(1)
	var ran tally
	failed := make(chan struct{}, 1)
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		if d.CommandID == ids[0] {
			failed <- struct{}{}
			return errors.New("not yet")
		}
		return nil
	}}, func(cfg *ConsumerConfig) {
		cfg.Limits = map[string]Limits{GroupBooking: {InFlight: 1}}
		cfg.Timing.Retry = time.Hour
	})
	<-failed
	w.book(20)
	w.eventually("the others have run", func() bool { return ran.distinct() == 21 })
	w.eventually("only the first is pending", func() bool { return w.pending() == 1 })
}

// Trap 4, S21: a handler slower than the idle time was run a second time, by
// another consumer or by itself. Several run at once here, since renewing only
// the first of many is an easy mistake.
func TestTrap04SlowHandlersRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(12)
	var ran tally
	w.work(Handlers{BookSeats: func(ctx context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return pause(ctx, 5*fast().Idle/2)
	}}, func(cfg *ConsumerConfig) {
		cfg.Consumers = 3
		cfg.Limits = map[string]Limits{GroupBooking: {InFlight: 4}}
	})
	w.eventually("all have begun", func() bool { return ran.distinct() == len(ids) })
	w.settled()
	require.Equal(t, len(ids), ran.total())
	require.Empty(t, w.letters())
}

// Trap 5, S5: a graceful stop cancelled the running handlers and dropped their
// acknowledgements, so that every deploy repeated work.
func TestTrap05StoppingFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const running = 16
	w.book(running)
	var ran, cancelled atomic.Int32
	release := make(chan struct{})
	worker := w.work(Handlers{BookSeats: func(ctx context.Context, _ Delivery, _ BookSeats) error {
		ran.Add(1)
		<-release
		if ctx.Err() != nil {
			cancelled.Add(1)
		}
		return nil
	}})
	w.eventually("all run", func() bool { return ran.Load() == running })
	stopped := make(chan struct{})
	go func() { worker.stop(); close(stopped) }()
	require.Never(t, func() bool { return isClosed(stopped) }, 4*fast().Block, fast().Block/4)
	close(release)
	<-stopped
	require.Zero(t, cancelled.Load())
	require.Zero(t, w.pending())
	consumers, err := w.rdb.XInfoConsumers(t.Context(), StreamBooking, "booking-workers").Result()
	require.NoError(t, err)
	require.Empty(t, consumers, "a consumer that has ended leaves no name behind")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Trap 6, S11, S17: after FLUSHALL, a deleted stream or a destroyed group,
// workers said NOGROUP for ever and consumed nothing.
func TestTrap06VanishedGroupIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*world) error{
		"flushed":   func(w *world) error { return w.rdb.Do(t.Context(), "FLUSHALL").Err() },
		"deleted":   func(w *world) error { return w.rdb.Del(t.Context(), StreamBooking).Err() },
		"destroyed": func(w *world) error { return w.rdb.XGroupDestroy(t.Context(), StreamBooking, "booking-workers").Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var ran tally
			w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
				ran.add(d.CommandID)
				return nil
			}})
			before := w.book(20)
			w.eventually("the first have run", func() bool { return ran.distinct() == len(before) })
			w.settled()
			require.NoError(t, breakIt(w))
			after := w.book(20) // some of them before the group is back
			w.eventually("those after have run too", func() bool { return ran.distinct() == len(before)+len(after) })
			require.Less(t, w.calls("xreadgroup"), 500, "no hot loop while the group is missing")
		})
	}
}

// Trap 6, S19: a group that was lost begins where everything before is done, not
// at the end, and not at the beginning when that is known.
func TestTrap06GroupBeginsAtTheLowWaterMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	done := w.raw("id", "done")
	w.raw("id", "open")
	sub := newSubscription(&subscriber{group: allGroups()[1], timing: fast(), commands: w.rdb, readers: w.rdb, log: w.log}, StreamBooking)
	require.NoError(t, w.rdb.HSet(ctx, lowWaterKey(StreamBooking), "booking-workers", done).Err())
	require.NoError(t, sub.ensureGroup(ctx))
	entries, err := sub.readOnce(ctx, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "open", entries[0].fields.Get("id"))

	require.NoError(t, w.rdb.XGroupDestroy(ctx, StreamBooking, "booking-workers").Err())
	require.NoError(t, w.rdb.HSet(ctx, lowWaterKey(StreamBooking), "booking-workers", "99999999999999-0").Err())
	require.NoError(t, sub.ensureGroup(ctx))
	entries, err = sub.readOnce(ctx, 10)
	require.NoError(t, err)
	require.Len(t, entries, 2, "a mark from beyond the stream is another stream's")
}

// Trap 7: closing the publisher or subscriber closed the client it was given.
func TestTrap07ClosingLeavesTheClientOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.commands.Close()
	require.ErrorIs(t, w.commands.AdmitShow(ctx, AdmitShow{ShowID: "t-show"}), ErrClosed)
	s := &subscriber{group: allGroups()[1], timing: fast(), commands: w.rdb, readers: w.rdb, log: w.log}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Subscribe(ctx, StreamBooking)
	require.Error(t, err)
	require.NoError(t, w.rdb.Ping(ctx).Err())
}

// Trap 9, S2, S25, S26: removing a consumer that still has pending entries loses
// them.
func TestTrap09ConsumerWithEntriesKeepsItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.abandon(w.book(1)...)[0]
	removed, err := leaveScript.Run(ctx, w.rdb, []string{StreamBooking}, "booking-workers", ghost).Int()
	require.NoError(t, err)
	require.Zero(t, removed)
	require.EqualValues(t, 1, w.pending())
	require.NoError(t, w.rdb.XAck(ctx, StreamBooking, "booking-workers", id).Err())
	removed, err = leaveScript.Run(ctx, w.rdb, []string{StreamBooking}, "booking-workers", ghost).Int()
	require.NoError(t, err)
	require.Equal(t, 1, removed)
}

// Trap 9, H3, H4, S29: trimming by length removed entries that nobody had read.
// Ours keeps what any group has not done, whatever the length.
func TestTrap09TrimmingKeepsWhatIsNotDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	require.NoError(t, w.rdb.XGroupCreateMkStream(ctx, StreamBooking, "auditors", "0").Err())
	ids := w.book(500)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.eventually("all have run", func() bool { return ran.distinct() == len(ids) })
	w.settled()
	w.eventually("the janitor has been by", func() bool { return w.rdb.HExists(ctx, lowWaterKey(StreamBooking), "booking-workers").Val() })
	require.EqualValues(t, 500, w.rdb.XLen(ctx, StreamBooking).Val(), "the auditors have read nothing")

	read := func(n int64) []redis.XMessage {
		streams, err := w.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: "auditors", Consumer: "auditor", Streams: []string{StreamBooking, ">"}, Count: n,
		}).Result()
		require.NoError(t, err)
		return streams[0].Messages
	}
	first := read(300)
	for _, m := range first[:250] {
		require.NoError(t, w.rdb.XAck(ctx, StreamBooking, "auditors", m.ID).Err())
	}
	w.eventually("what both have done is trimmed", func() bool { return w.rdb.XLen(ctx, StreamBooking).Val() == 250 })
	oldest, err := w.rdb.XRangeN(ctx, StreamBooking, "-", "+", 1).Result()
	require.NoError(t, err)
	require.Equal(t, first[250].ID, oldest[0].ID)
}

// Trap 10: a client that retries by itself puts a slow command on the stream
// twice without anybody knowing. Ours refuses such a client.
func TestTrap10RetryingClientIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	_, err := NewCommands(rdb, nil)
	require.ErrorContains(t, err, "MaxRetries")
}

// Trap 11: the handler knew neither the entry nor how often it had been tried.
func TestTrap11HandlerLearnsEntryAndAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(1)
	entries, err := w.rdb.XRange(t.Context(), StreamBooking, "-", "+").Result()
	require.NoError(t, err)
	got := make(chan Delivery, 3)
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		got <- d
		if d.Attempt < 3 {
			return errors.New("again")
		}
		return nil
	}})
	for attempt := 1; attempt <= 3; attempt++ {
		d := <-got
		require.Equal(t, attempt, d.Attempt)
		require.Equal(t, ids[0], d.CommandID)
		require.Equal(t, entries[0].ID, d.EntryID)
		require.WithinDuration(t, time.Now(), d.At(), time.Minute)
	}
	w.settled()
}

// Trap 11, S6: a dead letter published with the handler's own, cancelled context
// never arrived, and the command went round for ever.
func TestTrap11TimedOutCommandBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book(1)
	var causes atomic.Int32
	w.work(Handlers{BookSeats: func(ctx context.Context, _ Delivery, _ BookSeats) error {
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), errHandlerTimeout) {
			causes.Add(1)
		}
		return ctx.Err()
	}}, func(cfg *ConsumerConfig) {
		cfg.Limits = map[string]Limits{GroupBooking: {Timeout: 20 * time.Millisecond}}
	})
	w.eventually("it is dead", func() bool { return len(w.letters()) == 1 })
	w.settled()
	require.EqualValues(t, 5, causes.Load())
	require.Contains(t, w.letters()[0].LastError, errHandlerTimeout.Error())
}

const ghost = "ghost"

// abandon lets a consumer that does nothing more read entries, as a process does
// that is killed between reading and acknowledging. It returns their ids.
func (w *world) abandon(commands ...domain.CommandID) []string {
	w.t.Helper()
	ctx := w.t.Context()
	err := w.rdb.XGroupCreateMkStream(ctx, StreamBooking, "booking-workers", "0").Err()
	if err != nil {
		require.ErrorContains(w.t, err, "BUSYGROUP")
	}
	streams, err := w.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: "booking-workers", Consumer: ghost, Streams: []string{StreamBooking, ">"}, Count: int64(len(commands)),
	}).Result()
	require.NoError(w.t, err)
	ids := make([]string, len(streams[0].Messages))
	for i, m := range streams[0].Messages {
		ids[i] = m.ID
	}
	require.Len(w.t, ids, len(commands), fmt.Sprint(commands))
	return ids
}
