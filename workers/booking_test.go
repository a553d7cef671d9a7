package workers

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

func TestBookingIsSoldToldAndFreesTheSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1", "A-1-2")
	require.NoError(t, s.book(booking, 1))
	s.requireSold("A-1-1", "A-1-2")
	require.Zero(t, s.stats().Active, "a confirmed booking ends its session")
	told := s.told.of(events.EventBooking)
	require.Len(t, told, 1)
	require.Equal(t, domain.BookingConfirmed, told[0].Bookings[0].Status)
	require.Equal(t, booking.RequestID, told[0].Bookings[0].RequestID)
	admits, _ := s.sent.sent()
	require.Equal(t, []events.AdmitShow{{ShowID: s.show.ID, Reason: events.ReasonFreed}}, admits)
}

// Bookings that are settled as one change are told in one notification, before what
// follows from them; one that is decided otherwise is told of its own, in order.
func TestBookingsOfOneChangeAreToldTogether(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	var endings []ending
	for i, person := range []string{"ada", "bob", "cid", "dan"} {
		booking := s.pending(person, domain.NewSeatID("A", 1, i+1))
		booking.Status = domain.BookingConfirmed
		endings = append(endings, ending{Ending: lua.Ending{Booking: booking}})
	}
	endings[2].Booking.Status = domain.BookingRejected
	settleAsIf := func() {
		_, errs := s.work.booking.settleAll(t.Context(), endings)
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
	settleAsIf()
	var order []string
	for _, fact := range s.told.facts {
		order = append(order, fact.Event)
		for _, booking := range fact.Bookings {
			order = append(order, string(booking.RequestID)+" "+string(booking.Status))
		}
	}
	require.Equal(t, []string{
		events.EventBooking, "ada CONFIRMED", "bob CONFIRMED", events.EventSeats,
		events.EventBooking, "cid REJECTED", events.EventSeats,
		events.EventBooking, "dan CONFIRMED", events.EventSeats, events.EventStats,
	}, order)
	told, seats := s.told.of(events.EventBooking), s.told.of(events.EventSeats)
	for i := range told {
		require.Equal(t, seats[i].Version, told[i].Version)
	}
	require.Equal(t, events.NewBookingFact(endings[1].Booking), told[0].Bookings[1])
	settleAsIf()
	told = s.told.of(events.EventBooking)[len(told):]
	require.Len(t, told, 1, "of repeats that change nothing, all are told again")
	require.Len(t, told[0].Bookings, len(endings))
}

// No notification grows without bound, however many bookings share a change.
func TestToldBookingsAreBounded(t *testing.T) {
	t.Parallel()
	many := func(bookings, seats int) []events.Notification {
		endings := make([]ending, bookings)
		for i := range endings {
			endings[i].Booking = domain.Booking{RequestID: domain.RequestID(fmt.Sprint(i)), Seats: make([]domain.SeatID, seats)}
		}
		return newestStats(bookingFacts(endings, make([]lua.Settlement, bookings), make([]error, bookings)))
	}
	sizes := func(facts []events.Notification) (all []int) {
		next := 0
		for _, fact := range facts[:len(facts)-1] {
			all = append(all, len(fact.Bookings))
			for _, booking := range fact.Bookings {
				require.Equal(t, domain.RequestID(fmt.Sprint(next)), booking.RequestID)
				next++
			}
		}
		require.Equal(t, events.EventStats, facts[len(facts)-1].Event)
		return all
	}
	require.Equal(t, []int{maxToldBookings, maxToldBookings, 1}, sizes(many(2*maxToldBookings+1, 2)))
	require.Equal(t, []int{2, 1}, sizes(many(3, maxToldSeats/2)))
	require.Equal(t, []int{1, 1}, sizes(many(2, maxToldSeats+1)), "more than fits is told all the same")
}

// H6: a commit followed by a crash repeats the command; the repeat must change
// nothing. Here the process dies between any two steps, for a booking that is
// confirmed and for one that is rejected.
func TestH6DyingBetweenAnyTwoStepsLosesNothingAndSellsNothingTwice(t *testing.T) {
	t.Parallel()
	for _, confirmed := range []bool{true, false} {
		for life := 0; ; life++ {
			s := newStage(t, func(*domain.Show) {})
			booking := s.pending("ada", "A-1-1")
			sold := []domain.SeatID{"A-1-1"}
			want := domain.BookingConfirmed
			if !confirmed {
				s.sellBehindRedis("A-1-1")
				want = domain.BookingRejected
			}
			dying := &mortal{life: life}
			w := s.workers(mortalSteps{s.steps, dying}, mortalStore{s.store, dying}, mortalNotifier{s.told, dying}, mortalCommands{s.sent, dying})
			err := w.Handlers().BookSeats(t.Context(), events.Delivery{CommandID: booking.CommandID, Attempt: 1}, events.BookSeats{Booking: booking})
			if dying.died {
				require.ErrorIs(t, err, errDied)
				require.NoError(t, s.book(booking, 2), "another worker takes the command up")
			}
			s.requireSold(sold...)
			decided, err := s.store.Booking(t.Context(), booking.BookingID)
			require.NoError(t, err)
			require.Equal(t, want, decided.Status)
			require.NotEmpty(t, s.told.of(events.EventBooking), "the person is told")
			if !dying.died {
				break
			}
			require.Less(t, life, 20, "a booking has few steps")
		}
	}
}

// sellBehindRedis sells a seat in SQL without Redis knowing, as when Redis lost
// what it knew.
func (s *stage) sellBehindRedis(seats ...domain.SeatID) {
	s.t.Helper()
	rival := domain.Booking{
		BookingID: domain.BookingID(domain.NewID()), CommandID: domain.CommandID(domain.NewID()), ShowID: s.show.ID,
		PersonID: "rival", RequestID: "rival", HoldID: domain.HoldID(domain.NewID()), Seats: seats, Status: domain.BookingPending,
	}
	outcomes, err := s.store.Book(s.t.Context(), []domain.Booking{rival})
	require.NoError(s.t, err)
	require.NoError(s.t, outcomes[0].Err)
	require.Equal(s.t, domain.BookingConfirmed, outcomes[0].Booking.Status)
}

// A6: sold always beats held. Redis believed the seat was this person's; SQL
// knew better. The loser hears which seats, keeps their session and may choose again.
func TestA6SoldBeatsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1", "A-1-2")
	s.sellBehindRedis("A-1-2")
	require.NoError(t, s.book(booking, 1))
	told := s.told.of(events.EventBooking)
	require.Len(t, told, 1)
	require.Equal(t, domain.BookingRejected, told[0].Bookings[0].Status)
	require.Equal(t, domain.ReasonSeatUnavailable, told[0].Bookings[0].Reason)
	require.Equal(t, []domain.SeatID{"A-1-2"}, told[0].Bookings[0].Conflicts)
	s.requireSold("A-1-2")
	require.EqualValues(t, 1, s.stats().Active)
	_, err := s.steps.Hold(t.Context(), lua.HoldRequest{ShowID: s.show.ID, RequestID: "ada", HoldID: "again", Candidates: [][]domain.SeatID{{"A-1-1"}}})
	require.NoError(t, err, "the seats that are not sold are free again")
}

// A10: seats were sold by a picture that was behind, of a replica or a cache. Here no
// picture decides: Redis still shows every seat free, people hold and book them all, and
// just those are sold that SQL had not sold already.
func TestA10NothingIsSoldByAnOldPicture(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	seats := s.show.Seating.AllSeats()
	s.sellBehindRedis(seats[:4]...)
	picture, err := s.steps.Seats(t.Context(), s.show.ID, 0, "")
	require.NoError(t, err)
	require.Empty(t, picture.Seats, "Redis knows of nothing sold")
	for i, seat := range seats {
		booking := s.pending(fmt.Sprintf("buyer-%d", i), seat)
		require.NoError(t, s.book(booking, 1))
		decided, err := s.store.Booking(t.Context(), booking.BookingID)
		require.NoError(t, err)
		want := domain.BookingConfirmed
		if i < 4 {
			want = domain.BookingRejected
		}
		require.Equal(t, want, decided.Status, seat)
	}
	s.requireSold(seats...)
}

// B9: a purchase that failed kept the seats until their time was over, or lost them to
// others at once. Here a booking that fails gives its seats back and leaves the session:
// its person may hold them again, and gives them up by saying so.
func TestB9AFailedBookingLeavesItsPersonInside(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1", "A-1-2")
	require.NoError(t, s.work.Handlers().BookingDead(t.Context(), events.Delivery{}, events.BookSeats{Booking: booking}, "declined"))
	require.EqualValues(t, 1, s.stats().Active, "the session goes on")
	require.Zero(t, s.stats().Held)
	again := lua.HoldRequest{ShowID: s.show.ID, RequestID: "ada", HoldID: "again", Candidates: [][]domain.SeatID{booking.Seats}}
	_, err := s.steps.Hold(t.Context(), again)
	require.NoError(t, err)
	freed, _, err := s.steps.ReleaseHold(t.Context(), s.show.ID, "ada", "again")
	require.NoError(t, err)
	require.Equal(t, booking.Seats, freed)
	_, err = s.steps.Hold(t.Context(), lua.HoldRequest{ShowID: s.show.ID, RequestID: s.enter("bob"), HoldID: "bob's", Candidates: [][]domain.SeatID{booking.Seats}})
	require.NoError(t, err)
	again.HoldID = "third"
	again.Candidates = [][]domain.SeatID{{"A-2-1"}}
	_, err = s.steps.Hold(t.Context(), again)
	require.NoError(t, err)
	retried := s.begin("ada", "third", []domain.SeatID{"A-2-1"})
	require.NoError(t, s.book(retried, 1))
	s.requireSold("A-2-1")
}

// H7: a permanent failure looped for ever and blocked. Given up on, a booking
// sells nothing, frees its seats and tells its person.
func TestH7BookingGivenUpOnReleasesItsSeats(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1")
	for range 2 { // twice: it must be safe to repeat
		require.NoError(t, s.work.Handlers().BookingDead(t.Context(), events.Delivery{}, events.BookSeats{Booking: booking}, "gave up"))
	}
	s.requireSold()
	require.Zero(t, s.stats().Held)
	told := s.told.of(events.EventBooking)
	require.Equal(t, domain.ReasonFailed, told[0].Bookings[0].Reason)
	require.NoError(t, s.book(booking, 6), "a late repeat of the command")
	s.requireSold()
}

// D1, D2: the last seats gone is SOLD_OUT; a cancellation takes it back.
func TestD1CancellingTakesSoldOutBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(show *domain.Show) {
		show.Seating.Sections = []domain.Section{{Name: "A", Rows: 1, SeatsPerRow: 2}}
	})
	booking := s.pending("ada", "A-1-1", "A-1-2")
	require.NoError(t, s.book(booking, 1))
	require.Len(t, s.told.of(events.EventSoldOut), 1)
	require.Equal(t, domain.PhaseSoldOut, s.stats().Phase)
	cancel := events.CancelBooking{BookingID: booking.BookingID, ShowID: s.show.ID}
	for range 2 {
		require.NoError(t, s.work.Handlers().CancelBooking(t.Context(), events.Delivery{CommandID: "c-" + booking.CommandID}, cancel))
	}
	s.requireSold()
	require.Equal(t, domain.PhaseOpen, s.stats().Phase)
	require.NoError(t, s.book(booking, 2), "a late repeat of the booking")
	s.requireSold()
}

// A1: many buyers on a nearly full show, all at once: exactly as many succeed as
// there are seats, and SQL and Redis agree.
func TestA1ManyBuyersFewSeats(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	seats := s.show.Seating.AllSeats()
	var buyers sync.WaitGroup
	for i := range 80 {
		buyers.Go(func() {
			request := s.enter(fmt.Sprintf("buyer-%d", i))
			hold := domain.HoldID(domain.NewID())
			seat := []domain.SeatID{seats[i%len(seats)]}
			if _, err := s.steps.Hold(t.Context(), lua.HoldRequest{ShowID: s.show.ID, RequestID: request, HoldID: hold, Candidates: [][]domain.SeatID{seat}}); err != nil {
				return
			}
			booking := s.begin(request, hold, seat)
			if err := s.book(booking, 1); err != nil {
				t.Errorf("book: %v", err)
			}
		})
	}
	buyers.Wait()
	s.requireSold(seats...)
}

// H1: a worker was killed between read and acknowledge, and nothing but the
// database knew of the booking. The sweeper publishes its command again.
func TestH1SweeperTakesUpLostCommands(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1")
	sweep := s.work.sweeper
	require.NoError(t, sweep.republishOlder(t.Context(), 0))
	_, books := s.sent.sent()
	require.Len(t, books, 1)
	require.Equal(t, booking.CommandID, books[0].Booking.CommandID, "the same intent, the same id")
	require.Equal(t, booking.RequestID, books[0].Booking.RequestID)
}

// A cancellation was accepted, and its command was lost with Redis: nobody cancelled and
// nobody knew. It is sent again under its old id until it is done.
func TestSweeperTakesUpLostCancellations(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1")
	require.NoError(t, s.book(booking, 1))
	_, err := s.store.AskCancel(t.Context(), booking.BookingID)
	require.NoError(t, err)
	require.NoError(t, s.work.sweeper.recancelOlder(t.Context(), time.Hour))
	require.Empty(t, s.sent.taken, "a worker has it still")
	require.NoError(t, s.work.sweeper.recancelOlder(t.Context(), 0))
	require.Equal(t, []domain.CommandID{booking.CancelCommand()}, s.sent.taken)
	command := events.CancelBooking{BookingID: booking.BookingID, ShowID: s.show.ID}
	for range 2 {
		require.NoError(t, s.work.Handlers().CancelBooking(t.Context(), events.Delivery{CommandID: booking.CancelCommand()}, command))
	}
	s.requireSold()
	require.NoError(t, s.work.sweeper.recancelOlder(t.Context(), 0))
	require.Len(t, s.sent.taken, 1, "it is done")
}

// A cancellation that nobody can carry out would be sent again for ever. Given up on, it
// leaves the booking as it is, tells its person, and may be asked for again.
func TestACancellationGivenUpOnLeavesTheBooking(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	booking := s.pending("ada", "A-1-1")
	require.NoError(t, s.book(booking, 1))
	_, err := s.store.AskCancel(t.Context(), booking.BookingID)
	require.NoError(t, err)
	command := events.CancelBooking{BookingID: booking.BookingID, ShowID: s.show.ID}
	for range 2 { // twice: it must be safe to repeat
		require.NoError(t, s.work.Handlers().CancelDead(t.Context(), events.Delivery{}, command, "gave up"))
	}
	s.requireSold("A-1-1")
	told := s.told.of(events.EventBooking)
	require.Equal(t, domain.BookingConfirmed, told[len(told)-1].Bookings[0].Status)
	require.NoError(t, s.work.sweeper.recancelOlder(t.Context(), 0))
	require.Empty(t, s.sent.taken)
	require.NoError(t, s.work.Handlers().CancelBooking(t.Context(), events.Delivery{CommandID: booking.CancelCommand()}, command))
	require.NoError(t, s.work.Handlers().CancelDead(t.Context(), events.Delivery{}, command, "gave up after the commit"))
	s.requireSold()
}

// A process died after it took the hold and before it recorded the booking: the
// seats go back to their holder instead of being stuck for ever.
func TestSweeperGivesHoldsBackThatNobodyBooked(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	request := s.enter("ada")
	_, err := s.steps.Hold(t.Context(), lua.HoldRequest{ShowID: s.show.ID, RequestID: request, HoldID: "hold", Candidates: [][]domain.SeatID{{"A-1-1"}}})
	require.NoError(t, err)
	_, _, err = s.steps.BeginBooking(t.Context(), s.show.ID, request, "hold", "lost")
	require.NoError(t, err)
	require.NoError(t, s.work.sweeper.unstickOlder(t.Context(), 0))
	_, seats, err := s.steps.BeginBooking(t.Context(), s.show.ID, request, "hold", "found")
	require.NoError(t, err, "the hold can be booked again")
	require.Equal(t, []domain.SeatID{"A-1-1"}, seats)
}
