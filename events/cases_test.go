package events

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// The tests of this file are faults that other consumers of streams and queues had.

// S7: retrying inside of the poison queue's middleware skipped the tries: the first
// error already made a dead letter. Here all tries come first, and an operator sees
// the first and the last error.
func TestEveryTryComesBeforeTheDeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book(1)
	tries := make(chan int, 10)
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		assert.Empty(t, w.letters())
		tries <- d.Attempt
		return errors.New("failure " + strconv.Itoa(d.Attempt))
	}})
	w.eventually("it is dead", func() bool { return len(w.letters()) == 1 })
	w.settled()
	for want := 1; want <= 5; want++ {
		require.Equal(t, want, <-tries)
	}
	require.Empty(t, tries)
	letter := w.letters()[0]
	require.Equal(t, []string{"failure 1", "failure 5"}, []string{letter.FirstError, letter.LastError})
	require.Equal(t, 5, letter.Deliveries)
}

// S9: closing what never ran waited for its whole timeout.
func TestClosingWhatNeverRanIsImmediate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	long := Timing{Block: time.Minute, Idle: time.Minute, Sweep: time.Minute, Drain: time.Minute, Janitor: time.Minute}
	began := time.Now()
	s := &subscriber{group: allGroups()[1], timing: long, commands: w.rdb, readers: w.rdb, log: w.log}
	require.NoError(t, s.Close())
	consumer, err := NewConsumer(ConsumerConfig{
		Redis: func(string) redis.UniversalClient { return w.client() }, Groups: []string{GroupAdmission}, Log: w.log, Timing: long,
	}, Handlers{AdmitShow: func(context.Context, Delivery, AdmitShow) error { return nil }})
	require.NoError(t, err)
	require.NoError(t, consumer.Run(stopped))
	require.Less(t, time.Since(began), patience/2)
}

// S37: acknowledging frees no memory, and streams grew until Redis was full. What is
// done goes from ours while commands keep coming.
func TestDoneCommandsAreRemovedWhileOthersCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	const round = 500
	memory := func() int64 { return w.rdb.MemoryUsage(ctx, StreamBooking, 0).Val() }
	empty := int64(0)
	for n := range 5 {
		w.book(round)
		w.eventually("all have run", func() bool { return ran.distinct() == (n+1)*round })
		w.eventually("none is left", func() bool { return w.rdb.XLen(ctx, StreamBooking).Val() == 0 })
		if n == 0 {
			empty = memory()
		}
	}
	require.LessOrEqual(t, memory(), empty+empty/4, "nothing remains of what was done")
}

// S42: a blocking read does not end with its context. Ours is short instead, and a
// stopped consumer leaves no client behind that waits in Redis.
func TestStoppingDoesNotWaitForABlockedRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.work(Handlers{BookSeats: func(context.Context, Delivery, BookSeats) error { return nil }},
		func(cfg *ConsumerConfig) {
			cfg.Timing.Block = time.Second
			cfg.Redis = func(string) redis.UniversalClient {
				options, err := redis.ParseURL(w.url)
				require.NoError(t, err)
				options.MaxRetries, options.ContextTimeoutEnabled = -1, false // as go-redis is by default
				return redis.NewClient(options)
			}
		})
	blocked := func() string { return w.rdb.InfoMap(t.Context(), "clients").Item("Clients", "blocked_clients") }
	w.eventually("it waits in Redis", func() bool { return blocked() == "1" })
	began := time.Now()
	worker.stop()
	require.Less(t, time.Since(began), time.Second+patience/4)
	require.Equal(t, "0", blocked())
}

// S50: after trouble with Redis a job was active without a lease: in one list but not
// in the other, and so stuck for ever. The pending list is the only one here. What was
// delivered by an answer that never came is found again, by the consumer's own sweep.
func TestDeliveredInVainIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.book(60)
	var ran tally
	var lost atomic.Int64
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}}, func(cfg *ConsumerConfig) {
		cfg.Limits = map[string]Limits{GroupBooking: {InFlight: 20}}
		cfg.Redis = func(role string) redis.UniversalClient {
			client := w.client()
			if role == RoleReader {
				client.AddHook(&losesAnswers{left: 3, lost: &lost})
			}
			return client
		}
	})
	w.eventually("all have run", func() bool { return ran.distinct() == len(ids) })
	w.settled()
	require.EqualValues(t, 3, lost.Load())
	require.Equal(t, len(ids), ran.total())
	require.Empty(t, w.letters())
}

// losesAnswers lets the first reads have their effect in Redis and loses what they bring.
type losesAnswers struct {
	left int
	lost *atomic.Int64
}

func (l *losesAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *losesAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if raw, ok := cmd.(*redis.RawCmd); ok && l.left > 0 && err == nil && len(raw.Val()) > 100 {
			l.left--
			l.lost.Add(1)
			return net.ErrClosed
		}
		return err
	}
}
func (l *losesAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// S51: a rescuer that looked before a job was finished and acted afterwards brought it
// back, or discarded it. Each of our steps looks and acts in one.
func TestFinishedCommandIsNotRescued(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.abandon(w.book(1)...)[0] // a rescuer has seen it in the pending list
	sub := newSubscription(&subscriber{group: allGroups()[1], timing: fast(), commands: w.rdb, readers: w.rdb, log: w.log}, StreamBooking)
	require.NoError(t, w.rdb.XAck(ctx, StreamBooking, "booking-workers", id).Err()) // its consumer was alive after all
	taken, err := claimScript.Run(ctx, w.rdb, []string{StreamBooking}, "booking-workers", sub.consumer, 0, id).Slice()
	require.NoError(t, err)
	require.Empty(t, taken)
	owned, err := sub.own(ctx, handedBack, []*entry{{id: id, attempt: 2}}, true)
	require.NoError(t, err)
	require.Equal(t, []int64{entryGone}, owned)
	buried, err := buryScript.Run(ctx, w.rdb, []string{StreamBooking, deadStream(w.rdb, StreamBooking)}, "booking-workers", sub.consumer, id, "id", "x").Int()
	require.NoError(t, err)
	require.Equal(t, entryGone, buried)
	require.Zero(t, w.pending())
	require.Empty(t, w.letters())
}

// S51: a rescuer of an older version discarded what it did not know. A command of a
// newer version is kept whole, and runs when somebody who knows it is asked.
func TestUnknownCommandOfADeadWorkerIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raw("id", "c-new", "type", "MOVE_BOOKING", "version", "1", "payload", `{"to":"A-1-1"}`)
	w.abandon("c-new")
	w.work(Handlers{BookSeats: func(context.Context, Delivery, BookSeats) error { return nil }})
	w.eventually("it is dead", func() bool { return len(w.letters()) == 1 })
	w.settled()
	letter := w.letters()[0]
	require.Equal(t, DeadUnknown, letter.Reason)
	whole := map[string]string{"id": "c-new", "type": "MOVE_BOOKING", "version": "1", "payload": `{"to":"A-1-1"}`}
	require.Equal(t, whole, letter.Fields)
	require.NoError(t, w.rdb.XGroupDestroy(t.Context(), StreamBooking, "booking-workers").Err())
	require.NoError(t, NewDeadLetters(w.rdb).Requeue(t.Context(), StreamBooking, letter.ID))
	entries, err := w.rdb.XRevRangeN(t.Context(), StreamBooking, "+", "-", 1).Result()
	require.NoError(t, err)
	for name, value := range whole {
		require.Equal(t, value, entries[0].Values[name])
	}
}

// S55: on a Cluster, a reader that waits is not told that its stream has moved to
// another node, and waited for ever. Ours asks again soon, and follows.
func TestReaderFollowsAStreamThatMoves(t *testing.T) {
	t.Parallel()
	nodes := testenv.StartCluster(t, 2)
	ctx := t.Context()
	cluster := func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr, nodes[1].Addr}, MaxRetries: 3})
	}
	w := worldOn(t, nodes[0].URL)
	publishing := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}, MaxRetries: -1})
	defer publishing.Close()
	commands, err := NewCommands(publishing, w.log)
	require.NoError(t, err)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Redis = func(string) redis.UniversalClient { return cluster() } })
	require.NoError(t, commands.BookSeats(ctx, "before", BookSeats{Booking: booking("before")}))
	w.eventually("it runs", func() bool { return ran.of("before") == 1 })
	moveSlot(t, nodes, StreamBooking)
	w.eventually("one after it runs too", func() bool {
		err := commands.BookSeats(ctx, "after", BookSeats{Booking: booking("after")})
		return err == nil && ran.of("after") > 0
	})
}

// moveSlot moves a key's slot, with all that is in it, from one node to the other.
func moveSlot(t *testing.T, nodes []*testenv.RedisServer, key string) {
	t.Helper()
	ctx := t.Context()
	from, to := nodes[0].Client(t), nodes[1].Client(t)
	slot := int(from.ClusterKeySlot(ctx, key).Val())
	target := nodes[1]
	if slot >= 16384/2 {
		from, to, target = to, from, nodes[0]
	}
	name := func(c *redis.Client) string { return c.Do(ctx, "CLUSTER", "MYID").Val().(string) }
	set := func(c *redis.Client, args ...any) {
		t.Helper()
		require.NoError(t, c.Do(ctx, append([]any{"CLUSTER", "SETSLOT", slot}, args...)...).Err())
	}
	set(to, "IMPORTING", name(from))
	set(from, "MIGRATING", name(to))
	host, port, _ := strings.Cut(target.Addr, ":")
	for _, k := range from.ClusterGetKeysInSlot(ctx, slot, 100).Val() {
		require.NoError(t, from.Do(ctx, "MIGRATE", host, port, k, 0, 5000).Err())
	}
	set(to, "NODE", name(to))
	set(from, "NODE", name(to))
}
