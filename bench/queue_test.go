package bench

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// The line of a show in Redis, and who is inside; the measurements look behind the steps.
func waitingKey(show domain.ShowID) string { return "sessions:{" + string(show) + "}:waiting" }

// paused is a show that people may queue for and nobody enters.
func paused(show *domain.Show) { show.Paused = true }

// queue lets n people join, numbered from first, in turn to each line of the show.
func (s *stage) queue(b *testing.B, show domain.Show, first, n int) {
	b.Helper()
	const callers = 400 // their joins travel together
	var all sync.WaitGroup
	failed := make(chan error, callers)
	for caller := range callers {
		all.Go(func() {
			for i := first + caller; i < first+n; i += callers {
				join := lua.JoinRequest{ShowID: show.ID, RequestID: requestID(i), Lane: i % (1 + len(show.Queue.Lanes))}
				if _, _, err := s.steps.Join(b.Context(), join); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	require.NoError(b, <-failed)
}

// requestID looks like a real one: 14 characters in no order.
func requestID(i int) domain.RequestID {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(i))
	sum := sha256.Sum256(number[:])
	return domain.RequestID(base64.RawURLEncoding.EncodeToString(sum[:10]))
}

const joinCallers = 500

// BenchmarkJoin compares joins that travel together with one call each.
func BenchmarkJoin(b *testing.B) {
	s := redisStage(b)
	single := make([]*lua.Steps, joinCallers) // joins of different steps never meet
	for i := range single {
		single[i] = lua.New(s.rdb)
	}
	Comparison{
		Name: "queue-1-join", Title: "500 people joining at once",
		About:    "500 callers join one after the other, 40,000 in all, a show with 10,000 waiting. One call each is the same script with one person.",
		Servers:  s.servers,
		Metrics:  []Metric{{"rate", "joins/s"}, {"p50", "p50 ms"}, {"p99", "p99 ms"}},
		Variants: []Variant{s.joining("coalesced", func(int) *lua.Steps { return s.steps }), s.joining("one call each", func(i int) *lua.Steps { return single[i] })},
		Goals: []Goal{
			{Text: "at least 4 times the joins/s of one call each", Metric: "rate", Variant: "coalesced", Against: "one call each", AtLeast: 4},
			{Text: "with a better p99", Metric: "p99", Variant: "coalesced", Against: "one call each", AtMost: 1},
		},
	}.Run(b)
}

func (s *stage) joining(name string, steps func(caller int) *lua.Steps) Variant {
	return Variant{name, func(b *testing.B) Sample {
		const joins = 40_000
		require.NoError(b, s.rdb.FlushDB(b.Context()).Err())
		show := s.newShow(b, paused)
		s.queue(b, show, 0, 10_000)
		took := make([]time.Duration, joins)
		var all sync.WaitGroup
		failed := make(chan error, joinCallers)
		meter := StartMeter()
		for caller := range joinCallers {
			all.Go(func() {
				mine := steps(caller)
				for i := caller; i < joins; i += joinCallers {
					began := time.Now()
					if _, _, err := mine.Join(b.Context(), lua.JoinRequest{ShowID: show.ID, RequestID: requestID(100_000 + i)}); err != nil {
						failed <- err
						return
					}
					took[i] = time.Since(began)
				}
			})
		}
		all.Wait()
		wall, _ := meter.Read()
		close(failed)
		require.NoError(b, <-failed)
		return Sample{"rate": joins / wall.Seconds(), "p50": Millis(Quantile(took, 0.5)), "p99": Millis(Quantile(took, 0.99))}
	}}
}

// scriptTime is how long Redis has run scripts, and how often.
func (s *stage) scriptTime(b *testing.B) (total time.Duration, calls int) {
	b.Helper()
	line := s.rdb.InfoMap(b.Context(), "commandstats").Item("Commandstats", "cmdstat_evalsha")
	var usec int64
	if line != "" {
		_, err := fmt.Sscanf(line, "calls=%d,usec=%d", &calls, &usec)
		require.NoError(b, err)
	}
	return time.Duration(usec) * time.Microsecond, calls
}

// scriptTimes are how long each script took that Redis ran meanwhile.
func (s *stage) scriptTimes(b *testing.B, do func() error) []time.Duration {
	b.Helper()
	ctx := b.Context()
	require.NoError(b, s.rdb.ConfigSet(ctx, "slowlog-log-slower-than", "0").Err()) // all are written down
	require.NoError(b, s.rdb.Do(ctx, "SLOWLOG", "RESET").Err())
	require.NoError(b, do())
	log, err := s.rdb.SlowLogGet(ctx, -1).Result()
	require.NoError(b, err)
	var took []time.Duration
	for _, entry := range log {
		if strings.EqualFold(entry.Args[0], "evalsha") {
			took = append(took, entry.Duration)
		}
	}
	require.NotEmpty(b, took)
	return took
}

// BenchmarkTick measures one regular step of shows with long lines.
func BenchmarkTick(b *testing.B) {
	s := redisStage(b)
	sizes := []int{10_000, 100_000, 1_000_000}
	names := map[int]string{10_000: "10,000 waiting", 100_000: "100,000 waiting", 1_000_000: "1,000,000 waiting"}
	var variants []Variant
	for _, size := range sizes {
		show := s.newShow(b, func(show *domain.Show) { show.Queue.MaxActive, show.Queue.RatePerMinute = 100_000, 600 })
		s.fillLine(b, show, size)
		variants = append(variants, Variant{names[size], func(b *testing.B) Sample { return s.tick(b, show, size) }})
	}
	million := names[1_000_000]
	Comparison{
		Name: "queue-2-tick", Title: "One tick",
		About: "A tick lets in whom the rate of 600 a minute permits, and samples the line for everybody's rank. The time is what Redis tells of its scripts, during which nobody else is served; " +
			"the message is what goes out to every process. The error is of all ranks that are read from the sample, after 30 % of the line has left at random.",
		Servers:  s.servers,
		Metrics:  []Metric{{"longest", "longest script, ms"}, {"total", "all scripts, ms"}, {"bytes", "message, bytes"}, {"first", "error within the first 100"}, {"error", "largest error beyond, %"}},
		Variants: variants,
		Goals: []Goal{
			{Text: "a tick with a million waiting holds Redis for at most 5 ms", Metric: "longest", Variant: million, AtMost: 5},
			{Text: "its message is at most 8 KB", Metric: "bytes", Variant: million, AtMost: 8192},
			{Text: "every rank within 1 %", Metric: "error", Variant: million, AtMost: 1},
			{Text: "the first hundred exact", Metric: "first", Variant: million, AtMost: 1e-9},
		},
	}.Run(b)
}

// fillLine makes a line of a size, of which 30 % have left.
func (s *stage) fillLine(b *testing.B, show domain.Show, size int) {
	b.Helper()
	halted := show
	halted.Paused, halted.Revision = true, show.Revision+1
	require.NoError(b, s.steps.Configure(b.Context(), halted))
	joined := size * 10 / 7
	s.queue(b, show, 0, joined)
	dice := rand.New(rand.NewPCG(1, uint64(size)))
	var gone []any
	leave := func() {
		require.NoError(b, s.rdb.ZRem(b.Context(), waitingKey(show.ID), gone...).Err())
		gone = gone[:0]
	}
	for _, i := range dice.Perm(joined)[:joined-size] {
		if gone = append(gone, string(requestID(i))); len(gone) == 1000 {
			leave()
		}
	}
	if len(gone) > 0 {
		leave()
	}
	show.Revision += 2
	require.NoError(b, s.steps.Configure(b.Context(), show))
}

func (s *stage) tick(b *testing.B, show domain.Show, size int) Sample {
	var longest, total time.Duration
	timed := func(do func() error) {
		for _, took := range s.scriptTimes(b, do) {
			longest, total = max(longest, took), total+took
		}
	}
	ctx := b.Context()
	var knots domain.RankKnots
	var stats domain.Stats
	more := true
	for more {
		timed(func() error {
			result, err := s.steps.Admit(ctx, show.ID, lua.AdmitOptions{})
			more = result.More
			return err
		})
	}
	timed(func() (err error) {
		knots, stats, err = s.steps.Knots(ctx, show.ID)
		return err
	})
	require.InDelta(b, size, stats.Waiting, float64(size)/5)
	message, err := json.Marshal(events.Notification{
		Event: events.EventRank, ShowID: show.ID, Epoch: stats.Epoch, Version: stats.Version, At: time.Now().UTC(),
		Publisher: domain.NewID(), Seq: 1_000_000, Knots: &knots,
	})
	require.NoError(b, err)
	first, beyond := s.rankErrors(b, show, knots)
	return Sample{"longest": Millis(longest), "total": Millis(total), "bytes": float64(len(message)), "first": first, "error": 100 * beyond}
}

// rankErrors compares every rank with what the sample says of it: the largest
// difference within the first hundred, and the largest share beyond.
func (s *stage) rankErrors(b *testing.B, show domain.Show, knots domain.RankKnots) (first, beyond float64) {
	b.Helper()
	const page = 20_000
	rankOf := knots.Ranker()
	for from := int64(0); ; from += page {
		line, err := s.rdb.ZRangeWithScores(b.Context(), waitingKey(show.ID), from, from+page-1).Result()
		require.NoError(b, err)
		for i, z := range line {
			rank := from + int64(i) + 1
			off := float64(max(rankOf(int64(z.Score))-rank, rank-rankOf(int64(z.Score))))
			if rank <= domain.RankDense {
				first = max(first, off)
			} else {
				beyond = max(beyond, off/float64(rank))
			}
		}
		if len(line) < page {
			return first, beyond
		}
	}
}

// sourceLoop admits as the source texts do: one after the other, each with two commands.
var sourceLoop = redis.NewScript(`
	local members = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
	for _, member in ipairs(members) do
		redis.call('ZREM', KEYS[1], member)
		redis.call('ZADD', KEYS[2], ARGV[2], member)
	end
	return members`)

// BenchmarkAdmit lets five thousand in at once.
func BenchmarkAdmit(b *testing.B) {
	s := redisStage(b)
	Comparison{
		Name: "queue-3-admit", Title: "Admitting 5,000 of 45,000",
		About: "The time is what Redis tells of its scripts. Foyer admits in steps, between which others are served, and writes turns, presence and rate along; " +
			"the loop of the source texts is one script that moves members between two sets.",
		Servers: s.servers,
		Metrics: []Metric{{"longest", "longest script, ms"}, {"total", "all scripts, ms"}},
		Variants: []Variant{
			{"Foyer", func(b *testing.B) Sample { return s.admitFive(b, 0) }},
			{"Foyer, 4 lanes", func(b *testing.B) Sample { return s.admitFive(b, 4) }},
			{"loop of the source texts", s.admitLoop},
		},
		Goals: []Goal{
			{Text: "holds Redis for at most 2 ms at a time", Metric: "longest", Variant: "Foyer", AtMost: 2},
			{Text: "and where four lanes share the turns", Metric: "longest", Variant: "Foyer, 4 lanes", AtMost: 2},
			{Text: "at most 6 ms in all", Metric: "total", Variant: "Foyer", AtMost: 6},
			{Text: "less than the loop of the source texts", Metric: "total", Variant: "Foyer", Against: "loop of the source texts", AtMost: 1},
		},
	}.Run(b)
}

const (
	admitting  = 5_000
	admittedOf = 45_000
)

// admitFive admits to a show with so many lanes beside the ordinary line.
func (s *stage) admitFive(b *testing.B, lanes int) Sample {
	require.NoError(b, s.rdb.FlushDB(b.Context()).Err())
	show := s.newShow(b, func(show *domain.Show) {
		show.Paused, show.Queue.MaxActive = true, admitting
		for i := range lanes {
			show.Queue.Lanes = append(show.Queue.Lanes, domain.Lane{Name: fmt.Sprint("lane-", i), Weight: 1 + i})
		}
	})
	s.queue(b, show, 0, admittedOf)
	show.Paused, show.Revision = false, show.Revision+1
	require.NoError(b, s.steps.Configure(b.Context(), show))
	var longest, total time.Duration
	for admitted := 0; admitted < admitting; {
		before, _ := s.scriptTime(b)
		result, err := s.steps.Admit(b.Context(), show.ID, lua.AdmitOptions{})
		require.NoError(b, err)
		after, _ := s.scriptTime(b)
		longest, total = max(longest, after-before), total+after-before
		require.NotEmpty(b, result.Admitted)
		admitted += len(result.Admitted)
	}
	return Sample{"longest": Millis(longest), "total": Millis(total)}
}

func (s *stage) admitLoop(b *testing.B) Sample {
	ctx := b.Context()
	require.NoError(b, s.rdb.FlushDB(ctx).Err())
	for from := 0; from < admittedOf; from += 1000 {
		line := make([]redis.Z, 1000)
		for i := range line {
			line[i] = redis.Z{Score: float64(from + i), Member: string(requestID(from + i))}
		}
		require.NoError(b, s.rdb.ZAdd(ctx, "waiting", line...).Err())
	}
	require.NoError(b, sourceLoop.Load(ctx, s.rdb).Err())
	before, _ := s.scriptTime(b)
	require.NoError(b, sourceLoop.EvalSha(ctx, s.rdb, []string{"waiting", "active"}, admitting, time.Now().UnixMilli()).Err())
	after, _ := s.scriptTime(b)
	return Sample{"longest": Millis(after - before), "total": Millis(after - before)}
}

// BenchmarkWaiterBytes measures what a place in the line costs Redis.
func BenchmarkWaiterBytes(b *testing.B) {
	s := redisStage(b)
	Comparison{
		Name: "queue-4-memory", Title: "Memory of a line",
		About:    "A million people join a show; Redis tells how much more memory it uses, that for its connections left out.",
		Servers:  s.servers,
		Metrics:  []Metric{{"bytes", "bytes a person"}},
		Variants: []Variant{{"1,000,000 waiting", s.waiterBytes}},
		Goals:    []Goal{{Text: "at most 250 bytes each", Metric: "bytes", Variant: "1,000,000 waiting", AtMost: 250}},
		Repeats:  1,
	}.Run(b)
}

func (s *stage) waiterBytes(b *testing.B) Sample {
	const people = 1_000_000
	require.NoError(b, s.rdb.FlushDB(b.Context()).Err())
	show := s.newShow(b, paused)
	before := s.usedMemory(b.Context(), b)
	s.queue(b, show, 0, people)
	return Sample{"bytes": (s.usedMemory(b.Context(), b) - before) / people}
}

func (s *stage) usedMemory(ctx context.Context, b *testing.B) float64 {
	b.Helper()
	info := s.rdb.InfoMap(ctx, "memory")
	used, err := strconv.ParseFloat(info.Item("Memory", "used_memory"), 64)
	require.NoError(b, err)
	clients, err := strconv.ParseFloat(info.Item("Memory", "mem_clients_normal"), 64)
	require.NoError(b, err)
	return used - clients
}
