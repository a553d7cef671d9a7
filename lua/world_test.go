package lua

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is one show on one server with everything a test does to it.
type world struct {
	*Steps
	t    testing.TB
	rdb  *redis.Client
	show domain.Show
	log  *transcript
}

// defaultShow has been open for an hour: 2 people inside, 10 seats, 4 to one person.
func defaultShow(id domain.ShowID) domain.Show {
	return domain.Show{
		ID: id, Title: "Test", Epoch: 1, Revision: 1, OpensAt: time.Now().Add(-time.Hour),
		Queue: domain.QueueSettings{MaxActive: 2, RatePerMinute: 1000, TurnSeconds: 30, SessionSeconds: 100, GraceSeconds: 20},
		Seating: domain.Seating{HoldSeconds: 60, SeatLimit: 4, Sections: []domain.Section{
			{Name: "A", Rows: 2, SeatsPerRow: 5, Price: 1000},
		}},
	}
}

// unloaded prepares a show that is not in Redis.
func unloaded(t testing.TB, rdb *redis.Client, edits ...func(*domain.Show)) *world {
	w := &world{Steps: New(rdb), t: t, rdb: rdb, show: defaultShow(testenv.ShowID(t)), log: &transcript{}}
	for _, edit := range edits {
		edit(&w.show)
	}
	return w
}

func load(t testing.TB, rdb *redis.Client, edits ...func(*domain.Show)) *world {
	w := unloaded(t, rdb, edits...)
	require.NoError(t, w.Configure(t.Context(), w.show))
	return w
}

// onBoth runs a test on a real server and on the embedded one.
func onBoth(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, testenv.Redis(t))
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, embedded(t))
	})
}

// fewer is n, or a tenth on the embedded server, which is that much slower at scripts.
func fewer(t testing.TB, n int) int {
	if strings.HasSuffix(t.Name(), "/miniredis") {
		return n / 10
	}
	return n
}

func embedded(t testing.TB) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (w *world) ctx() context.Context { return w.t.Context() }

// travel moves the clock of this world's steps; keys that expire stay.
func (w *world) travel(d time.Duration) { w.offset.Add(d.Milliseconds()) }

// travelTicking moves the clock as workers would see it pass: with an admit step each
// 5 seconds. It returns who was let in and whose place ended.
func (w *world) travelTicking(d time.Duration, touch ...domain.RequestID) (admitted, ended []domain.RequestID) {
	for d > 0 {
		step := min(d, 5*time.Second)
		w.travel(step)
		d -= step
		require.NoError(w.t, w.Touch(w.ctx(), w.show.ID, touch))
		a, e := w.admit()
		admitted, ended = append(admitted, a...), append(ended, e...)
	}
	return admitted, ended
}

// admit runs admit steps until there is nothing more to do.
func (w *world) admit() (admitted, ended []domain.RequestID) {
	w.t.Helper()
	for more := true; more; {
		result, err := w.Admit(w.ctx(), w.show.ID, AdmitOptions{})
		require.NoError(w.t, err)
		for _, a := range result.Admitted {
			admitted = append(admitted, a.RequestID)
		}
		ended, more = append(ended, result.Expired...), result.More
	}
	return admitted, ended
}

// settled makes dropping possible: the time after a restoration has passed.
func (w *world) settled() {
	w.t.Helper()
	w.travelTicking(w.show.Queue.Grace() + 90*time.Second)
}

func (w *world) join(request domain.RequestID) domain.Place {
	w.t.Helper()
	place, _, err := w.Join(w.ctx(), JoinRequest{ShowID: w.show.ID, RequestID: request, DrawScore: 1 + int64(len(request))})
	require.NoError(w.t, err)
	return place
}

func (w *world) joinError(request domain.RequestID) error {
	_, _, err := w.Join(w.ctx(), JoinRequest{ShowID: w.show.ID, RequestID: request})
	return err
}

// crowd joins people in the order of their numbers.
func (w *world) crowd(prefix string, n int) []domain.RequestID {
	w.t.Helper()
	people := w.names(prefix, n)
	for part := range slices.Chunk(people, maxBatch) {
		batch := make([]JoinRequest, len(part))
		for i, request := range part {
			batch[i] = JoinRequest{ShowID: w.show.ID, RequestID: request}
		}
		_, err := w.joinAll(w.ctx(), w.show.ID, batch)
		require.NoError(w.t, err)
	}
	return people
}

func (w *world) names(prefix string, n int) []domain.RequestID {
	people := make([]domain.RequestID, n)
	for i := range people {
		people[i] = domain.RequestID(fmt.Sprintf("%s%d", prefix, i+1))
	}
	return people
}

func (w *world) claim(request domain.RequestID) domain.Place {
	w.t.Helper()
	place, err := w.Claim(w.ctx(), w.show.ID, request)
	require.NoError(w.t, err)
	return place
}

// enter joins and claims; there must be room.
func (w *world) enter(people ...domain.RequestID) {
	w.t.Helper()
	for _, request := range people {
		require.Equal(w.t, domain.StatusAdmitted, w.join(request).Status)
		w.claim(request)
	}
}

func (w *world) place(request domain.RequestID) domain.Place {
	w.t.Helper()
	place, err := w.Place(w.ctx(), w.show.ID, request)
	require.NoError(w.t, err)
	return place
}

func (w *world) status(request domain.RequestID) domain.Status {
	w.t.Helper()
	return w.place(request).Status
}

func (w *world) leave(request domain.RequestID) Departure {
	w.t.Helper()
	d, err := w.Leave(w.ctx(), w.show.ID, request)
	require.NoError(w.t, err)
	return d
}

func (w *world) hold(request domain.RequestID, hold domain.HoldID, seats ...domain.SeatID) (domain.Hold, error) {
	return w.Hold(w.ctx(), HoldRequest{ShowID: w.show.ID, RequestID: request, HoldID: hold, Candidates: [][]domain.SeatID{seats}})
}

func (w *world) mustHold(request domain.RequestID, hold domain.HoldID, seats ...domain.SeatID) domain.Hold {
	w.t.Helper()
	h, err := w.hold(request, hold, seats...)
	require.NoError(w.t, err)
	return h
}

func (w *world) begin(request domain.RequestID, hold domain.HoldID, booking domain.BookingID) (domain.BookingID, error) {
	begun, _, err := w.BeginBooking(w.ctx(), w.show.ID, request, hold, booking)
	return begun, err
}

// booking describes what SQL has of one.
func (w *world) booking(request domain.RequestID, hold domain.HoldID, booking domain.BookingID, seats ...domain.SeatID) domain.Booking {
	return domain.Booking{BookingID: booking, ShowID: w.show.ID, RequestID: request, HoldID: hold, Seats: seats}
}

// buy takes seats from hold to confirmed booking.
func (w *world) buy(request domain.RequestID, booking domain.BookingID, seats ...domain.SeatID) Settlement {
	w.t.Helper()
	hold := domain.HoldID("hold-of-" + booking)
	w.mustHold(request, hold, seats...)
	_, err := w.begin(request, hold, booking)
	require.NoError(w.t, err)
	settled, err := w.CompleteBooking(w.ctx(), w.booking(request, hold, booking, seats...))
	require.NoError(w.t, err)
	return settled
}

func (w *world) stats() domain.Stats {
	w.t.Helper()
	stats, err := w.Stats(w.ctx(), w.show.ID)
	require.NoError(w.t, err)
	return stats[0]
}

// change applies new settings as an operator would.
func (w *world) change(edit func(*domain.Show)) {
	w.t.Helper()
	edit(&w.show)
	w.show.Revision++
	require.NoError(w.t, w.Configure(w.ctx(), w.show))
}

// seatStates tells all seats that are not free, or changed since a version.
func (w *world) seatStates(since int64, viewer domain.RequestID) map[domain.SeatID]string {
	w.t.Helper()
	changes, err := w.Seats(w.ctx(), w.show.ID, since, viewer)
	require.NoError(w.t, err)
	states := map[domain.SeatID]string{}
	for _, seat := range changes.Seats {
		states[seat.ID] = strings.TrimSuffix(string(seat.State)+" "+string(seat.HoldID), " ")
	}
	return states
}

// transcript notes what each script answered, as a hook of the client.
type transcript struct {
	mu    sync.Mutex
	names map[string]string // by hash
	seen  map[string]bool   // "script CODE"
	lines []string
}

func (w *world) record() {
	w.log.names, w.log.seen = map[string]string{}, map[string]bool{}
	for name, s := range w.scripts {
		w.log.names[s.run.Hash()] = name
	}
	w.rdb.AddHook(w.log)
}

func (l *transcript) note(cmd redis.Cmder) {
	c, ok := cmd.(*redis.Cmd)
	if !ok {
		return
	}
	values, answered := c.Val().([]any)
	if !answered {
		return // a script that the server did not know
	}
	hash := fmt.Sprint(c.Args()[1])
	if c.Name() == "eval" {
		hash = redis.NewScript(hash).Hash()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := l.names[hash]
	r := reply(values)
	l.seen[name+" "+r.str(0)] = true
	for i := range r.rest(2) {
		if name == "admission_join" {
			l.seen[name+" "+r.list(2+i).str(0)] = true
		}
	}
	// A scan and whole hashes have no order, and admissions by the second depend on it.
	if name != "seats_page" && name != "show_audit" && name != "place_explain" {
		l.lines = append(l.lines, name+" "+timeless(fmt.Sprintf("%#v", r)))
	}
}

var instants = regexp.MustCompile(`1[5-9]\d{11}|20\d\d-\d\d-\d\d[T ][0-9:.]*(Z| \+0000 UTC)`)

// timeless takes instants out of a text, so that two runs can be compared.
func timeless(text string) string { return instants.ReplaceAllString(text, "TIME") }

func (l *transcript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *transcript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		l.note(cmd)
		return err
	}
}

func (l *transcript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			l.note(cmd)
		}
		return err
	}
}

// soldTo is what SQL tells of a booking's seats.
func soldTo(request domain.RequestID, booking domain.BookingID, seats ...domain.SeatID) []domain.SoldSeat {
	sold := make([]domain.SoldSeat, len(seats))
	for i, seat := range seats {
		sold[i] = domain.SoldSeat{SeatID: seat, BookingID: booking, RequestID: request}
	}
	return sold
}

// isA tells whether an error carries a detail of some type.
func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
