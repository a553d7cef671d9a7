package api

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
)

// gatedSteps stops the readings of a snapshot until a test lets them go on.
type gatedSteps struct {
	hubSteps
	calls   atomic.Int32
	arrived chan int32 // the number of a reading of places that waits
	proceed chan struct{}
}

func gate(d *hubDeps) *gatedSteps {
	g := &gatedSteps{hubSteps: d.steps, arrived: make(chan int32), proceed: make(chan struct{})}
	d.steps = g
	return g
}

func (g *gatedSteps) Places(ctx context.Context, keys []lua.PlaceKey) ([]domain.Place, []bool, error) {
	places, found, err := g.hubSteps.Places(ctx, keys)
	select {
	case g.arrived <- g.calls.Add(1):
		<-g.proceed
	case <-ctx.Done():
	}
	return places, found, err
}

func (w *hubWorld) admittedFact(person string, version int64) events.Notification {
	return events.Notification{Event: events.EventAdmission, Version: version, Admitted: []domain.Admitted{
		{RequestID: w.request(person), ClaimBy: time.Now().Add(time.Minute)},
	}}
}

// R29: an update lands between the reading of history and the registration for
// what is live, and is lost. Registering comes first here, what is live is held
// back until HELLO, and both are merged by version: whichever of the two readings
// a turn comes after, HELLO has it.
func TestTurnDuringSnapshotIsNotLost(t *testing.T) {
	t.Parallel()
	for reading := int32(1); reading <= 2; reading++ {
		t.Run(fmt.Sprint("after reading ", reading), func(t *testing.T) {
			t.Parallel()
			var g *gatedSteps
			w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) { g = gate(d) })
			w.fill()
			place := w.join("one")[0]
			page := w.dial("one")
			for n := int32(1); n <= 2; n++ {
				require.Equal(t, n, <-g.arrived)
				if n == reading {
					w.notify(w.admittedFact("one", place.Version+5))
				}
				g.proceed <- struct{}{}
			}
			hello := page.await(eventHello)
			require.Len(t, hello.Places, 1)
			require.Equal(t, domain.StatusAdmitted, hello.Places[0].Status)
			require.Equal(t, place.Version+5, hello.Places[0].Version)
			page.settle(w)
			require.Equal(t, eventHello, page.frames[0].Event, "HELLO comes first")
			require.Empty(t, page.of(events.EventAdmission), "HELLO said it")
		})
	}
}

// R32: a stale snapshot arrives after something newer. What was published before
// the reading that knows more must not come after it.
func TestStaleNewsBehindSnapshot(t *testing.T) {
	t.Parallel()
	var g *gatedSteps
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) { g = gate(d) })
	old := w.stats()
	old.Version-- // of before the claim
	w.activate("one")
	page := w.dial("one")
	<-g.arrived
	g.proceed <- struct{}{}
	<-g.arrived
	w.notify(w.admittedFact("one", w.stats().Version-1))
	w.notifyStats(old)
	g.proceed <- struct{}{}
	hello := page.await(eventHello)
	require.Equal(t, domain.StatusActive, hello.Places[0].Status)
	require.NotNil(t, hello.Places[0].Pass)
	page.settle(w)
	require.Empty(t, page.of(events.EventAdmission))
	require.Len(t, page.of(events.EventStats), 1)
}

// R32: within a topic versions never go back, in whichever order facts arrive.
func TestVersionsNeverGoBack(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	page, hello := w.open("one")
	base := w.stats()
	version := hello.Places[0].Version
	for _, offset := range []int64{3, 1, 2, 7, 5, 7, 6, 9, 8} {
		s := base
		s.Version = base.Version + offset
		w.notifyStats(s)
		w.notify(events.Notification{Event: events.EventRank, Version: s.Version, Knots: &domain.RankKnots{
			Waiting: 10 - offset, Scores: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}[:10-offset],
		}})
	}
	w.notify(w.admittedFact("one", version+20))
	w.notify(events.Notification{Event: events.EventAdmission, Version: version + 4, Ended: []domain.RequestID{w.request("one")}})
	page.await(events.EventAdmission, only(domain.StatusAdmitted))
	page.settle(w)
	last := map[string]stamp{}
	for _, f := range page.frames {
		if f.Topic != "" {
			now := stamp{f.Epoch, f.Version, 0}
			require.False(t, now.before(last[f.Topic]), "%s went back: %s", f.Topic, f.raw)
			last[f.Topic] = now
		}
	}
	require.Equal(t, base.Version+9, last[statsTopic(w.show.ID)].version)
	require.Empty(t, page.of(events.EventAdmission)[1:], "the end that came late is of before the turn")
}

// T29, R31: after a reconnect everything is there at once, under a new connection
// id: no stale page until somebody reloads.
func TestReconnectGetsWholeState(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("ahead", "one")
	first, before := w.open("one")
	require.EqualValues(t, 2, *before.Places[0].Rank)
	require.NotNil(t, first.await(events.EventStats))
	require.NoError(t, first.conn.Close())
	testenv.Eventually(t, socketWait, "the socket is gone", func() bool { return w.hub.Sockets() == 0 })
	_, err := w.steps.Leave(t.Context(), w.show.ID, w.request("ahead"))
	require.NoError(t, err)
	again, after := w.open("one")
	require.EqualValues(t, 1, *after.Places[0].Rank)
	require.NotEqual(t, before.ConnectionID, after.ConnectionID)
	require.EqualValues(t, 1, again.await(events.EventStats).Waiting)
}

// A snapshot that cannot be read is tried again, and then the client is asked to
// come later instead of being left without HELLO for ever.
func TestSnapshotThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) { d.steps = &failingSteps{hubSteps: d.steps, left: &failures} })
	failures.Store(2)
	_, hello := w.open("patient")
	require.Empty(t, hello.Places)
	failures.Store(1 << 20)
	page := w.dial("unlucky")
	code, _ := page.ended()
	require.Equal(t, closeOverloaded, code)
}

// failingSteps fails to read places as often as left says.
type failingSteps struct {
	hubSteps
	left *atomic.Int32
}

func (f *failingSteps) Places(ctx context.Context, keys []lua.PlaceKey) ([]domain.Place, []bool, error) {
	if f.left.Add(-1) >= 0 {
		return nil, nil, errRedisAway
	}
	return f.hubSteps.Places(ctx, keys)
}

// A turn reaches every tab of its person and nobody else, also somebody who joined
// elsewhere after connecting here: everybody is registered under their own place
// of every live show.
func TestTurnReachesItsPerson(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	one, _ := w.open("one")
	two, _ := w.open("one")
	other, _ := w.open("other")
	w.join("one") // over HTTP, on another process
	fact := w.admittedFact("one", w.stats().Version+1)
	w.notify(fact)
	for _, page := range []*tab{one, two} {
		f := page.await(events.EventAdmission)
		require.Equal(t, "ADMITTED", f.Status)
		require.WithinDuration(t, fact.Admitted[0].ClaimBy, *f.ClaimBy, time.Second)
		require.Equal(t, admissionTopic(w.request("one")), f.Topic)
	}
	w.notify(events.Notification{Event: events.EventAdmission, Version: fact.Version + 1, Ended: []domain.RequestID{w.request("one")}})
	for _, page := range []*tab{one, two} {
		f := page.await(events.EventAdmission)
		require.Equal(t, "EXPIRED", f.Status)
		require.Nil(t, f.ClaimBy)
	}
	other.settle(w)
	require.Empty(t, other.of(events.EventAdmission))
}

// The same for a show that is created while the socket is open, even when the word
// about it was lost.
func TestTurnAtNewShow(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page, _ := w.open("one")
	w.show = w.addShow(func(*domain.Show) {})
	testenv.Eventually(t, socketWait, "the person is registered at the new show", func() bool {
		return len(w.hub.registry.find(placeInterest(w.request("one")))) == 1
	})
	w.join("one")
	w.notify(w.admittedFact("one", 5))
	require.Equal(t, w.show.ID, page.await(events.EventAdmission).ShowID)
}

// R35: two tabs, one closes, and the person counted as gone; and the late close of
// an old socket took the new one's place with it. A close tells nobody anything.
func TestClosingTabLosesNothing(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	old, _ := w.open("one")
	oldConnection := w.hub.all()[0]
	fresh, _ := w.open("one")
	require.NoError(t, old.conn.Close())
	testenv.Eventually(t, socketWait, "the old socket is gone", func() bool { return w.hub.Sockets() == 1 })
	for _, i := range oldConnection.release() { // and once more, late
		w.hub.registry.remove(i, oldConnection)
	}
	w.notify(w.admittedFact("one", w.stats().Version+1))
	fresh.await(events.EventAdmission, only(domain.StatusAdmitted))
	place, err := w.steps.Place(t.Context(), w.show.ID, w.request("one"))
	require.NoError(t, err)
	require.EqualValues(t, 1, place.Rank)
}

// R36, R37: an open socket is contact: it is renewed well within the grace, for
// whoever has one and for nobody else. Nothing else tells presence, so that a killed
// process or a blip drops nobody who comes back in time.
func TestOpenSocketIsContact(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.show = w.addShow(func(s *domain.Show) { s.Queue.GraceSeconds = 1 })
	w.fill()
	w.join("present", "absent")
	rdb := redisClient(t, testenv.RedisURL(t))
	contact := func(person string) float64 {
		at, err := rdb.ZScore(t.Context(), "presence:{"+string(w.show.ID)+"}", string(w.request(person))).Result()
		require.NoError(t, err)
		return at
	}
	joined, absent := contact("present"), contact("absent")
	page, _ := w.open("present")
	first := contact("present")
	require.GreaterOrEqual(t, first, joined, "opening is contact")
	renewals, last := 0, first
	testenv.Eventually(t, socketWait, "contact outlasts the grace", func() bool {
		if now := contact("present"); now > last {
			last = now
			renewals++
		}
		return last > joined+1500
	})
	require.GreaterOrEqual(t, renewals, 3)
	require.Equal(t, absent, contact("absent"))
	require.NoError(t, page.conn.Close())
	testenv.Eventually(t, socketWait, "the socket is gone", func() bool { return w.hub.Sockets() == 0 })
	require.GreaterOrEqual(t, contact("present"), last, "closing takes no contact back")
}

// T57, R19: notifications are lost and nobody notices. After a gap the state of
// what the sockets here follow is read again, and each is told what differs.
func TestGapIsHealed(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("turn", "moves", "same")
	turn, _ := w.open("turn")
	moves, _ := w.open("moves")
	_, err := w.steps.Leave(t.Context(), w.show.ID, w.request("inside-1"))
	require.NoError(t, err)
	_, err = w.steps.Admit(t.Context(), w.show.ID, lua.AdmitOptions{})
	require.NoError(t, err)
	_, err = w.db.UpdateShow(t.Context(), w.show.ID, func(s *domain.Show) error {
		s.Message = "a word that was lost"
		return nil
	})
	require.NoError(t, err)
	w.server.Gap("test")
	require.NotNil(t, turn.await(events.EventAdmission, only(domain.StatusAdmitted)).ClaimBy)
	moved := moves.await(events.EventRank)
	require.EqualValues(t, 1, moved.Rank)
	require.Equal(t, rankTopic(w.request("moves")), moved.Topic)
	require.Contains(t, moves.await(events.EventShow).raw, "a word that was lost")
	w.server.Gap("again")
	w.server.Gap("and again")
	moves.await(events.EventShow)
	moves.settle(w)
	require.Len(t, moves.of(events.EventRank), 1, "what is the same is not told again")
	require.Empty(t, moves.of(events.EventAdmission))
}

// Redis lost everything: the places are gone, the epoch grew. Whoever waited is
// told so, in the new epoch.
func TestLostPlacesAreTold(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	page, _ := w.open("one")
	rdb := redisClient(t, testenv.RedisURL(t))
	keys, err := rdb.Keys(t.Context(), "*{"+string(w.show.ID)+"}*").Result()
	require.NoError(t, err)
	require.NoError(t, rdb.Del(t.Context(), keys...).Err())
	w.server.Gap("redis lost it")
	f := page.await(events.EventAdmission)
	require.Equal(t, "EXPIRED", f.Status)
	testenv.Eventually(t, socketWait, "the new epoch is told", func() bool {
		for _, stats := range page.of(events.EventStats) {
			if stats.Epoch == w.show.Epoch+1 {
				return true
			}
		}
		return false
	})
}

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
		return events.Notification{Event: events.EventBooking, Version: version, Booking: events.NewBookingFact(b)}
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
	w.notify(events.Notification{Event: events.EventBooking, Version: s.Version, Booking: events.NewBookingFact(booking)})
	require.Equal(t, "CONFIRMED", page.await(events.EventBooking).Status)
	page.await(events.EventAdmission, only(domain.StatusLeft))
}

// T61: a broadcast that reaches one process only. Over the real bus a turn given
// anywhere is heard at every process, and the hubs of both tell it.
func TestEveryProcessHears(t *testing.T) {
	t.Parallel()
	a := newHubWorld(t)
	b := newHubWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for _, w := range []*hubWorld{a, b} {
		rdb := redisClient(t, testenv.RedisURL(t))
		running.Go(func() { _ = w.bus.Run(ctx, rdb, w.server) })
		testenv.Eventually(t, socketWait, "the bus is up", w.bus.Healthy)
	}
	require.NoError(t, b.db.CreateShow(ctx, a.show))
	b.server.shows.forgetAll()
	onA, _ := a.open("one")
	onB, _ := b.open("one")
	onA.send("join", "showId", a.show.ID)
	for _, page := range []*tab{onA, onB} {
		f := page.await(events.EventAdmission, only(domain.StatusAdmitted))
		require.Equal(t, a.request("one"), f.RequestID)
		require.Equal(t, a.show.ID, f.ShowID)
	}
}
