package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
)

// T24: a rank that grows. Beyond the first hundred it is read from between knots,
// and two estimates may disagree; what a person is shown only falls. T65: with it
// come the number of people waiting and an estimate.
func TestRankNeverGrows(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join(names("ahead", 9)...)
	w.join("one")
	page, hello := w.open("one")
	require.EqualValues(t, 10, *hello.Places[0].Rank)
	place, err := w.steps.Place(t.Context(), w.show.ID, w.request("one"))
	require.NoError(t, err)
	stats := w.stats()
	stats.AdmittedLastMinute = 60
	at := func(version int64, rank int) {
		scores := make([]int64, rank)
		for i := range scores {
			scores[i] = place.Score - int64(rank-1-i)
		}
		stats.Version = place.Version + version
		w.notify(events.Notification{Event: events.EventRank, Version: stats.Version, Stats: &stats,
			Knots: &domain.RankKnots{Waiting: int64(rank), Scores: scores}})
	}
	for i, rank := range []int{9, 12, 9, 5, 6, 5, 2} {
		at(int64(i+1), rank)
		page.settle(w)
	}
	ranks := []int64{}
	for _, f := range page.of(events.EventRank) {
		ranks = append(ranks, f.Rank)
		require.GreaterOrEqual(t, f.Waiting, f.Rank)
		require.NotNil(t, f.ETA)
	}
	require.Equal(t, []int64{9, 9, 9, 5, 5, 5, 2}, ranks)
	count := len(page.of(events.EventRank))
	at(20, 2)
	at(21, 2)
	page.settle(w)
	require.Len(t, page.of(events.EventRank), count, "what did not change is not told")
}

// The word about a turn is lost and no gap shows. The next ranks give it away: the
// line has moved past somebody who still counts as waiting.
func TestLineMovedPastSomebody(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one", "behind")
	page, _ := w.open("one")
	_, err := w.steps.Leave(t.Context(), w.show.ID, w.request("inside-1"))
	require.NoError(t, err)
	_, err = w.steps.Admit(t.Context(), w.show.ID, lua.AdmitOptions{})
	require.NoError(t, err)
	knots, stats, err := w.steps.Knots(t.Context(), w.show.ID)
	require.NoError(t, err)
	w.notify(events.Notification{Event: events.EventRank, Version: stats.Version, Knots: &knots, Stats: &stats})
	page.await(events.EventAdmission, only(domain.StatusAdmitted))
}

// The same when nobody is left to have a rank: then only the counts tell.
func TestLineEmptiedPastSomebody(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	page, _ := w.open("one")
	_, err := w.steps.Leave(t.Context(), w.show.ID, w.request("inside-1"))
	require.NoError(t, err)
	_, err = w.steps.Admit(t.Context(), w.show.ID, lua.AdmitOptions{})
	require.NoError(t, err)
	w.notifyStats(w.stats())
	page.await(events.EventAdmission, only(domain.StatusAdmitted))
}

// The draw: nobody is told a rank before the opening; with the opening everybody
// is told theirs, without asking.
func TestOpeningTellsRanks(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.show = w.addShow(func(s *domain.Show) {
		s.OpensAt = time.Now().Add(time.Second)
		early := s.OpensAt.Add(-time.Hour)
		s.PrequeueAt = &early
	})
	page, _ := w.open("one")
	page.send("join", "showId", w.show.ID)
	drawn := page.await(events.EventAdmission)
	require.Equal(t, "PREQUEUE", drawn.Status)
	require.Nil(t, drawn.Place.Rank)
	w.notify(events.Notification{Event: events.EventRank, Version: drawn.Version + 1, Knots: &domain.RankKnots{Waiting: 1, Scores: []int64{1}}})
	testenv.Eventually(t, socketWait, "the opening", func() bool { return w.stats().Phase == domain.PhaseOpen })
	w.notifyStats(w.stats())
	opened := page.await(events.EventAdmission)
	require.Equal(t, "WAITING", opened.Status)
	require.EqualValues(t, 1, *opened.Place.Rank)
	require.Equal(t, "OPEN", page.await(events.EventShow).Phase)
	require.Empty(t, page.of(events.EventRank))
}

// T31, T32: people waited half an hour for goods that were gone. Sold out and closed
// are pushed at once, as the end of the wait; a cancellation takes sold out back.
func TestSoldOutAndBack(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	page, _ := w.open("one")
	booking := w.sellOut("inside-1")
	s := w.stats()
	fact := events.Notification{Event: events.EventSoldOut, Version: s.Version, Stats: &s}
	w.notify(fact)
	w.notify(fact) // twice is once
	require.True(t, page.await(events.EventSoldOut).SoldOut)
	page.await(events.EventAdmission, only(domain.StatusSoldOut))
	require.Equal(t, "SOLD_OUT", page.await(events.EventShow).Phase)
	page.settle(w)
	require.Len(t, page.of(events.EventSoldOut), 1)

	late, hello := w.open("one")
	require.Equal(t, domain.StatusSoldOut, hello.Places[0].Status)
	require.True(t, late.await(events.EventSoldOut).SoldOut, "who comes later is told too")

	_, err := w.steps.CancelBooking(t.Context(), booking)
	require.NoError(t, err)
	s = w.stats()
	w.notify(events.Notification{Event: events.EventSoldOut, Version: s.Version, Stats: &s})
	require.False(t, page.await(events.EventSoldOut).SoldOut)
	require.Equal(t, "OPEN", page.await(events.EventShow).Phase)
	back := page.await(events.EventAdmission)
	require.Equal(t, "WAITING", back.Status)
	require.EqualValues(t, 1, *back.Place.Rank)
}

// sellOut has a person with a turn buy every seat of the show.
func (w *hubWorld) sellOut(person string) domain.Booking {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.steps.Claim(ctx, w.show.ID, w.request(person))
	require.NoError(w.t, err)
	var last domain.Booking
	seats := w.show.Seating.AllSeats()
	for i, part := range [][]domain.SeatID{seats[:4], seats[4:8], seats[8:]} {
		who := fmt.Sprintf("%s-%d", person, i)
		last = domain.Booking{
			BookingID: domain.BookingID(domain.NewID()), CommandID: domain.CommandID(domain.NewID()), ShowID: w.show.ID,
			PersonID: domain.PersonID(who), RequestID: w.request(who), HoldID: domain.HoldID(domain.NewID()), Seats: part,
			Status: domain.BookingConfirmed, CreatedAt: time.Now(),
		}
		_, err := w.steps.CompleteBooking(ctx, last)
		require.NoError(w.t, err)
	}
	return last
}

// T31: the same at the end of the sale, by the operator's hand.
func TestClosingIsTold(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	page, _ := w.open("one")
	show, err := w.db.UpdateShow(t.Context(), w.show.ID, func(s *domain.Show) error {
		s.Closed = true
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, w.steps.Configure(t.Context(), show))
	w.notify(events.Notification{Event: events.EventShow, Epoch: show.Epoch, Version: show.Revision})
	require.Equal(t, "CLOSED", page.await(events.EventShow).Phase)
	page.await(events.EventAdmission, only(domain.StatusClosed))
}

// A deadline passes and the word about it is lost: expiry is judged when it is
// read, so it is read, and told.
func TestOverdueTurnIsTold(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.show = w.addShow(func(s *domain.Show) { s.Queue.TurnSeconds = 1; s.Queue.GraceSeconds = 1 })
	page, _ := w.open("one")
	page.send("join", "showId", w.show.ID)
	page.await(events.EventAdmission, only(domain.StatusAdmitted))
	page.await(events.EventAdmission, only(domain.StatusExpired))
}

// R55: a page in a hidden tab cannot tell a quiet line from a dead one, and sees no
// pings. A silence is broken by a HEARTBEAT, and only a silence.
func TestHeartbeatBreaksSilence(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.heartbeat = 100 * time.Millisecond })
	page, hello := w.open("one")
	require.InDelta(t, 0.1, hello.HeartbeatSeconds, 1e-9)
	first := page.await(events.EventHeartbeat)
	second := page.await(events.EventHeartbeat)
	_ = first
	require.Equal(t, events.EventHeartbeat, second.Event)
}

// R35, I2: two tabs. Both hear of a booking; a fact that comes twice or late
// changes nothing, and none of several bookings is dropped for another.
func TestBookingsReachBothTabs(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.activate("one")
	pages := []*tab{}
	for range 2 {
		page, _ := w.open("one")
		pages = append(pages, page)
	}
	fact := func(id string, status domain.BookingStatus, version int64) events.Notification {
		b := domain.Booking{
			BookingID: domain.BookingID(id), ShowID: w.show.ID, RequestID: w.request("one"), Seats: []domain.SeatID{"A-1-1"},
			Status: status, Price: 1050, CreatedAt: time.Now(),
		}
		if status == domain.BookingRejected {
			b.Reason, b.Conflicts = domain.ReasonSeatUnavailable, b.Seats
		}
		return events.Notification{Event: events.EventBooking, Version: version, Bookings: []events.BookingFact{events.NewBookingFact(b)}}
	}
	ids := names("booking", 20)
	for i, id := range ids {
		w.notify(fact(id, domain.BookingConfirmed, int64(100+i)))
		w.notify(fact(id, domain.BookingPending, int64(90+i))) // late
		w.notify(fact(id, domain.BookingConfirmed, int64(100+i)))
	}
	w.notify(fact("rejected", domain.BookingRejected, 50))
	for _, page := range pages {
		for _, id := range ids {
			f := page.await(events.EventBooking)
			require.Equal(t, id, string(f.BookingID))
			require.Equal(t, "CONFIRMED", f.Status)
			require.Contains(t, f.raw, `"price":10.5`)
		}
		f := page.await(events.EventBooking)
		require.Equal(t, domain.ReasonSeatUnavailable, f.Reason)
		require.Contains(t, f.raw, `"conflicts":["A-1-1"]`)
	}
}

// One notification tells of many people's bookings: each hears of their own, and of
// nobody else's.
func TestBookingsToldTogetherReachTheirOwnPeople(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.activate("one")
	w.activate("two")
	one, _ := w.open("one")
	two, _ := w.open("two")
	fact := func(id domain.BookingID, person string, status domain.BookingStatus) events.BookingFact {
		return events.BookingFact{BookingID: id, RequestID: w.request(person), Seats: []domain.SeatID{"A-1-1"}, Price: 1050, Status: status}
	}
	w.notify(events.Notification{Event: events.EventBooking, Version: 100, Bookings: []events.BookingFact{
		fact("first", "one", domain.BookingRejected), fact("elsewhere", "three", domain.BookingConfirmed),
		fact("second", "two", domain.BookingRejected), fact("third", "one", domain.BookingRejected),
	}})
	for page, want := range map[*tab][]domain.BookingID{one: {"first", "third"}, two: {"second"}} {
		for _, id := range want {
			f := page.await(events.EventBooking)
			require.Equal(t, id, f.BookingID)
			require.EqualValues(t, 100, f.Version)
			require.Equal(t, w.show.ID, f.ShowID)
			require.Contains(t, f.raw, `"seats":["A-1-1"],"price":10.5`)
		}
		page.settle(w)
		require.Len(t, page.of(events.EventBooking), len(want))
	}
}

// A confirmed booking ends its person's session; every tab hears that too.
func TestBookingEndsSession(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.activate("one")
	page, hello := w.open("one")
	require.Equal(t, domain.StatusActive, hello.Places[0].Status)
	ctx := t.Context()
	hold, err := w.steps.Hold(ctx, lua.HoldRequest{ShowID: w.show.ID, RequestID: w.request("one"), HoldID: "h-" + domain.HoldID(domain.NewID()), Candidates: [][]domain.SeatID{{"A-1-1"}}})
	require.NoError(t, err)
	booking := domain.Booking{
		BookingID: domain.BookingID(domain.NewID()), CommandID: "c", ShowID: w.show.ID, PersonID: "one", RequestID: w.request("one"),
		HoldID: hold.HoldID, Seats: hold.Seats, Status: domain.BookingConfirmed, CreatedAt: time.Now(),
	}
	_, _, err = w.steps.BeginBooking(ctx, w.show.ID, booking.RequestID, hold.HoldID, booking.BookingID)
	require.NoError(t, err)
	_, err = w.steps.CompleteBooking(ctx, booking)
	require.NoError(t, err)
	s := w.stats()
	w.notify(events.Notification{Event: events.EventBooking, Version: s.Version, Bookings: []events.BookingFact{events.NewBookingFact(booking)}})
	require.Equal(t, "CONFIRMED", page.await(events.EventBooking).Status)
	page.await(events.EventAdmission, only(domain.StatusLeft))
}

// A claim, wherever it was made, changes every tab: none of them asks for a claim
// any more. Leaving is told as leaving, though it ends a place too. A session that
// was told of this way has its pass.
func TestClaimAndLeaveReachOtherTabs(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.join("one")
	page, _ := w.open("one")
	place, err := w.steps.Claim(t.Context(), w.show.ID, w.request("one"))
	require.NoError(t, err)
	w.notify(events.Notification{Event: events.EventAdmission, Version: place.Version, Moved: []events.PlaceFact{
		{RequestID: place.RequestID, Status: place.Status, ExpiresAt: place.ExpiresAt},
	}})
	active := page.await(events.EventAdmission, only(domain.StatusActive))
	require.Equal(t, place.ExpiresAt, active.ExpiresAt)
	require.NotNil(t, active.Place.Pass)
	w.notify(events.Notification{
		Event: events.EventAdmission, Version: place.Version + 1, Ended: []domain.RequestID{place.RequestID},
		Moved: []events.PlaceFact{{RequestID: place.RequestID, Status: domain.StatusLeft}},
	})
	page.await(events.EventAdmission, only(domain.StatusLeft))
	page.settle(w)
	require.Len(t, page.of(events.EventAdmission), 2)
}

// TestStatsAreToldWhenTheyChange: a tick a second told everybody the same numbers;
// only those that differ from the last told are worth a frame, and an answer.
func TestStatsAreToldWhenTheyChange(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("ann")
	page, _ := w.open("ann")
	page.settle(w)
	stats, told := w.stats(), len(page.of(events.EventStats))
	for range 5 {
		stats.Version++
		w.notifyStats(stats)
	}
	page.settle(w)
	require.Len(t, page.of(events.EventStats), told)
	page.send("subscribe", "topic", statsTopic(w.show.ID))
	page.settle(w)
	require.Len(t, page.of(events.EventStats), told+1, "whoever asks is answered")
	stats.Version, stats.Active = stats.Version+1, stats.Active+1
	w.notifyStats(stats)
	page.settle(w)
	require.Len(t, page.of(events.EventStats), told+2)
}
