package api

import (
	"context"
	"fmt"
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
		s.Version, s.Active = base.Version+offset, base.Active+offset
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

// T61: a broadcast that reaches one process only. Over the real bus a turn given
// anywhere is heard at every process, and the hubs of both tell it.
func TestEveryProcessHears(t *testing.T) {
	t.Parallel()
	a := newHubWorld(t)
	b := newHubWorld(t)
	a.runBus()
	b.runBus()
	require.NoError(t, b.db.CreateShow(t.Context(), a.show))
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

// T31, T32: somebody whose socket was open before they joined over HTTP, perhaps
// through another process, heard nothing until their turn: not their rank, and not
// that all was sold or closed.
func TestJoiningOverHTTPIsHeardOnAnOpenSocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	ctx := t.Context()
	w.runBus()
	w.fill()
	page, hello := w.open("early")
	require.Empty(t, hello.Places)
	place, created, err := w.server.admissions.join(ctx, Identity{Person: "early"}, w.show.ID, "")
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, domain.StatusWaiting, place.Status)
	require.Equal(t, w.request("early"), page.await(events.EventAdmission, only(domain.StatusWaiting)).RequestID)
	tick := func() {
		stats, err := w.steps.Stats(ctx, w.show.ID)
		require.NoError(t, err)
		w.hub.Notify(events.Notification{
			Event: events.EventStats, ShowID: w.show.ID, At: time.Now(), Epoch: stats[0].Epoch, Version: stats[0].Version, Stats: &stats[0],
		})
	}
	tick()
	_, err = w.db.UpdateShow(ctx, w.show.ID, func(s *domain.Show) error { s.Closed = true; return nil })
	require.NoError(t, err)
	closed, err := w.db.Show(ctx, w.show.ID)
	require.NoError(t, err)
	require.NoError(t, w.steps.Configure(ctx, closed))
	tick()
	page.await(events.EventAdmission, only(domain.StatusClosed))
}
