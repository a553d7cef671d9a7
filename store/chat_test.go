package store_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/store"
)

// newRoom makes a chat room of ann, with the other members.
func newRoom(t *testing.T, db *store.DB, members ...domain.PersonID) domain.RoomID {
	t.Helper()
	id := domain.RoomID(domain.NewID())
	_, err := db.CreateRoom(t.Context(), domain.ChatRoom{ID: id, Name: "Row A"}, "ann", "Ann")
	require.NoError(t, err)
	for _, m := range members {
		require.NoError(t, db.AddMember(t.Context(), id, m, strings.ToUpper(string(m))))
	}
	return id
}

func say(t *testing.T, db *store.DB, room domain.RoomID, sender domain.PersonID, times int) {
	t.Helper()
	for range times {
		_, err := db.AddMessage(t.Context(), domain.ChatMessage{RoomID: room, Sender: sender, SenderName: string(sender), Text: "hello"})
		require.NoError(t, err)
	}
}

func view(t *testing.T, db *store.DB, room domain.RoomID, person domain.PersonID) domain.ChatRoom {
	t.Helper()
	c, err := db.Room(t.Context(), room, person)
	require.NoError(t, err)
	return c
}

func TestRoomsAndMembers(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		nowhere := domain.ShowID("t-nowhere")
		_, err := db.CreateRoom(t.Context(), domain.ChatRoom{ID: "r", Name: "R", ShowID: &nowhere}, "ann", "Ann")
		require.ErrorIs(t, err, domain.ErrShowNotFound)

		id := domain.RoomID(domain.NewID())
		made, err := db.CreateRoom(t.Context(), domain.ChatRoom{ID: id, Name: "Row A", ShowID: &show.ID}, "ann", "Ann")
		require.NoError(t, err)
		require.Equal(t, domain.ChatRoom{ID: id, Name: "Row A", ShowID: &show.ID}, made)
		second := newRoom(t, db)
		rooms, err := db.Rooms(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, []domain.RoomID{id, second}, []domain.RoomID{rooms[0].ID, rooms[1].ID})

		_, err = db.Room(t.Context(), id, "bob")
		require.ErrorIs(t, err, domain.ErrNotMember)
		_, err = db.Room(t.Context(), "nowhere", "bob")
		require.ErrorIs(t, err, domain.ErrRoomNotFound)
		require.ErrorIs(t, db.AddMember(t.Context(), "nowhere", "bob", "Bob"), domain.ErrRoomNotFound)
		var invalid *domain.InvalidError
		require.ErrorAs(t, db.AddMember(t.Context(), id, "bob", "B\x00b"), &invalid)

		say(t, db, id, "ann", 2)
		require.NoError(t, db.AddMember(t.Context(), id, "bob", "Bob"))
		say(t, db, id, "ann", 1)
		require.NoError(t, db.AddMember(t.Context(), id, "bob", "Bobby")) // again: no change
		require.EqualValues(t, 2, view(t, db, id, "bob").ReadUpTo)

		for range 2 {
			require.NoError(t, db.RemoveMember(t.Context(), id, "bob"))
		}
		require.NoError(t, db.RemoveMember(t.Context(), "nowhere", "bob"))
		_, err = db.Room(t.Context(), id, "bob")
		require.ErrorIs(t, err, domain.ErrNotMember)
		_, err = db.AddMessage(t.Context(), domain.ChatMessage{RoomID: id, Sender: "bob", Text: "still here"})
		require.ErrorIs(t, err, domain.ErrNotMember)
		_, err = db.AddMessage(t.Context(), domain.ChatMessage{RoomID: "nowhere", Sender: "bob", Text: "hello"})
		require.ErrorIs(t, err, domain.ErrRoomNotFound)
		_, err = db.AddMessage(t.Context(), domain.ChatMessage{RoomID: id, Sender: "ann", Text: "a\x00b"})
		require.ErrorAs(t, err, &invalid)
		require.EqualValues(t, 3, view(t, db, id, "ann").LastSeq) // refused messages took no number
	})
}

// K3, H8: ids were handed out at the insert and visible at the commit, so that a
// reader passed over a message for ever. Here many write at once, and no reader
// ever sees a number without all that are lower.
func TestH8NoReaderSeesAGap(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		room := newRoom(t, dbs[0])
		const writers, each = 4, 12
		var wg, reading sync.WaitGroup
		done := make(chan struct{})
		reading.Go(func() {
			for {
				page, err := dbs[1].Messages(t.Context(), room, 0, 0)
				if err != nil {
					t.Errorf("read: %v", err)
				}
				for i, m := range page {
					if m.Seq != int64(i+1) {
						t.Errorf("message %d stands at place %d", m.Seq, i+1)
					}
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
		for i := range writers {
			wg.Go(func() {
				for range each {
					if _, err := dbs[i%2].AddMessage(t.Context(), domain.ChatMessage{RoomID: room, Sender: "ann", Text: "x"}); err != nil {
						t.Errorf("add: %v", err)
					}
				}
			})
		}
		wg.Wait()
		close(done)
		reading.Wait()
		require.EqualValues(t, writers*each, view(t, dbs[0], room, "ann").LastSeq)
	})
}

func TestMessagePages(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		var said []domain.ChatMessage
		for _, text := range []string{"one", "zwei", "三", "4\n", "<5>"} {
			m, err := db.AddMessage(t.Context(), domain.ChatMessage{RoomID: room, Sender: "bob", SenderName: "Bob", Text: text, Seq: 99})
			require.NoError(t, err)
			require.Equal(t, text, m.Text)
			require.Equal(t, "Bob", m.SenderName)
			require.EqualValues(t, len(said)+1, m.Seq)
			said = append(said, m)
		}
		for _, page := range []struct {
			before int64
			limit  int
			want   []domain.ChatMessage
		}{{0, 2, said[3:]}, {4, 2, said[1:3]}, {2, 2, said[:1]}, {1, 2, said[:0]}, {0, 0, said}, {0, 5000, said}, {1 << 31, 2, said[3:]}, {math.MaxInt64, 9, said}} {
			got, err := db.Messages(t.Context(), room, page.before, page.limit)
			require.NoError(t, err)
			require.Equal(t, page.want, got)
		}
	})
}

func TestDeleteMessage(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 2)
		_, err := db.DeleteMessage(t.Context(), room, 1, "bob", false)
		require.ErrorIs(t, err, domain.ErrMessageNotFound)
		_, err = db.DeleteMessage(t.Context(), room, 3, "ann", true)
		require.ErrorIs(t, err, domain.ErrMessageNotFound)
		gone, err := db.DeleteMessage(t.Context(), room, 1, "ann", false)
		require.NoError(t, err)
		require.True(t, gone.Deleted)
		require.Empty(t, gone.Text)
		again, err := db.DeleteMessage(t.Context(), room, 1, "bob", true)
		require.NoError(t, err)
		require.Equal(t, gone, again)
		page, err := db.Messages(t.Context(), room, 0, 10)
		require.NoError(t, err)
		require.Equal(t, gone, page[0])
		require.Equal(t, "hello", page[1].Text)
		require.Equal(t, 1, view(t, db, room, "bob").Unread)
	})
}
