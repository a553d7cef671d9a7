package operate_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/operate"
	"foyer/internal/testenv"
	"foyer/lua"
	"foyer/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const operator = domain.PersonID("olga")

// booth is a desk with the servers that it acts on, and one show.
type booth struct {
	*operate.Desk
	t     *testing.T
	rdb   *redis.Client
	db    *store.DB
	steps *lua.Steps
	show  domain.Show

	mu    sync.Mutex
	heard []events.Notification
}

// Notify implements events.Sink.
func (b *booth) Notify(n events.Notification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, n)
}

// Gap implements events.Sink.
func (b *booth) Gap(string) {}

func newBooth(t *testing.T, change func(*domain.Show)) *booth {
	t.Helper()
	ctx := t.Context()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "booth.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(ctx))
	log := slog.New(slog.DiscardHandler)
	server := testenv.StartRedis(t) // of its own: streams and channels are shared by all shows
	b := &booth{t: t, db: db, rdb: server.Client(t)}
	b.steps = lua.New(b.rdb)
	commands, err := events.NewCommands(once(t, b.rdb), log)
	require.NoError(t, err)
	t.Cleanup(commands.Close)
	bus := events.NewBus(b.rdb, events.BusConfig{Log: log})
	b.listen(bus)
	b.show = domain.Show{
		ID: testenv.ShowID(t), Title: "Operated", OpensAt: time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond),
		Queue: domain.DefaultQueue(), Seating: domain.DefaultSeating(), DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 1,
	}
	change(&b.show)
	require.NoError(t, db.CreateShow(ctx, b.show))
	require.NoError(t, b.steps.Configure(ctx, b.show))
	b.Desk = &operate.Desk{Store: db, Steps: b.steps, Commands: commands, Notifier: bus, Letters: events.NewDeadLetters(b.rdb), Log: log}
	return b
}

// once never repeats a command, as a sender of commands must not.
func once(t *testing.T, rdb *redis.Client) *redis.Client {
	options := *rdb.Options()
	options.MaxRetries = -1
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (b *booth) listen(bus *events.Bus) {
	ctx, stop := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = bus.Run(ctx, once(b.t, b.rdb), b)
	}()
	b.t.Cleanup(func() {
		stop()
		<-done
	})
	testenv.Eventually(b.t, 10*time.Second, "the bus is healthy", bus.Healthy)
}

// hears waits for a notification that fits.
func (b *booth) hears(what string, fits func(events.Notification) bool) {
	b.t.Helper()
	testenv.Eventually(b.t, 10*time.Second, what, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, n := range b.heard {
			if n.ShowID == b.show.ID && fits(n) {
				return true
			}
		}
		return false
	})
}

// commands are how many admission commands were sent.
func (b *booth) commands() int64 { return b.rdb.XLen(b.t.Context(), events.StreamAdmission).Val() }

func (b *booth) join(n int) []domain.RequestID {
	b.t.Helper()
	people := make([]domain.RequestID, n)
	for i := range people {
		people[i] = domain.RequestID(fmt.Sprintf("p%03d", i))
		_, _, err := b.steps.Join(b.t.Context(), lua.JoinRequest{ShowID: b.show.ID, RequestID: people[i]})
		require.NoError(b.t, err)
	}
	return people
}

func (b *booth) stats() domain.Stats {
	b.t.Helper()
	stats, err := b.steps.Stats(b.t.Context(), b.show.ID)
	require.NoError(b.t, err)
	return stats[0]
}

// newest is the newest action that was written down.
func (b *booth) newest() domain.OperatorAction {
	b.t.Helper()
	actions, err := b.db.Actions(b.t.Context(), b.show.ID, "", 1)
	require.NoError(b.t, err)
	require.Len(b.t, actions, 1)
	return actions[0]
}

func paused(most, rate int) func(*domain.Show) {
	return func(s *domain.Show) { s.Paused, s.Queue.MaxActive, s.Queue.RatePerMinute = true, most, rate }
}

// T33: a control was recorded and had no effect. A change is in SQL, in Redis, told to
// everybody, and given on to who waits, by the time it is answered.
func TestT33AChangeHoldsEverywhere(t *testing.T) {
	t.Parallel()
	b := newBooth(t, paused(1, 100))
	before := b.commands()
	show, err := b.Change(t.Context(), operator, b.show.ID, domain.ActionChange, map[string]int{"maxActive": 7}, func(s *domain.Show) error {
		s.Queue.MaxActive = 7
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, show.Revision)
	require.EqualValues(t, 7, b.stats().MaxActive)
	require.Equal(t, before+1, b.commands(), "whom it lets in is let in now")
	b.hears("the change is told", func(n events.Notification) bool { return n.Event == events.EventShow && n.Version == 2 })
	action := b.newest()
	require.Equal(t, operator, action.Operator)
	require.JSONEq(t, `{"maxActive":7}`, action.Detail)
	require.NotNil(t, action.DoneAt)
}

// Letting people in by hand tells which limit stopped it, and passes none.
func TestLettingInTellsWhatStoppedIt(t *testing.T) {
	t.Parallel()
	for limit, c := range map[string]struct{ most, rate, people, asked, admitted int }{
		"":                       {50, 100, 9, 5, 5},
		operate.LimitedByActive:  {3, 100, 9, 5, 3},
		operate.LimitedByRate:    {50, 2, 9, 5, 2},
		operate.LimitedByWaiting: {50, 100, 4, 5, 4},
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			b := newBooth(t, paused(c.most, c.rate))
			people := b.join(c.people)
			done, err := b.Admit(t.Context(), operator, b.show.ID, c.asked)
			require.NoError(t, err)
			require.Equal(t, operate.Admission{Asked: c.asked, Admitted: c.admitted, LimitedBy: limit}, done)
			require.EqualValues(t, c.admitted, b.stats().Active)
			b.hears("who got in", func(n events.Notification) bool {
				return n.Event == events.EventAdmission && len(n.Admitted) == c.admitted && n.Admitted[0].RequestID == people[0]
			})
		})
	}
}

func TestNobodyIsLetInBeforeOrAfterTheSale(t *testing.T) {
	t.Parallel()
	early := newBooth(t, func(s *domain.Show) { s.OpensAt = time.Now().Add(time.Hour).UTC() })
	_, err := early.Admit(t.Context(), operator, early.show.ID, 1)
	notOpen := &domain.NotOpenError{}
	require.ErrorAs(t, err, &notOpen)
	late := newBooth(t, func(s *domain.Show) { s.Closed = true })
	_, err = late.Admit(t.Context(), operator, late.show.ID, 1)
	require.ErrorIs(t, err, domain.ErrClosed)
	_, err = late.Admit(t.Context(), operator, "none", 1)
	require.ErrorIs(t, err, domain.ErrShowNotFound)
}

// Whoever is removed from inside makes room, which is given on at once; who is removed
// from the line does not. Nobody to remove is said, and written down as such.
func TestRemovingSomebody(t *testing.T) {
	t.Parallel()
	b := newBooth(t, func(s *domain.Show) { s.Queue.MaxActive = 1 })
	people := b.join(2)
	before := b.commands()
	require.NoError(t, b.Remove(t.Context(), operator, b.show.ID, people[1]))
	require.Equal(t, before, b.commands())
	require.NoError(t, b.Remove(t.Context(), operator, b.show.ID, people[0]))
	require.Equal(t, before+1, b.commands())
	b.hears("the place ended", func(n events.Notification) bool { return len(n.Ended) == 1 && n.Ended[0] == people[0] })
	require.ErrorIs(t, b.Remove(t.Context(), operator, b.show.ID, "nobody"), domain.ErrNotJoined)
	action := b.newest()
	require.JSONEq(t, `{"requestId":"nobody"}`, action.Detail)
	require.JSONEq(t, `{"removed":false,"freedSlot":false}`, action.Outcome)
}

// T37: a reset that died half-way left everything as it was, for ever. What is written
// down as not done is taken up by any process, once.
func TestT37AResetThatDiedIsTakenUp(t *testing.T) {
	t.Parallel()
	b := newBooth(t, func(s *domain.Show) { s.Queue.MaxActive = 1 })
	b.join(3)
	// The half of it that is SQL's, by a process that died then.
	action := domain.OperatorAction{ID: domain.NewID(), ShowID: b.show.ID, Operator: operator, Action: domain.ActionReset, Detail: "{}"}
	_, err := b.db.ResetShow(t.Context(), action, func(*domain.Show) error { return nil })
	require.NoError(t, err)
	require.EqualValues(t, 3, b.stats().Joined, "nothing has happened to the line")
	require.NoError(t, b.Resume(t.Context(), time.Hour), "it may be under way")
	require.EqualValues(t, 3, b.stats().Joined)

	require.NoError(t, b.Resume(t.Context(), 0))
	stats := b.stats()
	require.Zero(t, stats.Joined+stats.Waiting+stats.Active)
	require.EqualValues(t, 2, stats.Epoch)
	b.hears("everybody is told", func(n events.Notification) bool { return n.Event == events.EventStats && n.Epoch == 2 })
	require.NotNil(t, b.newest().DoneAt)
	b.join(1)
	require.NoError(t, b.Resume(t.Context(), 0))
	require.EqualValues(t, 1, b.stats().Joined, "it is done once")
}

// hasty is somebody who joins as soon as the places have ended.
type hasty struct {
	*lua.Steps
	place domain.Place
}

func (h *hasty) Reset(ctx context.Context, show domain.ShowID, epoch int64) (ended int64, done bool, err error) {
	ended, done, err = h.Steps.Reset(ctx, show, epoch)
	if err == nil {
		h.place, _, err = h.Join(ctx, lua.JoinRequest{ShowID: show, RequestID: "hasty"})
	}
	return ended, done, err
}

// Places ended before the show had its new times: whoever joined in between was let into
// the new epoch at once, ahead of its draw.
func TestNobodyIsLetInBetweenAResetAndItsDraw(t *testing.T) {
	t.Parallel()
	b := newBooth(t, func(*domain.Show) {})
	b.join(2)
	first := &hasty{Steps: b.steps}
	b.Steps = first
	_, err := b.Reset(t.Context(), operator, b.show.ID, struct{}{}, func(s *domain.Show) error {
		prequeue := time.Now().Add(-time.Second).UTC()
		s.PrequeueAt, s.OpensAt = &prequeue, time.Now().Add(time.Hour).UTC()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, domain.StatusPrequeue, first.place.Status)
	require.Zero(t, b.stats().Active)
}

// A reset of a show whose draw is over needs another seed, since its own is known.
func TestAResetDrawsAnew(t *testing.T) {
	t.Parallel()
	b := newBooth(t, func(*domain.Show) {})
	show, err := b.Reset(t.Context(), operator, b.show.ID, struct{}{}, func(*domain.Show) error { return nil })
	require.NoError(t, err)
	require.NotEqual(t, b.show.DrawSeed, show.DrawSeed)
	early := newBooth(t, func(s *domain.Show) { s.OpensAt = time.Now().Add(time.Hour).UTC() })
	show, err = early.Reset(t.Context(), operator, early.show.ID, struct{}{}, func(*domain.Show) error { return nil })
	require.NoError(t, err)
	require.Equal(t, early.show.DrawSeed, show.DrawSeed, "nobody knows it")
}

// What is not a change of the show is entered before it is done: an operator whose step
// fails has left a trace of it, which says that nobody knows how it ended.
func TestWhatFailsIsWrittenDownAsNotDone(t *testing.T) {
	t.Parallel()
	b := newBooth(t, func(s *domain.Show) { s.Queue.MaxActive = 1 })
	b.join(1)
	gone := once(t, b.rdb)
	require.NoError(t, gone.Close())
	b.Steps = lua.New(gone)
	require.Error(t, b.Remove(t.Context(), operator, b.show.ID, "p000"))
	action := b.newest()
	require.Equal(t, domain.ActionRemove, action.Action)
	require.Nil(t, action.DoneAt)
}

func TestCodesAreMintedAndNotWrittenDown(t *testing.T) {
	t.Parallel()
	b := newBooth(t, func(s *domain.Show) { s.Queue.Lanes = []domain.Lane{{Name: "fans", Weight: 2}} })
	codes := domain.NewJoinCodes([]byte("secret"))
	minted, err := b.MintCodes(t.Context(), operator, b.show.ID, codes, operate.CodeOrder{Count: 3, Code: domain.JoinCode{Lane: "fans", Uses: 2}})
	require.NoError(t, err)
	require.Len(t, minted, 3)
	for _, code := range minted {
		opened, lane, err := codes.Open(code, &b.show, "ada", time.Now())
		require.NoError(t, err)
		require.Equal(t, 1, lane)
		require.Equal(t, 2, opened.Uses)
		require.NotContains(t, b.newest().Detail+b.newest().Outcome, code)
	}
	_, err = b.MintCodes(t.Context(), operator, b.show.ID, codes, operate.CodeOrder{Count: 1, Code: domain.JoinCode{Lane: "vips"}})
	invalid := &domain.InvalidError{}
	require.ErrorAs(t, err, &invalid)
}
