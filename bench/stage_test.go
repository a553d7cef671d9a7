package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
	"foyer/store"
	"foyer/workers"
)

// TestMain also is the process whose memory is measured: run with an office's
// addresses it serves until its input ends.
func TestMain(m *testing.M) {
	if redisURL := os.Getenv(officeRedis); redisURL != "" {
		if err := serveOffice(redisURL, os.Getenv(officeDatabase)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testenv.Main(m)
}

// preparers is how many goroutines set a stage.
const preparers = 32

// stage is Redis and PostgreSQL with all that a worker process has.
type stage struct {
	redisURL, sqlURL string

	options *redis.Options
	rdb     *redis.Client
	steps   *lua.Steps
	store   *store.DB
	sql     *pgxpool.Pool // to go around the store
	servers []string
}

// redisStage has Redis alone.
func redisStage(b *testing.B) *stage {
	b.Helper()
	url := testenv.StartRedis(b).URL
	options, err := redis.ParseURL(url)
	require.NoError(b, err)
	options.ContextTimeoutEnabled, options.PoolSize = true, 64
	s := &stage{redisURL: url, options: options, rdb: redis.NewClient(options)}
	b.Cleanup(func() { _ = s.rdb.Close() })
	s.steps = lua.New(s.rdb)
	s.servers = []string{"redis " + s.rdb.InfoMap(b.Context(), "server").Item("Server", "redis_version")}
	return s
}

func newStage(b *testing.B) *stage {
	b.Helper()
	s := redisStage(b)
	url := testenv.StartPostgres(b, "fsync=on").URL // as in production: what is answered outlives the machine
	db, err := store.Open(b.Context(), url)
	require.NoError(b, err)
	b.Cleanup(func() { _ = db.Close() })
	require.NoError(b, db.Migrate(b.Context()))
	s.store, s.sqlURL = db, url
	s.sql, err = pgxpool.New(b.Context(), url+"&pool_max_conns=16")
	require.NoError(b, err)
	b.Cleanup(s.sql.Close)
	var version string
	require.NoError(b, s.sql.QueryRow(b.Context(), "SHOW server_version").Scan(&version))
	s.servers = append(s.servers, "PostgreSQL "+version+" (synchronous_commit on, fsync on)")
	return s
}

// client never repeats a command, as a sender or reader of commands must not.
func (s *stage) client() *redis.Client {
	options := *s.options
	options.MaxRetries = -1
	return redis.NewClient(&options)
}

// newShow is on sale, with room for everybody.
func (s *stage) newShow(b *testing.B, change func(*domain.Show)) domain.Show {
	b.Helper()
	show := domain.Show{
		ID: testenv.ShowID(b), Title: "Bench", OpensAt: time.Now().UTC().Add(-time.Minute).Truncate(time.Microsecond),
		Queue: domain.DefaultQueue(), Seating: domain.DefaultSeating(), DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 1,
	}
	show.Queue.MaxActive, show.Queue.RatePerMinute, show.Queue.SessionSeconds, show.Queue.GraceSeconds = 1_000_000, 1_000_000, 86_400, 3600
	show.Seating.Sections = []domain.Section{{Name: "A", Rows: 200, SeatsPerRow: 250, Price: 1000}}
	if change != nil {
		change(&show)
	}
	if s.store != nil {
		require.NoError(b, s.store.CreateShow(b.Context(), show))
	}
	require.NoError(b, s.steps.Configure(b.Context(), show))
	return show
}

// work runs a worker process's part for one group, on a store, until stop.
func (s *stage) work(b *testing.B, group string, on workers.Store) (stop func()) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	publishing := s.client()
	commands, err := events.NewCommands(publishing, log)
	require.NoError(b, err)
	w := workers.New(time.Second, workers.Deps{
		Steps: s.steps, Store: on, Commands: commands, Notifier: events.NewBus(s.rdb, events.BusConfig{Log: log}), Log: log,
	})
	consumer, err := events.NewConsumer(events.ConsumerConfig{
		Redis: func(string) redis.UniversalClient { return s.client() }, Groups: []string{group}, Log: log,
	}, w.Handlers())
	require.NoError(b, err)
	serving, stopServing := context.WithCancel(context.WithoutCancel(b.Context()))
	ctx, cancel := context.WithCancel(b.Context())
	var beside sync.WaitGroup
	beside.Go(func() { w.Serve(serving) })
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(b, <-ended)
		stopServing()
		beside.Wait()
		_ = publishing.Close()
	}
}

// redisTime is the processor time that Redis has used.
func (s *stage) redisTime(b *testing.B) time.Duration {
	b.Helper()
	info := s.rdb.InfoMap(b.Context(), "cpu")
	var total float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info.Item("CPU", name), 64)
		require.NoError(b, err)
		total += seconds
	}
	return time.Duration(total * float64(time.Second))
}

// settled waits until everything on a stream is acknowledged by its group.
func (s *stage) settled(b *testing.B, stream string) {
	b.Helper()
	testenv.Eventually(b, 5*time.Minute, "all commands are acknowledged", func() bool {
		groups, err := s.rdb.XInfoGroups(b.Context(), stream).Result()
		return err == nil && len(groups) == 1 && groups[0].Pending == 0 && groups[0].Lag == 0
	})
}

// each calls do with 0 to n-1 from several goroutines.
func each(b *testing.B, n int, do func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, preparers)
	for range preparers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					failed <- fmt.Errorf("%d of %d: %w", i, n, err)
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	require.NoError(b, <-failed)
}
