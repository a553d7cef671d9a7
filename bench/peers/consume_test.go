package peers

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/bench"
	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The stream and group of read events, as anybody may write them.
const (
	stream    = events.StreamChatRead
	groupName = "group1"
)

// world is one Redis that every variant empties and fills again.
type world struct {
	options *redis.Options
	rdb     *redis.Client
	version string
}

func newWorld(b *testing.B) *world {
	b.Helper()
	options, err := redis.ParseURL(testenv.StartRedis(b).URL)
	require.NoError(b, err)
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	w := &world{options: options, rdb: redis.NewClient(options)}
	b.Cleanup(func() { _ = w.rdb.Close() })
	w.version = "redis " + w.rdb.InfoMap(b.Context(), "server").Item("Server", "redis_version")
	return w
}

func (w *world) client() *redis.Client { return redis.NewClient(w.options) }

// fill begins a new stream with n read events on it.
func (w *world) fill(b *testing.B, n int) {
	b.Helper()
	require.NoError(b, w.rdb.FlushDB(b.Context()).Err())
	require.NoError(b, w.rdb.XGroupCreateMkStream(b.Context(), stream, groupName, "0").Err())
	const batch = 1000
	for from := 0; from < n; from += batch {
		_, err := w.rdb.Pipelined(b.Context(), func(pipe redis.Pipeliner) error {
			for i := range min(batch, n-from) {
				pipe.XAdd(b.Context(), &redis.XAddArgs{Stream: stream, Values: readEvent(from + i)})
			}
			return nil
		})
		require.NoError(b, err)
	}
}

func readEvent(n int) []any {
	return []any{"id", "command-" + strconv.Itoa(n), "type", "MARK_READ", "version", "1", "at", "2026-05-01T18:30:00Z",
		"roomNo", "room-" + strconv.Itoa(n%200), "publicUuid", "person-" + strconv.Itoa(n%5000), "upTo", strconv.Itoa(n), "epoch", "0"}
}

// target is called once for every entry, and knows when all have come.
type target struct {
	left atomic.Int64
	done chan struct{}
	work time.Duration // how long handling one takes
	seen func(at time.Time, mark domain.ReadMark)
}

func newTarget(n int, work time.Duration) *target {
	t := &target{done: make(chan struct{}), work: work}
	t.left.Store(int64(n))
	return t
}

func (t *target) handle(mark domain.ReadMark) {
	if t.seen != nil {
		t.seen(time.Now(), mark)
	}
	if t.work > 0 {
		timer := time.NewTimer(t.work)
		<-timer.C
	}
	if t.left.Add(-1) == 0 {
		close(t.done)
	}
}

// consumer begins to consume and returns what ends it.
type consumer func(b *testing.B, w *world, t *target) (stop func())

func foyer(b *testing.B, w *world, t *target) func() {
	c, err := events.NewConsumer(events.ConsumerConfig{
		Redis: func(string) redis.UniversalClient { return w.client() }, Groups: []string{events.GroupChat},
		Log: slog.New(slog.DiscardHandler),
	}, events.Handlers{MarkRead: func(_ context.Context, _ events.Delivery, mark events.MarkRead) error {
		t.handle(mark.ReadMark)
		return nil
	}})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(b, <-ended)
	}
}

// flat reads what everybody else on the stream reads.
type flat struct{}

func (flat) Unmarshal(values map[string]any) (*message.Message, error) {
	msg := message.NewMessage(fmt.Sprint(values["id"]), nil)
	for name, value := range values {
		msg.Metadata[name], _ = value.(string)
	}
	return msg, nil
}

// stock is the library's own subscriber under the same router, several times.
func stock(consumers int) consumer {
	return func(b *testing.B, w *world, t *target) func() {
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
		require.NoError(b, err)
		for n := range consumers {
			s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
				Client: w.client(), Unmarshaller: flat{}, ConsumerGroup: groupName, Consumer: strconv.Itoa(n), OldestId: "0",
			}, watermill.NopLogger{})
			require.NoError(b, err)
			router.AddConsumerHandler(strconv.Itoa(n), stream, s, func(msg *message.Message) error {
				mark, err := markOf(func(name string) string { return msg.Metadata[name] })
				t.handle(mark)
				return err
			})
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- router.Run(ctx) }()
		return func() {
			cancel()
			require.NoError(b, <-ended)
		}
	}
}

// loop is the least there is: read a batch, handle one after the other,
// acknowledge the batch. It survives nothing.
func loop(b *testing.B, w *world, t *target) func() {
	ctx, cancel := context.WithCancel(b.Context())
	rdb, ended := w.client(), make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			read, err := rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
				Group: groupName, Consumer: "loop", Streams: []string{stream, ">"}, Count: 128, Block: 100 * time.Millisecond,
			}).Result()
			if err != nil {
				continue // nothing came, or it is over
			}
			ids := make([]string, len(read[0].Messages))
			for i, m := range read[0].Messages {
				mark, err := markOf(func(name string) string { text, _ := m.Values[name].(string); return text })
				if err != nil {
					panic(err)
				}
				t.handle(mark)
				ids[i] = m.ID
			}
			rdb.XAck(ctx, stream, groupName, ids...)
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = rdb.Close()
	}
}

func markOf(field func(string) string) (domain.ReadMark, error) {
	upTo, err := strconv.ParseInt(field("upTo"), 10, 64)
	if err != nil {
		return domain.ReadMark{}, err
	}
	epoch, err := strconv.ParseInt(field("epoch"), 10, 64)
	return domain.ReadMark{RoomID: domain.RoomID(field("roomNo")), PersonID: domain.PersonID(field("publicUuid")), UpTo: upTo, Epoch: epoch}, err
}

// consume measures how fast n entries that are there are consumed.
func consume(w *world, name string, n int, work time.Duration, begin consumer) bench.Variant {
	return bench.Variant{Name: name, Run: func(b *testing.B) bench.Sample {
		w.fill(b, n)
		t := newTarget(n, work)
		before := w.redisTime(b)
		meter := bench.StartMeter()
		stop := begin(b, w, t)
		<-t.done
		wall, cpu := meter.Read()
		inRedis := w.redisTime(b) - before
		stop()
		return rates(n, wall, cpu, inRedis)
	}}
}

func rates(n int, wall, cpu, inRedis time.Duration) bench.Sample {
	each := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(n) }
	return bench.Sample{"rate": float64(n) / wall.Seconds(), "client": each(cpu), "redis": each(inRedis)}
}

// redisTime is the processor time that Redis has used.
func (w *world) redisTime(b *testing.B) time.Duration {
	b.Helper()
	info := w.rdb.InfoMap(b.Context(), "cpu")
	var total float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info.Item("CPU", name), 64)
		require.NoError(b, err)
		total += seconds
	}
	return time.Duration(total * float64(time.Second))
}

var consumeMetrics = []bench.Metric{
	{Key: "rate", Name: "entries/s"}, {Key: "client", Name: "CPU of the process, µs an entry"}, {Key: "redis", Name: "CPU of Redis, µs an entry"},
}

// BenchmarkConsume takes read events with a handler that does nothing.
func BenchmarkConsume(b *testing.B) {
	w := newWorld(b)
	tasks := asynqWorld(w)
	bench.Comparison{
		Name: "streams-1-consume", Title: "Consuming, a handler that does nothing",
		About: "Read events stand on a stream; each is parsed, given to a handler and acknowledged. Foyer and the stock subscriber work under the same router. " +
			"The plain loop reads 128, handles them one after the other and acknowledges them together; it survives no error. asynq has its own queue on the same Redis.",
		Servers: []string{w.version}, Metrics: consumeMetrics,
		Variants: []bench.Variant{
			consume(w, "Foyer", 200_000, 0, foyer),
			consume(w, "plain loop", 200_000, 0, loop),
			consume(w, "stock x 8", 40_000, 0, stock(8)),
			consume(w, "stock x 1", 20_000, 0, stock(1)),
			tasks.consume("asynq, 64 at once", 10_000, 0, 64),
		},
		Goals: []bench.Goal{
			{Text: "at least 100,000 entries/s on two idle cores", Metric: "rate", Variant: "Foyer", AtLeast: 100_000},
			{Text: "at least 5 times the stock subscriber with 8 consumers", Metric: "rate", Variant: "Foyer", Against: "stock x 8", AtLeast: 5},
			{Text: "at least 60 % of the plain loop", Metric: "rate", Variant: "Foyer", Against: "plain loop", AtLeast: 0.6},
		},
	}.Run(b)
}

// BenchmarkConsumeSlow takes read events with a handler that waits 2 ms.
func BenchmarkConsumeSlow(b *testing.B) {
	w := newWorld(b)
	tasks := asynqWorld(w)
	const work = 2 * time.Millisecond
	bench.Comparison{
		Name: "streams-2-consume-slow", Title: "Consuming, a handler that waits 2 ms",
		About:   "As before, with a handler that waits as if for a database. One process, its default limit of 1,024 handlers at once.",
		Servers: []string{w.version}, Metrics: consumeMetrics,
		Variants: []bench.Variant{
			consume(w, "Foyer", 100_000, work, foyer),
			consume(w, "stock x 8", 4_000, work, stock(8)),
			consume(w, "stock x 1", 500, work, stock(1)),
			tasks.consume("asynq, 256 at once", 10_000, work, 256),
		},
		Goals: []bench.Goal{{Text: "at least 20,000 entries/s in one process", Metric: "rate", Variant: "Foyer", AtLeast: 20_000}},
	}.Run(b)
}

// BenchmarkLatency measures the way from XADD to the handler.
func BenchmarkLatency(b *testing.B) {
	w := newWorld(b)
	bench.Comparison{
		Name: "streams-3-latency", Title: "From XADD to the handler",
		About:   "200 read events a second for 5 s, each timed from before its XADD to the beginning of its handler.",
		Servers: []string{w.version},
		Metrics: []bench.Metric{{Key: "p50", Name: "p50 ms"}, {Key: "p99", Name: "p99 ms"}},
		Variants: []bench.Variant{
			w.latency("Foyer", foyer), w.latency("stock x 1", stock(1)), w.latency("plain loop", loop),
		},
		Goals: []bench.Goal{
			{Text: "p50 below 0.5 ms on an idle machine", Metric: "p50", Variant: "Foyer", AtMost: 0.5},
			{Text: "p99 below 3 ms on an idle machine", Metric: "p99", Variant: "Foyer", AtMost: 3},
		},
	}.Run(b)
}

func (w *world) latency(name string, begin consumer) bench.Variant {
	return bench.Variant{Name: name, Run: func(b *testing.B) bench.Sample {
		const n, every = 1000, 5 * time.Millisecond
		w.fill(b, 0)
		t := newTarget(n, 0)
		sent, seen := make([]time.Time, n), make([]time.Time, n)
		t.seen = func(at time.Time, mark domain.ReadMark) { seen[mark.UpTo] = at }
		stop := begin(b, w, t)
		clock := time.NewTicker(every)
		for i := range n {
			<-clock.C
			sent[i] = time.Now()
			require.NoError(b, w.rdb.XAdd(b.Context(), &redis.XAddArgs{Stream: stream, Values: readEvent(i)}).Err())
		}
		clock.Stop()
		<-t.done
		stop()
		took := make([]time.Duration, n)
		for i := range took {
			took[i] = seen[i].Sub(sent[i])
		}
		return bench.Sample{"p50": bench.Millis(bench.Quantile(took, 0.5)), "p99": bench.Millis(bench.Quantile(took, 0.99))}
	}}
}
