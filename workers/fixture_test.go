package workers

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/recovery"
	"foyer/internal/testenv"
	"foyer/lua"
	"foyer/store"
)

func TestMain(m *testing.M) { testenv.MainLeak(m) }

// stage is a show on sale on real Redis and a real database, with workers that
// are called as a consumer would call them.
type stage struct {
	t     *testing.T
	steps *lua.Steps
	store *store.DB
	show  domain.Show
	told  *ear
	sent  *outbox
	work  *Workers
}

func newStage(t *testing.T, change func(*domain.Show)) *stage {
	t.Helper()
	db, err := store.Open(t.Context(), testenv.DatabaseURL(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(t.Context()))
	s := &stage{t: t, store: db, told: &ear{}, sent: &outbox{}}
	s.steps = lua.New(testenv.Redis(t), lua.WithLoader(func(ctx context.Context, show domain.ShowID) error {
		return recovery.Load(ctx, db, s.steps, show, slog.New(slog.DiscardHandler))
	}))
	seating := domain.DefaultSeating()
	seating.Sections = []domain.Section{{Name: "A", Rows: 2, SeatsPerRow: 5, Price: 1000}}
	s.show = domain.Show{
		ID: testenv.ShowID(t), Title: "Stage", OpensAt: time.Now().UTC().Add(-time.Minute).Truncate(time.Microsecond),
		Queue: domain.DefaultQueue(), Seating: seating, DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 1,
	}
	change(&s.show)
	require.NoError(t, db.CreateShow(t.Context(), s.show))
	require.NoError(t, s.steps.Configure(t.Context(), s.show))
	s.work = s.workers(s.steps, db, s.told, s.sent)
	return s
}

// workers are served until the test ends.
func (s *stage) workers(steps Steps, db Store, notify Notifier, commands Commands) *Workers {
	w := New(time.Second, Deps{Steps: steps, Store: db, Notifier: notify, Commands: commands, Log: slog.New(slog.NewTextHandler(s.t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Serve(ctx) }()
	s.t.Cleanup(func() { cancel(); <-done })
	return w
}

// enter brings a person inside.
func (s *stage) enter(person string) domain.RequestID {
	s.t.Helper()
	request := domain.RequestID(person)
	place, _, err := s.steps.Join(s.t.Context(), lua.JoinRequest{ShowID: s.show.ID, RequestID: request})
	require.NoError(s.t, err)
	require.Equal(s.t, domain.StatusAdmitted, place.Status)
	_, err = s.steps.Claim(s.t.Context(), s.show.ID, request)
	require.NoError(s.t, err)
	return request
}

// pending brings a person to a booking that is recorded and on its way.
func (s *stage) pending(person string, seats ...domain.SeatID) domain.Booking {
	s.t.Helper()
	request := s.enter(person)
	hold := domain.HoldID(domain.NewID())
	_, err := s.steps.Hold(s.t.Context(), lua.HoldRequest{ShowID: s.show.ID, RequestID: request, HoldID: hold, Candidates: [][]domain.SeatID{seats}})
	require.NoError(s.t, err)
	return s.begin(request, hold, seats)
}

func (s *stage) begin(request domain.RequestID, hold domain.HoldID, seats []domain.SeatID) domain.Booking {
	s.t.Helper()
	begun, _, err := s.steps.BeginBooking(s.t.Context(), s.show.ID, request, hold, domain.BookingID(domain.NewID()))
	require.NoError(s.t, err)
	booking := domain.Booking{
		BookingID: begun, CommandID: domain.CommandID(domain.NewID()), ShowID: s.show.ID, PersonID: domain.PersonID(request),
		RequestID: request, HoldID: hold, Seats: seats, Price: 1000, Status: domain.BookingPending,
	}
	booking, _, err = s.store.RecordBooking(s.t.Context(), domain.BookingRequest{Booking: booking, Key: string(begun), Fingerprint: "f"})
	require.NoError(s.t, err)
	return booking
}

func (s *stage) book(booking domain.Booking, attempt int) error {
	return s.work.Handlers().BookSeats(s.t.Context(), events.Delivery{CommandID: booking.CommandID, Attempt: attempt}, events.BookSeats{Booking: booking})
}

func (s *stage) stats() domain.Stats {
	s.t.Helper()
	stats, err := s.steps.Stats(s.t.Context(), s.show.ID)
	require.NoError(s.t, err)
	return stats[0]
}

// requireSold compares SQL and Redis: exactly these seats are sold.
func (s *stage) requireSold(seats ...domain.SeatID) {
	s.t.Helper()
	inSQL, err := s.store.SoldSeats(s.t.Context(), s.show.ID)
	require.NoError(s.t, err)
	var sold []domain.SeatID
	for _, seat := range inSQL {
		sold = append(sold, seat.SeatID)
	}
	require.ElementsMatch(s.t, seats, sold, "sold in SQL")
	changes, err := s.steps.Seats(s.t.Context(), s.show.ID, 0, "")
	require.NoError(s.t, err)
	sold = nil
	for _, seat := range changes.Seats {
		if seat.State == domain.SeatSold {
			sold = append(sold, seat.ID)
		}
	}
	require.ElementsMatch(s.t, seats, sold, "sold in Redis")
	require.EqualValues(s.t, len(seats), s.stats().Sold)
}

// ear keeps what was told.
type ear struct {
	mu    sync.Mutex
	facts []events.Notification
}

func (e *ear) Publish(_ context.Context, facts ...events.Notification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.facts = append(e.facts, facts...)
	return nil
}

func (e *ear) of(event string) (found []events.Notification) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, fact := range e.facts {
		if fact.Event == event {
			found = append(found, fact)
		}
	}
	return found
}

// outbox keeps commands that were sent.
type outbox struct {
	mu     sync.Mutex
	admits []events.AdmitShow
	books  []events.BookSeats
	taken  []domain.CommandID // of cancellations
}

func (o *outbox) AdmitShow(_ context.Context, command events.AdmitShow) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admits = append(o.admits, command)
	return nil
}

func (o *outbox) BookSeats(_ context.Context, _ domain.CommandID, command events.BookSeats) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.books = append(o.books, command)
	return nil
}

func (o *outbox) CancelBooking(_ context.Context, id domain.CommandID, _ events.CancelBooking) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = append(o.taken, id)
	return nil
}

func (o *outbox) sent() (admits []events.AdmitShow, books []events.BookSeats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append(admits, o.admits...), append(books, o.books...)
}

var errDied = errors.New("the process died here")

// mortal lets a process live for some steps, each of which has its effect, and
// then fails every one: what a kill between two steps leaves behind.
type mortal struct {
	mu   sync.Mutex
	life int
	died bool
}

func (m *mortal) spend() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life == 0 {
		m.died = true
		return errDied
	}
	m.life--
	return nil
}

// The parts of a process that dies are real ones behind its remaining life.
type (
	mortalSteps struct {
		Steps
		*mortal
	}
	mortalStore struct {
		Store
		*mortal
	}
	mortalNotifier struct {
		Notifier
		*mortal
	}
	mortalCommands struct {
		Commands
		*mortal
	}
)

func (m mortalStore) Book(ctx context.Context, bookings []domain.Booking) ([]store.BookingOutcome, error) {
	if err := m.spend(); err != nil {
		return nil, err
	}
	return m.Store.Book(ctx, bookings)
}

func (m mortalSteps) SettleBookings(ctx context.Context, endings []lua.Ending) ([]lua.Settlement, []error) {
	if err := m.spend(); err != nil {
		errs := make([]error, len(endings))
		for i := range errs {
			errs[i] = err
		}
		return make([]lua.Settlement, len(endings)), errs
	}
	return m.Steps.SettleBookings(ctx, endings)
}

func (m mortalNotifier) Publish(ctx context.Context, facts ...events.Notification) error {
	if err := m.spend(); err != nil {
		return err
	}
	return m.Notifier.Publish(ctx, facts...)
}

func (m mortalCommands) AdmitShow(ctx context.Context, command events.AdmitShow) error {
	if err := m.spend(); err != nil {
		return err
	}
	return m.Commands.AdmitShow(ctx, command)
}
