package verify_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/internal/verify"
	"foyer/lua"
	"foyer/store"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// office is a show that has been sold from, on servers of its own: streams are shared
// by all shows of a Redis.
type office struct {
	t        *testing.T
	rdb      *redis.Client
	db       *store.DB
	steps    *lua.Steps
	show     domain.Show
	verifier verify.Verifier
	sold     domain.Booking // to ann: A-1-1, A-1-2
	rejected domain.Booking // of bob, for A-1-1
	pending  domain.Booking // of eve, for A-2-1; its command is on the stream
}

func newOffice(t *testing.T) *office {
	t.Helper()
	ctx := t.Context()
	db, err := store.Open(ctx, testenv.DatabaseURL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(ctx))
	rdb := testenv.StartRedis(t).Client(t)
	o := &office{t: t, rdb: rdb, db: db, steps: lua.New(rdb)}
	seating := domain.DefaultSeating()
	seating.Sections = []domain.Section{{Name: "A", Rows: 2, SeatsPerRow: 5, Price: 1000}}
	o.show = domain.Show{
		ID: testenv.ShowID(t), Title: "Verified", OpensAt: time.Now().Add(-time.Minute), Queue: domain.DefaultQueue(),
		Seating: seating, DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 1,
	}
	require.NoError(t, db.CreateShow(ctx, o.show))
	require.NoError(t, o.steps.Configure(ctx, o.show))
	o.verifier = verify.Verifier{
		Redis: o.steps, SQL: db, Streams: events.NewBacklog(rdb), Letters: events.NewDeadLetters(rdb), Looks: 2, Pause: time.Millisecond,
	}
	o.sold, o.rejected, o.pending = o.begin("ann", "A-1-1", "A-1-2"), o.recorded("bob", "A-1-1"), o.begin("eve", "A-2-1")
	outcomes, err := db.Book(ctx, []domain.Booking{o.sold, o.rejected})
	require.NoError(t, err)
	_, err = o.steps.CompleteBooking(ctx, outcomes[0].Booking)
	require.NoError(t, err)
	_, err = o.steps.RejectBooking(ctx, outcomes[1].Booking, outcomes[1].SoldBy)
	require.NoError(t, err)
	o.publish(o.pending.CommandID, o.pending)
	o.join("dan")
	o.hold("dan", "A-2-5")
	return o
}

func (o *office) join(person string) domain.RequestID {
	request := domain.RequestID(person)
	_, _, err := o.steps.Join(o.t.Context(), lua.JoinRequest{ShowID: o.show.ID, RequestID: request})
	require.NoError(o.t, err)
	_, err = o.steps.Claim(o.t.Context(), o.show.ID, request)
	require.NoError(o.t, err)
	return request
}

func (o *office) hold(person string, seats ...domain.SeatID) domain.HoldID {
	hold := domain.HoldID("hold-" + person)
	_, err := o.steps.Hold(o.t.Context(), lua.HoldRequest{
		ShowID: o.show.ID, RequestID: domain.RequestID(person), HoldID: hold, Candidates: [][]domain.SeatID{seats},
	})
	require.NoError(o.t, err)
	return hold
}

// recorded is a booking in SQL alone.
func (o *office) recorded(person string, seats ...domain.SeatID) domain.Booking {
	b := domain.Booking{
		BookingID: domain.BookingID("booking-" + person), CommandID: domain.CommandID("command-" + person + string(o.show.ID)), ShowID: o.show.ID,
		PersonID: domain.PersonID(person), RequestID: domain.RequestID(person), HoldID: domain.HoldID("hold-" + person), Seats: seats, Price: 1000,
	}
	recorded, _, err := o.db.RecordBooking(o.t.Context(), domain.BookingRequest{Booking: b, Key: person, Fingerprint: "f"})
	require.NoError(o.t, err)
	return recorded
}

// begin is a booking on its way: held, begun and recorded.
func (o *office) begin(person string, seats ...domain.SeatID) domain.Booking {
	request := o.join(person)
	hold := o.hold(person, seats...)
	_, _, err := o.steps.BeginBooking(o.t.Context(), o.show.ID, request, hold, domain.BookingID("booking-"+person))
	require.NoError(o.t, err)
	return o.recorded(person, seats...)
}

func (o *office) publish(command domain.CommandID, b domain.Booking) {
	options := *o.rdb.Options()
	options.MaxRetries = -1
	once := redis.NewClient(&options)
	o.t.Cleanup(func() { _ = once.Close() })
	commands, err := events.NewCommands(once, nil)
	require.NoError(o.t, err)
	require.NoError(o.t, commands.BookSeats(o.t.Context(), command, events.BookSeats{Booking: b}))
}

func (o *office) key(name string) string { return fmt.Sprintf("%s:{%s}", name, o.show.ID) }

func (o *office) verify() verify.Report {
	o.t.Helper()
	report, err := o.verifier.Verify(o.t.Context(), o.show.ID)
	require.NoError(o.t, err)
	return report
}

func TestCleanShowIsClean(t *testing.T) {
	t.Parallel()
	report := newOffice(t).verify()
	require.Empty(t, report.Findings)
	require.Equal(t, verify.Numbers{Loaded: true, Active: 2, Holds: 2, Sold: 2, Bookings: 3, Pending: 1, Unfinished: 1}, report.Numbers)
}

// breakage is one promise broken by hand, and what must be said of it.
type breakage struct {
	check, subject string
	do             func(o *office, ctx context.Context) error
}

func breakages() []breakage {
	hset := func(key string, values ...any) func(*office, context.Context) error {
		return func(o *office, ctx context.Context) error { return o.rdb.HSet(ctx, o.key(key), values...).Err() }
	}
	hdel := func(key, field string) func(*office, context.Context) error {
		return func(o *office, ctx context.Context) error { return o.rdb.HDel(ctx, o.key(key), field).Err() }
	}
	zadd := func(key, member string) func(*office, context.Context) error {
		return func(o *office, ctx context.Context) error {
			return o.rdb.ZAdd(ctx, fmt.Sprintf(key, o.show.ID), redis.Z{Score: 9e12, Member: member}).Err()
		}
	}
	return []breakage{
		{"sold counter=seats", "", hset("show", "sold", 7)},
		{"held counter=seats", "", hset("show", "held", 0)},
		{"waiting+active+ended=joined", "", hset("show", "joined", 9)},
		{"active<=maxActive", "", hset("show", "max_active", 1)},
		{"epoch", "", hset("show", "epoch", 0)},
		{"sold-out key", "", func(o *office, ctx context.Context) error { return o.rdb.Set(ctx, o.key("sold-out"), "1", 0).Err() }},
		{"one place a person", "dan", zadd("sessions:{%s}:waiting", "dan")},
		{"presence of those who wait", "", zadd("presence:{%s}", "ghost")},
		{"a lane of the show", "", zadd("sessions:{%s}:waiting", "astray")},
		{"one place a person", "zoe", func(o *office, ctx context.Context) error {
			return o.rdb.SAdd(ctx, fmt.Sprintf("sessions:{%s}:claimed", o.show.ID), "zoe").Err()
		}},
		{"sold in SQL=sold in Redis", "A-1-1", hdel("seats", "A-1-1")},
		{"sold in SQL=sold in Redis", "A-2-2", hset("seats", "A-2-2", "s:booking-bob")},
		{"sold in SQL=sold in Redis", "A-1-1", hset("seats", "A-1-1", "s:booking-bob")},
		{"held seat=hold", "A-2-3", hset("seats", "A-2-3", "h:nobody:zoe:9999999999999")},
		{"held seat=hold", "A-2-5", hset("seats", "A-2-5", "h:hold-dan:zoe:9999999999999")},
		{"held seat=hold", "A-2-3", hset("seats", "A-2-3", "what")},
		{"hold=its seats", "hold-dan", hdel("seats", "A-2-5")},
		{"seats of the plan", "B-1-1", hset("seats", "B-1-1", "h:hold-dan:dan:9999999999999")},
		{"index of holds", "hold-dan", hdel("owners", "dan")},
		{"index of holds", "ghost", zadd("hold-begun:{%s}", "ghost")},
		{"bought counter=seats", "ann", hset("bought", "ann", 1)},
		{"settled=decided", "booking-bob", hset("settled", "booking-bob", "C")},
		{"settled=decided", "booking-unknown", hset("settled", "booking-unknown", "C")},
		{"settled=decided", "booking-eve", func(o *office, ctx context.Context) error {
			_, err := o.db.FailBooking(ctx, o.pending.BookingID, domain.ReasonFailed)
			return err
		}},
		{"limit of a person", "dan", func(o *office, ctx context.Context) error {
			return o.rdb.HSet(ctx, o.key("show"), "seat_limit", 0).Err()
		}},
		{"one command a booking", "booking-eve", func(o *office, _ context.Context) error {
			o.publish("another command", o.pending)
			return nil
		}},
		{"dead letters", "1-1", func(o *office, ctx context.Context) error {
			return o.rdb.XAdd(ctx, &redis.XAddArgs{Stream: events.StreamBooking + ".dead", ID: "1-1", Values: []any{"id", "x"}}).Err()
		}},
		{"pending entries", "5-1", func(o *office, ctx context.Context) error {
			return o.rdb.XAdd(ctx, &redis.XAddArgs{Stream: events.StreamChatRead, ID: "5-1", Values: []any{"id", "x"}}).Err()
		}},
	}
}

// A verifier that never says no is worth nothing: each promise is broken by hand, and
// told by its name.
func TestEveryBrokenPromiseIsTold(t *testing.T) {
	t.Parallel()
	for _, b := range breakages() {
		t.Run(b.check+" "+b.subject, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			require.NoError(t, b.do(o, t.Context()))
			found := o.verify().Findings
			subject := b.subject
			if subject == "" {
				subject = string(o.show.ID)
			}
			require.True(t, slices.ContainsFunc(found, func(f verify.Finding) bool { return f.Check == b.check && f.Subject == subject }), "%v", found)
		})
	}
}

// What is wrong in SQL itself is told too: rows that no booking explains.
func TestBrokenLedgerIsTold(t *testing.T) {
	t.Parallel()
	ledger := store.Ledger{
		Show: domain.Show{ID: "s", Seating: domain.Seating{SeatLimit: 1}},
		Bookings: map[domain.BookingID]store.LedgerBooking{
			"twice":    {Booking: domain.Booking{BookingID: "twice", CommandID: "c1", Status: domain.BookingConfirmed, Seats: []domain.SeatID{"A-1-1", "A-1-2"}, RequestID: "ann"}},
			"foreign":  {Booking: domain.Booking{BookingID: "foreign", CommandID: "c2", Status: domain.BookingRejected}},
			"unheard":  {Booking: domain.Booking{BookingID: "unheard", CommandID: "c3", Status: domain.BookingPending}, Age: time.Hour},
			"kept":     {Booking: domain.Booking{BookingID: "kept", CommandID: "c6", Status: domain.BookingConfirmed}, CancelAsked: time.Hour},
			"passing":  {Booking: domain.Booking{BookingID: "passing", CommandID: "c7", Status: domain.BookingConfirmed}, CancelAsked: time.Second},
			"undone":   {Booking: domain.Booking{BookingID: "undone", CommandID: "c4", Status: domain.BookingCancelled}},
			"wordless": {Booking: domain.Booking{BookingID: "wordless", CommandID: "c5", Status: domain.BookingRejected, Reason: domain.ReasonFailed}},
		},
		Sold: []domain.SoldSeat{{SeatID: "A-1-1", BookingID: "twice"}, {SeatID: "A-1-9", BookingID: "foreign"}, {SeatID: "A-2-9", BookingID: "nobody"}},
		Handled: []store.HandledCommand{
			{CommandID: "c1", Kind: "book", BookingID: "twice", Outcome: domain.BookingConfirmed},
			{CommandID: "c1b", Kind: "book", BookingID: "twice", Outcome: domain.BookingConfirmed},
			{CommandID: "other", Kind: "book", BookingID: "foreign", Outcome: domain.BookingRejected},
			{CommandID: "c6", Kind: "book", BookingID: "kept", Outcome: domain.BookingConfirmed},
			{CommandID: "c7", Kind: "book", BookingID: "passing", Outcome: domain.BookingConfirmed},
			{CommandID: "c4", Kind: "book", BookingID: "undone", Outcome: domain.BookingRejected},
		},
	}
	facts := verify.Facts{SQL: ledger}
	told := map[string]bool{}
	for _, f := range facts.Findings() {
		told[f.Check+" "+f.Subject] = true
	}
	require.Equal(t, map[string]bool{
		"one live booking a seat twice":     true,
		"sold seat=confirmed booking A-1-9": true,
		"sold seat=confirmed booking A-2-9": true,
		"limit of a person ann":             true,
		"one command a booking twice":       true,
		"one command a booking foreign":     true,
		"one command a booking undone":      true,
		"pending bookings unheard":          true,
		"cancellations kept":                true,
	}, told)
}

// A cancellation that is under way is explained, and is not wrong.
func TestACancellationUnderWayIsExplained(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, err := o.db.AskCancel(t.Context(), o.sold.BookingID)
	require.NoError(t, err)
	report := o.verify()
	require.Empty(t, report.Findings)
	require.Equal(t, 1, report.Numbers.Cancelling)
	require.Len(t, report.Notes, 1)
	require.Contains(t, report.Notes[0], "1 bookings were asked to be cancelled and are not yet; the first, booking-ann")
}

// Commands are forgotten when they are old enough; what is younger must have its own, and
// what is left of old ones must still be right.
func TestOldCommandsMayBeForgotten(t *testing.T) {
	t.Parallel()
	made := time.Now().Add(-2 * domain.MinCommandRetention)
	late := made.Add(domain.MinCommandRetention + time.Hour)
	ledger := store.Ledger{Show: domain.Show{ID: "s"}, Bookings: map[domain.BookingID]store.LedgerBooking{}}
	add := func(id domain.BookingID, b domain.Booking) {
		b.BookingID, b.CommandID, b.CreatedAt, b.DecidedAt = id, domain.CommandID("of-"+id), made, &made
		ledger.Bookings[id] = store.LedgerBooking{Booking: b, Age: time.Since(made)}
	}
	add("old", domain.Booking{Status: domain.BookingConfirmed})
	add("given back", domain.Booking{Status: domain.BookingCancelled, CancelledAt: &made})
	add("given back late", domain.Booking{Status: domain.BookingCancelled, CancelledAt: &late})
	add("by another", domain.Booking{Status: domain.BookingConfirmed})
	add("not cancelled", domain.Booking{Status: domain.BookingConfirmed})
	ledger.Handled = []store.HandledCommand{
		{CommandID: "c", Kind: "book", BookingID: "by another", Outcome: domain.BookingConfirmed},
		{CommandID: "d", Kind: "cancel", BookingID: "not cancelled", Outcome: domain.BookingCancelled},
	}
	facts := verify.Facts{SQL: ledger}
	var told []string
	for _, f := range facts.Findings() {
		require.Equal(t, "one command a booking", f.Check)
		told = append(told, f.Subject)
	}
	require.Equal(t, []string{"by another", "given back late", "not cancelled"}, told)
}

// A show that Redis lost is told as such and is not restored by being looked at.
func TestVerifyingRestoresNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	require.NoError(t, o.rdb.FlushAll(t.Context()).Err())
	report := o.verify()
	require.False(t, report.Numbers.Loaded)
	require.NotEmpty(t, report.Notes)
	require.Zero(t, o.rdb.DBSize(t.Context()).Val())
	_, err := o.verifier.Verify(t.Context(), "no-such-show")
	require.ErrorIs(t, err, domain.ErrShowNotFound)
}

// What is merely on its way at one look is not reported.
func TestWhatPassesIsNotReported(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	require.NoError(t, o.rdb.HSet(t.Context(), o.key("show"), "sold", 7).Err())
	mending := &mended{Redis: o.steps, after: 1, mend: func() {
		require.NoError(t, o.rdb.HSet(t.Context(), o.key("show"), "sold", 2).Err())
	}}
	o.verifier.Redis = mending
	require.True(t, o.verify().Clean())
	require.Equal(t, 2, mending.looks)
}

// mended mends something after so many looks.
type mended struct {
	verify.Redis
	looks, after int
	mend         func()
}

func (m *mended) Audit(ctx context.Context, show domain.ShowID) (lua.Audit, error) {
	a, err := m.Redis.Audit(ctx, show)
	if m.looks++; m.looks == m.after {
		m.mend()
	}
	return a, err
}
