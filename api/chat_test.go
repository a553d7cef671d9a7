package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// newRoom makes a chat room with members and returns its path.
func (e *edge) newRoom(maker string, members ...string) string {
	e.t.Helper()
	path := "/api/chat/rooms/" + e.call(maker, "POST", "/api/chat/rooms", object{"name": "Talk"}).is(http.StatusCreated).text("id")
	for _, member := range members {
		e.call(member, "POST", path+"/members", nil).is(http.StatusNoContent)
	}
	return path
}

func (e *edge) says(who, room string, texts ...string) {
	e.t.Helper()
	for _, text := range texts {
		e.call(who, "POST", room+"/messages", object{"text": text}).is(http.StatusCreated)
	}
}

// myRoom is the only chat room in somebody's list.
func (e *edge) myRoom(who string) (room domain.ChatRoom) {
	e.t.Helper()
	var list struct{ Rooms []domain.ChatRoom }
	e.call(who, "GET", "/api/chat/rooms", nil).is(http.StatusOK).into(&list)
	require.Len(e.t, list.Rooms, 1)
	return list.Rooms[0]
}

// readEntry waits for the read mark of a chat room on the stream.
func (e *edge) readEntries(room string, count int) []map[string]any {
	e.t.Helper()
	id := strings.TrimPrefix(room, "/api/chat/rooms/")
	var values []map[string]any
	testenv.Eventually(e.t, soon, "read marks on the stream", func() bool {
		values = nil
		for _, entry := range e.entries(events.StreamChatRead, id) {
			values = append(values, entry.Values)
		}
		return len(values) >= count
	})
	return values
}

func TestOnlyMembersReadAndWrite(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me, outside := e.person(), e.person()
		room := e.newRoom(me)
		e.says(me, room, "hello")
		for _, a := range []answer{
			e.call(outside, "GET", room+"/messages", nil),
			e.call(outside, "POST", room+"/messages", object{"text": "x"}),
			e.call(outside, "POST", room+"/read", object{"upTo": 1}),
			e.call(outside, "POST", room+"/unread", object{"from": 1}),
			e.call(outside, "GET", room+"/readers?seq=1", nil),
		} {
			a.fails(http.StatusForbidden, codeNotMember)
		}
		for _, id := range []string{"none", "no%00ne", strings.Repeat("x", 65)} {
			e.call(me, "GET", "/api/chat/rooms/"+id+"/messages", nil).fails(http.StatusNotFound, codeRoomNotFound)
			e.call(me, "POST", "/api/chat/rooms/"+id+"/members", nil).fails(http.StatusNotFound, codeRoomNotFound)
		}
		require.Empty(t, e.call(outside, "GET", "/api/chat/rooms", nil).is(http.StatusOK).json["rooms"])
		for range 2 {
			e.call(outside, "POST", room+"/members", nil).is(http.StatusNoContent)
		}
		require.Zero(t, e.myRoom(outside).Unread, "what was said before one joined is not unread")
		for range 2 {
			e.call(outside, "DELETE", room+"/members", nil).is(http.StatusNoContent)
		}
		e.call(outside, "GET", room+"/messages", nil).fails(http.StatusForbidden, codeNotMember)
	})
}

func TestMessagesComeInPagesByRisingNumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me := e.person()
		room := e.newRoom(me)
		e.says(me, room, "1", "2", "3", "4", "5")
		page := func(query string) (texts []string) {
			var list struct{ Messages []domain.ChatMessage }
			e.call(me, "GET", room+"/messages"+query, nil).is(http.StatusOK).into(&list)
			for _, m := range list.Messages {
				texts = append(texts, m.Text)
			}
			return texts
		}
		require.Equal(t, []string{"1", "2", "3", "4", "5"}, page(""))
		require.Equal(t, []string{"4", "5"}, page("?limit=2"))
		require.Equal(t, []string{"2", "3"}, page("?limit=2&before=4"))
		require.Empty(t, page("?before=1"))
		for _, query := range []string{"?limit=0", "?limit=101", "?before=0", "?before=x", "?limit=1&limit=2"} {
			e.call(me, "GET", room+"/messages"+query, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
		}
		for _, text := range []string{"", "   ", strings.Repeat("é", 2001)} {
			e.call(me, "POST", room+"/messages", object{"text": text}).fails(http.StatusUnprocessableEntity, codeInvalid)
		}
		e.says(me, room, strings.Repeat("é", 2000))
	})
}

// K19: a message came while "mark all as read" ran, and was marked unseen. A page
// counts as read up to its own last message, whatever has come since.
// K16: the list asked for right after still showed the old count.
func TestTheNewestPageCountsAsReadUpToItsLastMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me, other := e.person(), e.person()
		room := e.newRoom(other, me)
		e.says(other, room, "1", "2", "3")
		require.Equal(t, 3, e.myRoom(me).Unread)
		e.call(me, "GET", room+"/messages", nil).is(http.StatusOK)
		e.says(other, room, "4")
		mine := e.myRoom(me)
		require.Equal(t, int64(3), mine.ReadUpTo, "seen at once, though no worker has run")
		require.Equal(t, 1, mine.Unread)
		entries := e.readEntries(room, 1)
		require.Len(t, entries, 1)
		require.Equal(t, "3", entries[0]["upTo"])
		require.NotEmpty(t, entries[0]["publicUuid"])
		require.Equal(t, 1, e.myRoom(me).Unread, "the same once the mark is noted")
	})
}

// K25, K22: reading old history marked new messages as read.
func TestOlderHistoryMarksNothing(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	me, other := e.person(), e.person()
	room := e.newRoom(other, me)
	e.says(other, room, "1", "2", "3")
	e.call(me, "GET", room+"/messages?before=3", nil).is(http.StatusOK)
	e.server.afterwards.wait()
	require.Empty(t, e.entries(events.StreamChatRead, strings.TrimPrefix(room, "/api/chat/rooms/")))
	require.Equal(t, 3, e.myRoom(me).Unread)
	e.call(other, "GET", "/api/chat/rooms", nil)
	require.Zero(t, e.myRoom(other).Unread, "one's own messages are not unread")
}

// K31: what comes while the chat room is open is marked by the page with this route.
func TestMarkingAsReadUpToAMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me, other := e.person(), e.person()
		room := e.newRoom(other, me)
		e.says(other, room, "1", "2", "3")
		require.Equal(t, int64(2), e.call(me, "POST", room+"/read", object{"upTo": 2}).is(http.StatusAccepted).number("upTo"))
		require.Equal(t, 1, e.myRoom(me).Unread)
		e.call(me, "POST", room+"/read", object{"upTo": 1}).is(http.StatusAccepted)
		require.Equal(t, int64(2), e.myRoom(me).ReadUpTo, "a read pointer never goes back by itself")
		for _, upTo := range []any{0, -1, 4} {
			e.call(me, "POST", room+"/read", object{"upTo": upTo}).fails(http.StatusUnprocessableEntity, codeInvalid)
		}
		for _, upTo := range []any{"2", 1.5, 1e30, true} {
			e.call(me, "POST", room+"/read", object{"upTo": upTo}).fails(http.StatusBadRequest, codeMalformedBody)
		}
	})
}

func TestMarkingAsUnreadHoldsAgainstMarksOfBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		e.listen()
		me, other := e.person(), e.person()
		room := e.newRoom(other, me)
		e.says(other, room, "1", "2", "3")
		e.call(me, "POST", room+"/read", object{"upTo": 3}).is(http.StatusAccepted)
		require.Zero(t, e.myRoom(me).Unread)
		mark := domain.ReadMark{RoomID: e.myRoom(me).ID, PersonID: domain.PersonID(e.readEntries(room, 1)[0]["publicUuid"].(string)), UpTo: 3}
		_, err := e.store.MarkRead(t.Context(), []domain.ReadMark{mark})
		require.NoError(t, err)
		e.call(me, "POST", room+"/unread", object{"from": 2}).is(http.StatusNoContent)
		require.Equal(t, 2, e.myRoom(me).Unread)
		require.Equal(t, int64(1), e.myRoom(me).ReadUpTo)
		_, err = e.store.MarkRead(t.Context(), []domain.ReadMark{mark}) // delivered again, late
		require.NoError(t, err)
		require.Equal(t, 2, e.myRoom(me).Unread)
		e.hears("the pointer moved", func(n events.Notification) bool {
			return n.Event == events.EventChatRead && n.RoomID == mark.RoomID && n.Read[0].UpTo == 1
		})
		for _, from := range []int64{0, 4, -1} {
			e.call(me, "POST", room+"/unread", object{"from": from}).fails(http.StatusUnprocessableEntity, codeInvalid)
		}
	})
}

func TestReadersAreThoseWhosePointerHasPassed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me, other := e.person(), e.person()
		room := e.newRoom(me, other)
		e.says(me, room, "1", "2")
		readers := func(query string) []any {
			return e.call(me, "GET", room+"/readers"+query, nil).is(http.StatusOK).json["readers"].([]any)
		}
		require.Empty(t, readers("?seq=1"))
		e.call(other, "POST", room+"/read", object{"upTo": 1}).is(http.StatusAccepted)
		person := e.readEntries(room, 1)[0]["publicUuid"].(string)
		_, err := e.store.MarkRead(t.Context(), []domain.ReadMark{{RoomID: e.myRoom(me).ID, PersonID: domain.PersonID(person), UpTo: 1}})
		require.NoError(t, err)
		require.Equal(t, person, readers("?seq=1")[0].(map[string]any)["person"])
		require.Empty(t, readers("?seq=2"))
		e.call(me, "GET", room+"/readers?seq=3", nil).fails(http.StatusNotFound, codeMessageNotFound)
		for _, query := range []string{"", "?seq=0", "?seq=x", "?seq="} {
			e.call(me, "GET", room+"/readers"+query, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
		}
	})
}

func TestAMessageIsTakenBackByItsSenderOrAnOperator(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		e.listen()
		me, other := e.person(), e.person()
		room := e.newRoom(me, other)
		e.says(me, room, "1", "2")
		e.call(other, "DELETE", room+"/messages/1", nil).fails(http.StatusNotFound, codeMessageNotFound)
		e.call(me, "DELETE", room+"/messages/1", nil).is(http.StatusNoContent)
		e.call(e.operator, "DELETE", room+"/messages/2", nil).is(http.StatusNoContent)
		for _, seq := range []string{"3", "0", "x", "99999999999999999999"} {
			e.call(me, "DELETE", room+"/messages/"+seq, nil).fails(http.StatusNotFound, codeMessageNotFound)
		}
		var list struct{ Messages []domain.ChatMessage }
		e.call(other, "GET", room+"/messages", nil).into(&list)
		for _, m := range list.Messages {
			require.True(t, m.Deleted)
			require.Empty(t, m.Text)
		}
		require.Zero(t, e.myRoom(other).Unread)
		e.hears("the message is gone", func(n events.Notification) bool {
			return n.Event == events.EventChatMessage && n.Message.Deleted && n.Message.Seq == 1
		})
	})
}

func TestAMessageIsToldToEverybody(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.listen()
	me := e.person()
	room := e.newRoom(me)
	e.says(me, room, "hello")
	n := e.hears("the message", func(n events.Notification) bool {
		return n.Event == events.EventChatMessage && "/api/chat/rooms/"+string(n.RoomID) == room
	})
	require.Equal(t, "hello", n.Message.Text)
	require.True(t, strings.HasPrefix(n.Message.SenderName, "Name of "))
}

func TestAChatRoomMayBelongToAShow(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	made := e.call(e.person(), "POST", "/api/chat/rooms", object{"name": "Front row", "showId": showID(show)}).is(http.StatusCreated)
	require.Equal(t, string(showID(show)), made.text("showId"))
	e.call(e.person(), "POST", "/api/chat/rooms", object{"name": "x", "showId": "none"}).fails(http.StatusNotFound, codeShowNotFound)
	e.call(e.person(), "POST", "/api/chat/rooms", object{"name": " "}).fails(http.StatusUnprocessableEntity, codeInvalid)
}

// brokenReads fails or hangs where a read mark is published; all else works.
type brokenReads struct {
	Commands
	wait chan struct{} // nil: fail at once
}

func (b brokenReads) MarkRead(ctx context.Context, _ events.MarkRead) error {
	if b.wait != nil {
		select {
		case <-b.wait:
		case <-ctx.Done():
		}
	}
	return errors.New("the stream is away")
}

// Answering must not wait for the stream, nor fail with it. K28: a mark that never
// reached the stream must not look as if it had.
func TestReadingDoesNotWaitForTheStreamAndDoesNotPretend(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	e := newEdge(t, func(_ *Config, d *Deps) { d.Commands = brokenReads{d.Commands, hanging} })
	me, other := e.person(), e.person()
	room := e.newRoom(other, me)
	e.says(other, room, "1")
	start := time.Now()
	e.call(me, "GET", room+"/messages", nil).is(http.StatusOK)
	require.Less(t, time.Since(start), afterwardsTime/2)
	require.Zero(t, e.myRoom(me).Unread, "on its way, it counts")
	close(hanging)
	testenv.Eventually(t, soon, "the failed mark counts no more", func() bool { return e.myRoom(me).Unread == 1 })
	e.call(me, "POST", room+"/read", object{"upTo": 1}).fails(http.StatusInternalServerError, codeInternal)
	require.Equal(t, 1, e.myRoom(me).Unread)
}

// What runs behind answers is bounded; beyond the bound an answer does it itself.
func TestWhatRunsBehindAnswersIsBounded(t *testing.T) {
	t.Parallel()
	a := newAfterwards(1)
	release, order := make(chan struct{}), make(chan string, 3)
	a.do(t.Context(), func(context.Context) { <-release; order <- "behind" })
	a.do(t.Context(), func(context.Context) { order <- "within" })
	require.Equal(t, "within", <-order)
	close(release)
	a.wait()
	require.Equal(t, "behind", <-order)
	ended, end := context.WithCancel(t.Context())
	end()
	a.do(ended, func(ctx context.Context) { order <- "after its request"; require.NoError(t, ctx.Err()) })
	a.wait()
	require.Equal(t, "after its request", <-order)
}
