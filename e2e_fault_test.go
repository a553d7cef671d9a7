package foyer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// The tests of faults put a crowd in front of a deployment, break a part of it while
// they buy, and then ask: does `foyer verify` find everything in order, is everything
// that was accepted decided, and does everybody who was told "confirmed" have seats?

const (
	// workedWithin is how long anything under test may take on a busy machine.
	workedWithin = 90 * time.Second
	crowdWithin  = 6 * time.Minute // for all that one crowd does
	shoppers     = 8
	cancelling   = 2 // of the shoppers, who cancel whatever they have bought
)

// servers are what a deployment runs on.
type servers struct {
	redis    *testenv.RedisServer
	redisURL string // empty: the server's
	dbURL    string // empty: a database on the shared server
}

// deployOn starts api and worker processes on servers that the test may break. Dead
// workers' commands are taken over soon, so that nobody waits for the tests.
func deployOn(t *testing.T, on servers, apis, workers int, env ...string) *deployment {
	t.Helper()
	if on.dbURL == "" {
		on.dbURL = testenv.DatabaseURL(t)
	}
	if on.redisURL == "" {
		on.redisURL = on.redis.URL
	}
	d := &deployment{redis: on.redis, dbURL: on.dbURL}
	d.env = append([]string{
		"FOYER_HTTP_ADDR=127.0.0.1:0", "FOYER_REDIS_URL=" + on.redisURL, "FOYER_DATABASE_URL=" + on.dbURL,
		"FOYER_JWT_SECRET=" + e2eSecret, "FOYER_SIGNING_KEY=" + e2eKey, "FOYER_LOG_LEVEL=warn",
		"FOYER_TICK=250ms", "FOYER_RECLAIM_IDLE=3s",
	}, env...)
	var starting sync.WaitGroup
	d.apis, d.workers = make([]*process, apis), make([]*process, workers)
	_, err := binary()
	require.NoError(t, err)
	for i := range d.apis {
		starting.Go(func() { d.apis[i] = start(t, d.env, "foyer: listening on ", "api") })
	}
	for i := range d.workers {
		starting.Go(func() { d.workers[i] = d.startWorker(t) })
	}
	starting.Wait()
	return d
}

// run carries out one of the operator's commands.
func (d *deployment) run(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), workedWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), d.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// requireVerified waits until `foyer verify` finds nothing wrong: what was broken
// must heal by itself.
func (d *deployment) requireVerified(t *testing.T, show domain.ShowID) {
	t.Helper()
	var out, log string
	deadline := time.Now().Add(workedWithin)
	for {
		var err error
		if out, log, err = d.run(t, "verify", string(show)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(t, "the show does not come in order", "%s\n%s", out, log)
		}
	}
}

// crowd is people who buy one seat after the other, and some who give it back, whatever
// breaks meanwhile.
type crowd struct {
	t    *testing.T
	d    *deployment
	show domain.ShowID

	closing chan struct{}   // closed when nobody shall begin a purchase
	over    <-chan struct{} // closed when everybody was sent away
	people  sync.WaitGroup

	mu       sync.Mutex
	accepted map[domain.BookingID]domain.BookingStatus // answered 202, with what became of it
	bought   int                                       // how many were confirmed, cancelled since or not
	failures []error                                   // the latest, for when the test fails
}

// openTo puts a show on sale and lets a crowd in.
func (d *deployment) openTo(t *testing.T, rows int) *crowd {
	t.Helper()
	show := d.putOnSale(t, func(s *client.NewShow) { s.Seating = seating(rows, 50) })
	c := &crowd{t: t, d: d, show: show, closing: make(chan struct{}), accepted: map[domain.BookingID]domain.BookingStatus{}}
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), crowdWithin)
	c.over = ctx.Done()
	t.Cleanup(func() {
		stop()
		c.people.Wait()
		if t.Failed() {
			t.Logf("failures of the crowd: %v", errors.Join(c.failures...))
		}
	})
	for i := range shoppers {
		c.people.Go(func() { c.shop(ctx, i) })
	}
	return c
}

// shop buys seat after seat, each as somebody new: who has bought is shown out.
func (c *crowd) shop(ctx context.Context, i int) {
	for n := 0; !isClosed(c.closing) && ctx.Err() == nil; n++ {
		who := c.d.as(c.t, i+n, fmt.Sprintf("shopper-%d-%d", i, n))
		for intent := 0; ctx.Err() == nil; intent++ {
			booking, err := c.buy(ctx, who, fmt.Sprintf("intent-%d", intent))
			if err == nil && booking.Status == domain.BookingConfirmed && i < cancelling {
				c.takeBack(ctx, who, booking)
			}
			if err == nil || client.HasCode(err, client.CodeSoldOut) {
				break
			}
			c.mu.Lock()
			c.failures = append(c.failures[max(0, len(c.failures)-50):], err)
			c.mu.Unlock()
			wait(ctx, 50*time.Millisecond+rand.N(150*time.Millisecond))
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// buy walks the whole way once. Once the booking is accepted it is waited for,
// however long that takes: an accepted booking is decided.
func (c *crowd) buy(ctx context.Context, who *client.Client, key string) (booking domain.Booking, err error) {
	if err := enter(ctx, who, c.show); err != nil {
		return booking, fmt.Errorf("enter: %w", err)
	}
	hold, err := who.HoldBest(ctx, c.show, 1, "")
	if err != nil {
		return booking, fmt.Errorf("hold: %w", err)
	}
	err = client.Retry(ctx, 20, func(ctx context.Context) (err error) {
		booking, err = who.Book(ctx, c.show, hold.HoldID, key)
		return err
	})
	if err != nil {
		return booking, fmt.Errorf("book: %w", err)
	}
	return c.awaited(ctx, who, booking, domain.BookingPending)
}

// awaited waits for what becomes of a booking, however long that takes.
func (c *crowd) awaited(ctx context.Context, who *client.Client, booking domain.Booking, unwanted domain.BookingStatus) (domain.Booking, error) {
	c.note(booking)
	for ctx.Err() == nil {
		decided, err := who.WaitBooking(ctx, booking.BookingID, unwanted)
		if err == nil {
			c.note(decided)
			return decided, nil
		}
		wait(ctx, 100*time.Millisecond)
	}
	return booking, ctx.Err()
}

// takeBack cancels a booking. Once that is accepted it is waited for: an accepted
// cancellation is carried out.
func (c *crowd) takeBack(ctx context.Context, who *client.Client, booking domain.Booking) {
	for ctx.Err() == nil {
		if _, err := who.CancelBooking(ctx, booking.BookingID); err == nil {
			_, _ = c.awaited(ctx, who, booking, domain.BookingConfirmed)
			return
		}
		wait(ctx, 100*time.Millisecond)
	}
}

func (c *crowd) note(b domain.Booking) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Status == domain.BookingConfirmed && c.accepted[b.BookingID] != b.Status {
		c.bought++
	}
	c.accepted[b.BookingID] = b.Status
}

func (c *crowd) confirmed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bought
}

// flows waits until so many more have bought.
func (c *crowd) flows(what string, more int) {
	c.t.Helper()
	before := c.confirmed()
	testenv.Eventually(c.t, workedWithin, what, func() bool { return c.confirmed() >= before+more })
}

// goHome lets everybody finish what they have begun, and requires that all is well:
// verified, and what each was told is what SQL has.
func (c *crowd) goHome() {
	c.t.Helper()
	close(c.closing)
	done := make(chan struct{})
	go func() { c.people.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(workedWithin):
		require.FailNow(c.t, "not everybody who was accepted was told what became of it")
	}
	require.False(c.t, isClosed(c.over), "the crowd was sent away before it was done")
	c.d.requireVerified(c.t, c.show)
	operator := c.d.as(c.t, 0, "operator", "operator")
	for id, told := range c.accepted {
		b, err := operator.Booking(c.t.Context(), id)
		require.NoError(c.t, err)
		require.Equal(c.t, told, b.Status, "booking %s", id)
	}
}

// T1, S33: Redis is killed, and comes back with all that it had answered. People keep
// their places, and nothing is done twice.
func TestE2EFaultRedisKilledAndBack(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")}, 2, 2)
	c := d.openTo(t, 20)
	for range 2 {
		c.flows("sales before Redis is killed", 15)
		d.redis.Kill()
		d.redis.Restart()
	}
	c.flows("sales go on", 15)
	c.goHome()
}

// Redis loses everything, streams and groups among it, while people buy.
func TestE2EFaultRedisFlushed(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 2, 2)
	c := d.openTo(t, 20)
	for range 2 {
		c.flows("sales before Redis is flushed", 15)
		require.NoError(t, d.redis.Client(t).FlushAll(t.Context()).Err())
	}
	c.flows("sales go on", 15)
	c.goHome()
}

// A cancellation was accepted, and Redis lost its command before any worker had it. Nobody
// cancelled, and nobody knew that it had been asked for.
func TestE2EFaultRedisForgetsACancellation(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), workedWithin)
	defer cancel()
	show := d.putOnSale(t, func(s *client.NewShow) { s.Seating = seating(1, 2) })
	buyer := d.as(t, 0, "buyer")
	booking, err := buyOne(t, buyer, show, 0)
	require.NoError(t, err)
	d.requireVerified(t, show) // what SQL has decided is in Redis a moment later, by the worker
	d.workers[0].kill()
	asked, err := buyer.CancelBooking(ctx, booking.BookingID)
	require.NoError(t, err)
	require.Equal(t, domain.BookingConfirmed, asked.Status)
	out, log, err := d.run(t, "verify", string(show))
	require.NoError(t, err, log)
	require.Contains(t, out, fmt.Sprintf("1 bookings were asked to be cancelled and are not yet; the first, %s", booking.BookingID))
	require.NoError(t, d.redis.Client(t).FlushAll(ctx).Err())

	d.workers[0] = d.startWorker(t)
	cancelled, err := buyer.WaitBooking(ctx, booking.BookingID, domain.BookingConfirmed)
	require.NoError(t, err)
	require.Equal(t, domain.BookingCancelled, cancelled.Status)
	d.requireVerified(t, show)
	d.requireSold(t, show)
}

// S34: Redis comes back with an old file: seats sold since are free in it. They are
// sold again before long, by themselves; who waited then still waits.
func TestE2EFaultRedisBackFromAnOldFile(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 1, 1)
	ctx := t.Context()
	show := d.putOnSale(t, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive = 2
		s.Seating, s.Queue = seating(2, 5), &queue
	})
	first, err := buyOne(t, d.as(t, 0, "first"), show, 0)
	require.NoError(t, err)
	holder, waiter := d.as(t, 0, "holder"), d.as(t, 0, "waiter")
	require.NoError(t, enter(ctx, holder, show))
	require.NoError(t, enter(ctx, d.as(t, 0, "buyer"), show))
	hold, err := holder.HoldBest(ctx, show, 1, "")
	require.NoError(t, err)
	before, _, err := waiter.Join(ctx, show)
	require.NoError(t, err)
	require.Equal(t, domain.StatusWaiting, before.Status)
	require.NoError(t, d.redis.Client(t).Save(ctx).Err())

	second, err := buyOne(t, d.as(t, 0, "buyer"), show, 1)
	require.NoError(t, err)
	_, err = d.as(t, 0, "operator", "operator").CancelBooking(ctx, first.BookingID)
	require.NoError(t, err)
	cancelled, err := d.as(t, 0, "first").WaitBooking(ctx, first.BookingID, domain.BookingConfirmed)
	require.NoError(t, err)
	require.Equal(t, domain.BookingCancelled, cancelled.Status)
	d.redis.Kill()
	d.redis.Restart()

	d.requireVerified(t, show)
	d.requireSold(t, show, second.Seats...)
	told, err := d.as(t, 0, "operator", "operator").OperatorShow(ctx, show)
	require.NoError(t, err)
	require.Greater(t, told.Epoch, before.Epoch, "pages must see that the state is another")
	after, created, err := waiter.Join(ctx, show)
	require.NoError(t, err)
	require.False(t, created, "who waited keeps the place")
	require.Equal(t, before.RequestID, after.RequestID)
	holds, err := holder.Holds(ctx, show)
	require.NoError(t, err)
	require.Len(t, holds, 1, "a hold that nobody bought is kept")
	require.Equal(t, hold.HoldID, holds[0].HoldID)
	out, log, err := d.run(t, "rebuild", string(show))
	require.NoError(t, err, log)
	require.Contains(t, out, "nothing was wrong")
	require.NoError(t, d.redis.Client(t).HIncrBy(ctx, fmt.Sprintf("show:{%s}", show), "joined", 1).Err())
	out, log, err = d.run(t, "verify", string(show))
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, out, "wrong: waiting+active+ended=joined")
	require.Contains(t, log, "wrong in 1 ways")
}

// requireSold compares what everybody is told is sold.
func (d *deployment) requireSold(t *testing.T, show domain.ShowID, want ...domain.SeatID) {
	t.Helper()
	seats, err := d.as(t, 0, "reader").Seats(t.Context(), show, 0)
	require.NoError(t, err)
	var sold []domain.SeatID
	for _, seat := range seats.Seats {
		if seat.State == domain.SeatSold {
			sold = append(sold, seat.ID)
		}
	}
	require.ElementsMatch(t, want, sold)
}

// PostgreSQL is killed and comes back. What it had committed stands; what it had not
// is decided afterwards, and no command is given up on for it.
func TestE2EFaultPostgresKilledAndBack(t *testing.T) {
	postgres := testenv.StartPostgres(t)
	d := deployOn(t, servers{redis: testenv.StartRedis(t), dbURL: postgres.URL}, 2, 2)
	c := d.openTo(t, 20)
	for range 2 {
		c.flows("sales before PostgreSQL is killed", 15)
		postgres.Kill()
		postgres.Restart()
	}
	c.flows("sales go on", 15)
	c.goHome()
	letters, err := d.as(t, 0, "operator", "operator").DeadLetters(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, letters, "an outage is no command's fault")
}

// Trap 8, S13: connections that swallow what is sent and bring nothing, to Redis and
// to PostgreSQL at once. They are given up, and what was sent into them is found again.
func TestE2EFaultConnectionsGoSilent(t *testing.T) {
	redis := testenv.StartRedis(t)
	toRedis := testenv.StartProxy(t, redis.Addr)
	dbURL := testenv.DatabaseURL(t)
	at := address(dbURL)
	toPostgres := testenv.StartProxy(t, at)
	d := deployOn(t, servers{
		redis: redis, redisURL: "redis://" + toRedis.Addr + "/0", dbURL: strings.Replace(dbURL, at, toPostgres.Addr, 1),
	}, 2, 2)
	c := d.openTo(t, 20)
	c.flows("sales before the silence", 15)
	toRedis.Silence()
	c.flows("sales after Redis went silent", 15)
	toPostgres.Silence()
	c.flows("sales after PostgreSQL went silent", 15)
	toRedis.Cut()
	toPostgres.Cut()
	c.flows("sales after every connection was cut", 15)
	c.goHome()
}

// S17, trap 2, trap 6: entries that nobody can read, a stream that is deleted, and a
// group that is destroyed. An operator reads the dead letters, sends one back, and
// drops them; what was done is written down with who did it.
func TestE2EFaultStrangersOnTheStream(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 1, 2)
	ctx, rdb := t.Context(), d.redis.Client(t)
	c := d.openTo(t, 20)
	c.flows("sales before the trouble", 10)
	require.NoError(t, rdb.XGroupDestroy(ctx, "commands.booking", "booking-workers").Err())
	c.flows("sales after the group was destroyed", 10)
	require.NoError(t, rdb.Del(ctx, "commands.booking").Err())
	c.flows("sales after the stream was deleted", 10)
	add := func(values ...any) {
		_, err := rdb.Do(ctx, append([]any{"XADD", "commands.booking", "*"}, values...)...).Result()
		require.NoError(t, err)
	}
	add("nonsense", "1")
	add("id", "stranger", "type", "SELL_THE_HOUSE", "version", "1", "payload", "{}")
	add("id", "broken", "type", "BOOK_SEATS", "version", "1", "payload", "\x1b[2J{")
	operator := d.as(t, 0, "operator", "operator")
	var ids []string
	testenv.Eventually(t, workedWithin, "three dead letters", func() bool {
		letters, err := operator.DeadLetters(ctx, "commands.booking")
		ids = nil
		for _, letter := range letters {
			ids = append(ids, letter.ID)
		}
		return err == nil && len(letters) == 3
	})
	c.flows("sales after the strangers", 5)
	c.goHome()

	out, log, err := d.run(t, "dead-letters", "list")
	require.NoError(t, err, log)
	require.Equal(t, 4, strings.Count(out, "\n"), out)
	for _, part := range append(slices.Clone(ids), "undecodable", "unknown command", "SELL_THE_HOUSE", "stranger") {
		require.Contains(t, out, part)
	}
	out, log, err = d.run(t, append([]string{"dead-letters", "show", "commands.booking"}, ids...)...)
	require.NoError(t, err, log)
	require.Contains(t, out, "payload =  [2J{", "control characters do not reach the terminal")
	out, log, err = d.run(t, "verify", "--all", "--json")
	require.NoError(t, err, log)
	require.Contains(t, out, "dead letter "+ids[0])

	_, log, err = d.run(t, "dead-letters", "requeue", "commands.booking", ids[0], "--operator", "ada")
	require.NoError(t, err, log)
	testenv.Eventually(t, workedWithin, "what was sent back dies again", func() bool {
		letters, err := operator.DeadLetters(ctx, "commands.booking")
		return err == nil && len(letters) == 3 && !slices.ContainsFunc(letters, func(l client.DeadLetter) bool { return l.ID == ids[0] })
	})
	_, log, err = d.run(t, "dead-letters", "drop", "commands.booking", ids[1], ids[2])
	require.NoError(t, err, log)
	out, log, err = d.run(t, "dead-letters", "audit")
	require.NoError(t, err, log)
	require.Regexp(t, `ada +requeue-dead-letter +\{"stream":"commands.booking","id":"`+ids[0], out)
	require.Equal(t, 2, strings.Count(out, "drop-dead-letter"), out)
	_, log, err = d.run(t, "dead-letters", "drop", "commands.booking", ids[1])
	require.Error(t, err)
	require.Contains(t, log, "not found")
}
