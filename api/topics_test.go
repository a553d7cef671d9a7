package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
)

// R50: a refused credential still subscribed, and what clients sent was relayed to
// topics. Personal topics follow from who one is, a chat room from being its member,
// and a client's frame never reaches another client.
func TestForeignTopicsAreRefused(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.join("victim")
	room := w.room("victim")
	page, _ := w.open("spy")
	for topic, code := range map[string]string{
		admissionTopic(w.request("victim")): codeForbidden,
		rankTopic(w.request("victim")):      codeForbidden,
		bookingTopic(w.request("victim")):   codeForbidden,
		admissionTopic("guessed"):           codeForbidden,
		chatTopic(room):                     codeNotMember,
		chatTopic("no-such-room"):           codeRoomNotFound,
		statsTopic("no-such-show"):          codeUnknownTopic,
		seatsTopic("no-such-show"):          codeUnknownTopic,
		"/topic/nowhere":                    codeUnknownTopic,
		"/topic/stats/show/":                codeUnknownTopic,
		"/topic/stats/show/a/b":             codeUnknownTopic,
		"":                                  codeUnknownTopic,
	} {
		page.send("subscribe", "topic", topic, "ref", "r")
		require.Equal(t, code, page.await(eventError).Code, topic)
	}
	w.notify(w.admittedFact("victim", 1000))
	w.notify(events.Notification{Event: events.EventBooking, Version: 1001, Bookings: []events.BookingFact{
		{BookingID: "b", RequestID: w.request("victim"), Status: domain.BookingConfirmed},
	}})
	w.say(room, "victim", "a secret")
	page.settle(w)
	require.Empty(t, page.of(events.EventAdmission))
	require.Empty(t, page.of(events.EventBooking))
	require.Empty(t, page.of(events.EventChatMessage))
	require.Empty(t, w.hub.registry.find(roomInterest(room)))
}

// Every topic answers at once with what is known, so that a page needs no other
// way to begin.
func TestSubscriptionsAnswerAtOnce(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("one")
	hold := w.hold("inside-1", "A-1-1")
	page, _ := w.open("reader")
	page.send("subscribe", "topic", statsTopic(w.show.ID))
	require.EqualValues(t, 1, page.await(events.EventStats).Waiting)
	page.send("subscribe", "topic", soldOutTopic(w.show.ID))
	require.False(t, page.await(events.EventSoldOut).SoldOut)
	page.send("subscribe", "topic", showTopic(w.show.ID))
	require.Equal(t, "OPEN", page.await(events.EventShow).Phase)
	page.send("subscribe", "topic", seatsTopic(w.show.ID))
	seats := page.await(events.EventSeats)
	require.Zero(t, seats.Since)
	require.Equal(t, hold.Version, seats.Version)
	require.Equal(t, map[domain.SeatID]domain.SeatState{"A-1-1": domain.SeatHeld}, seats.seats(t))
	require.NotContains(t, seats.raw, string(hold.HoldID), "whose it is stays with them")
	page.send("subscribe", "topic", statsTopic(w.show.ID)) // again: again an answer
	page.await(events.EventStats)

	page.send("subscribe", "topic", admissionTopic(w.request("reader")), "ref", "none")
	require.Equal(t, codeNotJoined, page.await(eventError, func(f told) bool { return f.Ref == "none" }).Code)
	own, _ := w.open("one")
	own.send("subscribe", "topic", rankTopic(w.request("one")))
	require.EqualValues(t, 1, own.await(events.EventRank).Rank)
	own.send("subscribe", "topic", admissionTopic(w.request("one")))
	own.await(events.EventAdmission, only(domain.StatusWaiting))

	page.send("unsubscribe", "topic", statsTopic(w.show.ID))
	page.settle(w)
	before := len(page.of(events.EventStats))
	s := w.stats()
	s.Version, s.Active = s.Version+1, s.Active+1
	w.notifyStats(s)
	own.await(events.EventStats, func(f told) bool { return f.Version == s.Version })
	page.settle(w)
	require.Len(t, page.of(events.EventStats), before)
	own.send("unsubscribe", "topic", statsTopic(w.show.ID)) // comes with the place
	s.Version, s.Active = s.Version+1, s.Active+1
	w.notifyStats(s)
	own.await(events.EventStats, func(f told) bool { return f.Version == s.Version })
}

// Somebody who joined by HTTP hears of their place by asking for their own topic.
func TestOwnTopicAfterJoiningElsewhere(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	page, _ := w.open("one")
	w.join("one")
	page.send("subscribe", "topic", rankTopic(w.request("one")))
	require.EqualValues(t, 1, page.await(events.EventRank).Rank)
	s := w.stats()
	s.Version++
	w.notifyStats(s)
	page.await(events.EventStats, func(f told) bool { return f.Version == s.Version })
}

// Nobody makes the process remember any number of subscriptions.
func TestSubscriptionsAreLimited(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	topics := []string{}
	for range 5 {
		show := w.addShow(func(*domain.Show) {})
		topics = append(topics, statsTopic(show.ID), seatsTopic(show.ID))
	}
	page, _ := w.open("one")
	for _, topic := range topics[:8] {
		page.send("subscribe", "topic", topic)
	}
	page.send("subscribe", "topic", topics[8], "ref", "ninth")
	require.Equal(t, codeTooManyTopics, page.await(eventError).Code)
	page.send("unsubscribe", "topic", topics[0])
	page.send("subscribe", "topic", topics[8])
	page.await(events.EventStats, func(f told) bool { return f.Topic == topics[8] })
}

// hold takes seats for somebody who is inside with a turn.
func (w *hubWorld) hold(person string, seats ...domain.SeatID) domain.Hold {
	w.t.Helper()
	_, err := w.steps.Claim(w.t.Context(), w.show.ID, w.request(person))
	require.NoError(w.t, err)
	hold, err := w.steps.Hold(w.t.Context(), lua.HoldRequest{
		ShowID: w.show.ID, RequestID: w.request(person), HoldID: domain.HoldID(domain.NewID()), Candidates: [][]domain.SeatID{seats},
	})
	require.NoError(w.t, err)
	return hold
}

// heldFact is what is published after a hold.
func heldFact(hold domain.Hold) events.Notification {
	n := events.Notification{Event: events.EventSeats, SeatVersion: hold.Version}
	for _, seat := range hold.Seats {
		n.SeatsChanged = append(n.SeatsChanged, domain.Seat{ID: seat, State: domain.SeatHeld})
	}
	return n
}

// mirror applies every SEATS frame as a page would, and fails on a gap.
func mirror(t *testing.T, frames []told) (seats map[domain.SeatID]domain.SeatState, version int64) {
	t.Helper()
	seats = map[domain.SeatID]domain.SeatState{}
	for _, f := range frames {
		if f.Since == 0 {
			clear(seats)
		} else {
			require.LessOrEqual(t, f.Since, version, "a delta was missed: %s", f.raw)
		}
		require.GreaterOrEqual(t, f.Version, version)
		version = f.Version
		for id, state := range f.seats(t) {
			seats[id] = state
			if state == domain.SeatFree {
				delete(seats, id)
			}
		}
	}
	return seats, version
}

// I4: a seat was for sale on the page and the click failed, since a change was not
// pushed. I2: deltas that come twice, late, in the wrong order or not at all, in
// front of two tabs. However they come, the map on every page ends up right.
func TestSeatDeltasInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.show = w.addShow(func(s *domain.Show) { s.Seating.SeatLimit = 10 })
	w.fill()
	first, _ := w.open("reader-1")
	first.send("subscribe", "topic", seatsTopic(w.show.ID))
	first.await(events.EventSeats)
	var facts []events.Notification
	for n := range 10 {
		seat := domain.NewSeatID("A", n/5+1, n%5+1)
		facts = append(facts, heldFact(w.hold("inside-1", seat)))
	}
	second, _ := w.open("reader-2")
	second.send("subscribe", "topic", seatsTopic(w.show.ID), "since", facts[0].SeatVersion, "epoch", w.show.Epoch)
	for _, i := range []int{0, 0, 1, 3, 2, 1, 4, 8, 5, 9} { // 6 and 7 never come
		w.notify(facts[i])
	}
	for _, page := range []*tab{first, second} {
		page.await(events.EventSeats, func(f told) bool { return f.Version == facts[9].SeatVersion })
		page.settle(w)
	}
	seats, version := mirror(t, first.of(events.EventSeats))
	require.Len(t, seats, 10)
	require.Equal(t, facts[9].SeatVersion, version)
	frames := second.of(events.EventSeats)
	require.Equal(t, facts[0].SeatVersion, frames[0].Since, "only what changed since is sent to who has a map")

	released, freed, err := w.steps.ReleaseHold(t.Context(), w.show.ID, w.request("inside-1"), w.lastHold("inside-1"))
	require.NoError(t, err)
	w.server.Gap("the word about it was lost")
	for _, page := range []*tab{first, second} {
		page.await(events.EventSeats, func(f told) bool { return f.Version >= freed })
	}
	seats, _ = mirror(t, first.of(events.EventSeats))
	require.Len(t, seats, 10-len(released))
}

func (w *hubWorld) lastHold(person string) domain.HoldID {
	w.t.Helper()
	holds, err := w.steps.Holds(w.t.Context(), w.show.ID, w.request(person))
	require.NoError(w.t, err)
	require.NotEmpty(w.t, holds)
	return holds[len(holds)-1].HoldID
}

// A map of another epoch is worth nothing: the whole map is sent.
func TestSeatsOfOldEpoch(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.hold("inside-1", "A-1-1")
	page, _ := w.open("reader")
	page.send("subscribe", "topic", seatsTopic(w.show.ID), "since", 1, "epoch", w.show.Epoch-1)
	require.Zero(t, page.await(events.EventSeats).Since)
	n := heldFact(w.hold("inside-1", "A-1-2"))
	w.notify(n)
	page.await(events.EventSeats, func(f told) bool { return f.Version == n.SeatVersion })
}

// Deltas for a reader who is slower than the sale are merged seat by seat: fewer
// frames, none of the seats missing, and the chain of versions unbroken.
func TestSeatDeltasAreMerged(t *testing.T) {
	t.Parallel()
	var o outbox
	delta := func(since, version int64, seats ...domain.Seat) {
		f, p := sharedSeats("s", since, domain.SeatChanges{Epoch: 1, Version: version, Seats: seats}, time.Now())
		o.mergeSeats(p, f)
	}
	delta(5, 6, domain.Seat{ID: "A-1-1", State: domain.SeatHeld}, domain.Seat{ID: "A-1-2", State: domain.SeatHeld})
	delta(6, 7, domain.Seat{ID: "A-1-2", State: domain.SeatSold})
	delta(7, 8, domain.Seat{ID: "A-1-1", State: domain.SeatFree}, domain.Seat{ID: "A-1-3", State: domain.SeatHeld})
	p := o.next()
	require.NotNil(t, p)
	require.Equal(t, laneCount, o.first())
	require.EqualValues(t, 5, p.seats.Since)
	require.EqualValues(t, 8, p.seats.Version)
	require.Equal(t, []domain.Seat{
		{ID: "A-1-1", State: domain.SeatFree}, {ID: "A-1-2", State: domain.SeatSold}, {ID: "A-1-3", State: domain.SeatHeld},
	}, p.seats.Seats)
	delta(8, 9, domain.Seat{ID: "A-1-1", State: domain.SeatHeld})
	delta(0, 3)
	p = o.next()
	require.Zero(t, p.seats.Since)
	require.Empty(t, p.seats.Seats)
}

// room makes a chat room with members.
func (w *hubWorld) room(members ...string) domain.RoomID {
	w.t.Helper()
	room := domain.RoomID(domain.NewID())
	_, err := w.db.CreateRoom(w.t.Context(), domain.ChatRoom{ID: room, Name: "Talk"}, domain.PersonID(members[0]), members[0])
	require.NoError(w.t, err)
	for _, member := range members[1:] {
		require.NoError(w.t, w.db.AddMember(w.t.Context(), room, domain.PersonID(member), member))
	}
	return room
}

// say adds a message and tells the hub.
func (w *hubWorld) say(room domain.RoomID, person, text string) domain.ChatMessage {
	w.t.Helper()
	message, err := w.db.AddMessage(w.t.Context(), domain.ChatMessage{RoomID: room, Sender: domain.PersonID(person), SenderName: person, Text: text})
	require.NoError(w.t, err)
	w.hub.Notify(events.Notification{Event: events.EventChatMessage, RoomID: room, Message: &message, At: time.Now()})
	return message
}

// Members of a chat room hear every message in order, and how far others have read;
// what was missed in a gap is told again.
func TestChatIsHeard(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	room := w.room("one", "two")
	w.say(room, "one", "before anybody listens")
	page, _ := w.open("two")
	page.send("subscribe", "topic", chatTopic(room))
	begin := page.await(events.EventChatRead)
	require.Equal(t, "two", begin.Person)
	require.EqualValues(t, 1, *begin.LastSeq)
	for i := range 20 {
		w.say(room, "one", fmt.Sprint("message ", i))
	}
	for i := range 20 {
		require.Contains(t, page.await(events.EventChatMessage).raw, fmt.Sprint("message ", i))
	}
	w.hub.Notify(events.Notification{Event: events.EventChatRead, RoomID: room, Read: []domain.ReadPointer{
		{RoomID: room, PersonID: "one", Name: "One", UpTo: 7}, {RoomID: room, PersonID: "one", Name: "One", UpTo: 9},
	}})
	page.await(events.EventChatRead, func(f told) bool { return f.UpTo == 9 && f.Person == "one" })

	_, err := w.db.AddMessage(t.Context(), domain.ChatMessage{RoomID: room, Sender: "one", SenderName: "one", Text: "lost on its way"})
	require.NoError(t, err)
	w.hub.Gap("test")
	page.await(events.EventChatMessage, func(f told) bool { return strings.Contains(f.raw, "lost on its way") })

	// K8: who is no member any more hears no more, also on a socket opened before.
	w.hub.Notify(events.Notification{Event: events.EventChatRead, RoomID: room, Gone: []domain.PersonID{"two"}})
	w.say(room, "one", "after leaving")
	page.send("subscribe", "topic", chatTopic(room)) // still a member in SQL, in this test
	page.await(events.EventChatRead)
	page.send("unsubscribe", "topic", chatTopic(room))
	page.settle(w)
	w.say(room, "one", "after leaving")
	page.settle(w)
	for _, f := range page.of(events.EventChatMessage) {
		require.NotContains(t, f.raw, "after leaving")
	}
}

// Reading a chat room over the socket goes the way of HTTP, with its checks.
func TestReadOverSocket(t *testing.T) {
	t.Parallel()
	type mark struct {
		person domain.PersonID
		room   domain.RoomID
		upTo   int64
	}
	marks := make(chan mark, 1)
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) {
		markRead := d.markRead
		d.markRead = func(ctx context.Context, who Identity, room domain.RoomID, upTo int64) error {
			err := markRead(ctx, who, room, upTo)
			if err == nil {
				marks <- mark{who.Person, room, upTo}
			}
			return err
		}
	})
	room := w.room("one", "two")
	w.say(room, "one", "hello")
	page, _ := w.open("two")
	page.send("read", "roomId", room, "upTo", 1)
	require.Equal(t, mark{"two", room, 1}, <-marks)
	stranger, _ := w.open("stranger")
	stranger.send("read", "roomId", room, "upTo", 1, "ref", "x")
	require.Equal(t, codeNotMember, stranger.await(eventError).Code)
}

// A chat message replaces none before it, so a client too slow for the talk is not
// fed on a part of it: it is closed with the code that asks it to read again. The
// others go on.
func TestChatOverflowAsksToReadAgain(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.slowAfter, c.writeWait = time.Hour, time.Hour })
	room := w.room("talker", "slow", "healthy")
	healthy, _ := w.open("healthy")
	healthy.send("subscribe", "topic", chatTopic(room))
	healthy.await(events.EventChatRead)
	slow, conn := w.unread("slow")
	require.NoError(t, conn.WriteJSON(map[string]any{"type": "subscribe", "topic": chatTopic(room)}))
	testenv.Eventually(t, socketWait, "the slow client listens, and its write does not come back", func() bool {
		answered := testutil.ToFloat64(w.hub.metrics.frames.WithLabelValues(events.EventChatRead)) == 2
		slow.mu.Lock()
		defer slow.mu.Unlock()
		if answered && !slow.inFlight {
			slow.inFlight, slow.sentAt = true, time.Now()
			return true
		}
		return false
	})
	for n := range maxChatQueued + 1 {
		w.say(room, "talker", fmt.Sprint("message ", n))
	}
	require.Equal(t, 1.0, testutil.ToFloat64(w.hub.metrics.drops.WithLabelValues("chat")))
	require.Equal(t, 1.0, testutil.ToFloat64(w.hub.metrics.closes.WithLabelValues("4005")))
	for n := range maxChatQueued + 1 {
		require.Contains(t, healthy.await(events.EventChatMessage).raw, fmt.Sprint("message ", n))
	}
	slow.written() // the line takes bytes again, and so the goodbye
	code := 0
	for code == 0 {
		if _, _, err := conn.ReadMessage(); err != nil {
			code, _ = (&tab{t: t, err: err}).ended()
		}
	}
	require.Equal(t, closeResync, code)
}

// The order of sending: what decides about a person's turn goes first, the latest
// of each kind wins, and what may not be dropped is not.
func TestOutboxOrder(t *testing.T) {
	t.Parallel()
	var o outbox
	for _, l := range []lane{laneSeats, laneStats, laneRank, laneChat, laneBooking, laneControl, laneSoldOut, laneAdmission} {
		o.put(l, &pending{event: fmt.Sprint(l), key: "k"})
		o.put(l, &pending{event: fmt.Sprint(l), key: "k", data: []byte("later")})
	}
	o.put(laneAdmission, &pending{event: "another show", key: "k2"})
	var sent []string
	for p := o.next(); p != nil; p = o.next() {
		if p.key == "k" {
			require.Equal(t, "later", string(p.data))
		}
		sent = append(sent, p.event)
	}
	require.Equal(t, []string{
		fmt.Sprint(laneAdmission), "another show", fmt.Sprint(laneSoldOut), fmt.Sprint(laneControl), fmt.Sprint(laneBooking),
		fmt.Sprint(laneChat), fmt.Sprint(laneRank), fmt.Sprint(laneStats), fmt.Sprint(laneSeats),
	}, sent)
}

// Both halves of the process's address are there without a socket.
func TestSpecificationIsServed(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	response, err := w.http.Client().Get(w.http.URL + "/asyncapi.yaml")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}
