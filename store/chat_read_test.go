package store_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
	"foyer/store"
)

func mark(t *testing.T, db *store.DB, marks ...domain.ReadMark) []domain.ReadPointer {
	t.Helper()
	moved, err := db.MarkRead(t.Context(), marks)
	require.NoError(t, err)
	return moved
}

// K2, K21, K24: a receipt that was delivered late, or told of "delivered" by
// another device, won over a newer one; and comparing by time dropped valid ones.
// Here the higher sequence number wins, whenever it comes.
func TestK2OlderMarkNeverWins(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 5)
		moved := mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 4})
		require.Equal(t, []domain.ReadPointer{{RoomID: room, PersonID: "bob", Name: "BOB", UpTo: 4}}, moved)
		require.Empty(t, mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 2}))
		require.Empty(t, mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 4}))
		require.Empty(t, mark(t, db))
		c := view(t, db, room, "bob")
		require.EqualValues(t, 4, c.ReadUpTo)
		require.Equal(t, 1, c.Unread)
	})
}

// K5, K9, K17: summaries were trusted although a newer read existed, counts went
// wrong for months with no way to reset them. Here a count is derived from the
// pointer and the messages each time, also of deleted ones and of an old pointer.
func TestK5CountIsDerived(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 6)
		require.Equal(t, 6, view(t, db, room, "bob").Unread)
		for _, seq := range []int64{2, 5} {
			_, err := db.DeleteMessage(t.Context(), room, seq, "ann", false)
			require.NoError(t, err)
		}
		require.Equal(t, 4, view(t, db, room, "bob").Unread)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 2})
		require.Equal(t, 3, view(t, db, room, "bob").Unread)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 6})
		require.Zero(t, view(t, db, room, "bob").Unread)
	})
}

// K7: whether the boundary itself is read differed from place to place. The pointer is
// the last message that was read: it is not unread, the next one is.
func TestK7TheBoundaryIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 3)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 2})
		require.Equal(t, 1, view(t, db, room, "bob").Unread)
		for seq, has := range map[int64]bool{1: true, 2: true, 3: false} {
			readers, err := db.Readers(t.Context(), room, seq)
			require.NoError(t, err)
			require.Equal(t, has, len(readers) == 1, "message %d", seq)
		}
	})
}

// K15: "everybody has read it" was the least of all pointers, and one member who never
// looked blocked it for ever. Here each reader stands for themselves. K23: a mark that
// could not be ordered, for a message that nobody knows, blocked all that came after;
// here it ends at the newest message and blocks nothing.
func TestK23MarksBeyondTheEndBlockNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob", "bot")
		say(t, db, room, "ann", 2)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 1 << 40})
		require.EqualValues(t, 2, view(t, db, room, "bob").ReadUpTo)
		say(t, db, room, "ann", 1)
		require.Equal(t, 1, view(t, db, room, "bob").Unread, "what came later is unread")
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 3})
		readers, err := db.Readers(t.Context(), room, 3)
		require.NoError(t, err)
		require.Len(t, readers, 1, "the bot never looks, and keeps nobody from being a reader")
	})
}

// K6: "up to date" was remembered without the room, and other rooms were skipped.
func TestK6RoomsDoNotMix(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		one, two := newRoom(t, db, "bob"), newRoom(t, db, "bob")
		say(t, db, one, "ann", 3)
		say(t, db, two, "ann", 2)
		mark(t, db, domain.ReadMark{RoomID: one, PersonID: "bob", UpTo: 3})
		rooms, err := db.Rooms(t.Context(), "bob")
		require.NoError(t, err)
		require.Equal(t, []int{0, 2}, []int{rooms[0].Unread, rooms[1].Unread})
	})
}

// K8, K32: rooms that somebody had left went on inflating the total, and notices
// of joining and leaving counted as unread.
func TestK8OnlyCurrentMembersAndMessagesCount(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room, other := newRoom(t, db, "bob"), newRoom(t, db, "bob")
		say(t, db, room, "ann", 3)
		require.NoError(t, db.AddMember(t.Context(), other, "eve", "Eve"))
		require.NoError(t, db.RemoveMember(t.Context(), other, "eve"))
		require.NoError(t, db.RemoveMember(t.Context(), room, "bob"))
		rooms, err := db.Rooms(t.Context(), "bob")
		require.NoError(t, err)
		require.Len(t, rooms, 1)
		require.Equal(t, other, rooms[0].ID)
		require.Zero(t, rooms[0].Unread)
		// Whoever comes back begins at the end, and a mark from before is harmless.
		require.NoError(t, db.AddMember(t.Context(), room, "bob", "Bob"))
		require.Empty(t, mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 2}))
		require.Zero(t, view(t, db, room, "bob").Unread)
	})
}

// K10: unread was a difference of two counters and fell to -4. A pointer stops at
// the last message, so that the next one is unread.
func TestK10NeverBelowZero(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 2)
		moved := mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 1 << 60})
		require.EqualValues(t, 2, moved[0].UpTo)
		require.Zero(t, view(t, db, room, "bob").Unread)
		require.Empty(t, mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: -7}))
		say(t, db, room, "ann", 1)
		require.Equal(t, 1, view(t, db, room, "bob").Unread)
	})
}

func TestUnreadCountingStops(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", domain.MaxUnreadCounted+3)
		require.Equal(t, domain.MaxUnreadCounted, view(t, db, room, "bob").Unread)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 4})
		require.Equal(t, domain.MaxUnreadCounted-1, view(t, db, room, "bob").Unread)
	})
}

// K13: marking as unread raced with the reads that were still on their way, which
// marked it read again. An explicit mark-as-unread begins an epoch; marks from
// before it are void, however late they come.
func TestK13MarkUnreadBeginsAnEpoch(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 6)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 5})
		p, err := db.MarkUnread(t.Context(), room, "bob", 3)
		require.NoError(t, err)
		require.Equal(t, domain.ReadPointer{RoomID: room, PersonID: "bob", Name: "BOB", UpTo: 2, Epoch: 1}, p)
		require.Empty(t, mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 6}))
		c := view(t, db, room, "bob")
		require.Equal(t, []int64{2, 1, 4}, []int64{c.ReadUpTo, c.ReadEpoch, int64(c.Unread)})

		moved := mark(t, db, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 6},
			domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 4, Epoch: 1})
		require.Equal(t, []domain.ReadPointer{{RoomID: room, PersonID: "bob", Name: "BOB", UpTo: 4, Epoch: 1}}, moved)
		// What is unread already stays where it is, and reads on their way are void all the same.
		p, err = db.MarkUnread(t.Context(), room, "bob", 6)
		require.NoError(t, err)
		require.Equal(t, []int64{4, 2}, []int64{p.UpTo, p.Epoch})
		p, err = db.MarkUnread(t.Context(), room, "bob", -3)
		require.NoError(t, err)
		require.Zero(t, p.UpTo)

		_, err = db.MarkUnread(t.Context(), room, "eve", 1)
		require.ErrorIs(t, err, domain.ErrNotMember)
		_, err = db.MarkUnread(t.Context(), "nowhere", "eve", 1)
		require.ErrorIs(t, err, domain.ErrRoomNotFound)
	})
}

// K14: one duplicate key failed the rest of a bulk insert, and receipts were lost.
// A batch with every kind of bad mark moves all the good ones; again, it moves none.
func TestK14BadMarksFailNoOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob", "eve")
		say(t, db, room, "ann", 5)
		batch := []domain.ReadMark{
			{RoomID: "nowhere", PersonID: "bob", UpTo: 3},
			{RoomID: room, PersonID: "bob", UpTo: 3},
			{RoomID: room, PersonID: "stranger", UpTo: 3},
			{RoomID: room, PersonID: "zero\x00", UpTo: 3},
			{RoomID: room, PersonID: "bob", UpTo: 4},
			{RoomID: room, PersonID: "eve", UpTo: 2},
			{RoomID: room, PersonID: "bob", UpTo: 4},
			{RoomID: room, PersonID: "eve", UpTo: 5, Epoch: 7},
			{},
		}
		moved := mark(t, db, batch...)
		require.ElementsMatch(t, []domain.ReadPointer{
			{RoomID: room, PersonID: "bob", Name: "BOB", UpTo: 4}, {RoomID: room, PersonID: "eve", Name: "EVE", UpTo: 2},
		}, moved)
		require.Empty(t, mark(t, db, batch...))
	})
}

// K20: increments and reads interleaved and were lost or counted twice. While
// messages and marks come at once, on two handles, with members in every order,
// the end is what was said and read.
func TestK20ReadsAndMessagesAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		members := []domain.PersonID{"bob", "cem", "dee", "eve"}
		rooms := []domain.RoomID{newRoom(t, dbs[0], members...), newRoom(t, dbs[0], members...)}
		const each = 15
		var wg sync.WaitGroup
		for i, room := range rooms {
			wg.Go(func() {
				for range each {
					if _, err := dbs[i].AddMessage(t.Context(), domain.ChatMessage{RoomID: room, Sender: "ann", Text: "x"}); err != nil {
						t.Errorf("add: %v", err)
					}
				}
			})
		}
		for worker := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), 7))
				for upTo := range int64(each - 1) {
					var batch []domain.ReadMark
					for _, room := range rooms {
						for _, m := range members {
							batch = append(batch, domain.ReadMark{RoomID: room, PersonID: m, UpTo: upTo})
						}
					}
					r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
					if _, err := dbs[worker%2].MarkRead(t.Context(), batch); err != nil {
						t.Errorf("mark: %v", err)
					}
				}
			})
		}
		wg.Wait()
		for _, room := range rooms {
			for _, m := range members {
				mark(t, dbs[0], domain.ReadMark{RoomID: room, PersonID: m, UpTo: each - 2})
				c := view(t, dbs[1], room, m)
				require.EqualValues(t, each-2, c.ReadUpTo)
				require.Equal(t, 2, c.Unread)
			}
		}
	})
}

// K22: a pointer was advanced by a message that its owner sent, past ones that
// they had not read. Only a mark moves it; one's own messages are just not unread.
func TestK22SendingReadsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 2)
		say(t, db, room, "bob", 1)
		say(t, db, room, "ann", 1)
		c := view(t, db, room, "bob")
		require.Zero(t, c.ReadUpTo)
		require.Equal(t, 3, c.Unread)
		require.Equal(t, 1, view(t, db, room, "ann").Unread)
	})
}

// K30: a new member begins at the end: nothing from before is unread to them, and
// they are not shown among the readers of what was said before they came.
func TestK30NewMemberBeginsAtTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		room := newRoom(t, db, "bob")
		say(t, db, room, "ann", 3)
		require.NoError(t, db.AddMember(t.Context(), room, "eve", "Eve"))
		require.Zero(t, view(t, db, room, "eve").Unread)
		say(t, db, room, "ann", 1)
		mark(t, db, domain.ReadMark{RoomID: room, PersonID: "eve", UpTo: 4}, domain.ReadMark{RoomID: room, PersonID: "bob", UpTo: 3})
		readers := func(seq int64) (persons []domain.PersonID) {
			found, err := db.Readers(t.Context(), room, seq)
			require.NoError(t, err)
			for _, p := range found {
				persons = append(persons, p.PersonID)
			}
			return persons
		}
		require.Equal(t, []domain.PersonID{"bob"}, readers(3))
		require.Equal(t, []domain.PersonID{"eve"}, readers(4))
		_, err := db.Readers(t.Context(), room, 5)
		require.ErrorIs(t, err, domain.ErrMessageNotFound)
	})
}

// Within an epoch a pointer only goes forward, and any order of delivery, with any
// repeats and in any batches, ends at the same place: the highest mark.
func TestMarksInAnyOrderAgree(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		rapid.Check(t, func(rt *rapid.T) {
			members := []domain.PersonID{"bob", "cem"}
			room := newRoom(t, db, members...)
			last := rapid.Int64Range(1, 5).Draw(rt, "messages")
			say(t, db, room, "ann", int(last))
			marks := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) domain.ReadMark {
				return domain.ReadMark{
					RoomID: room, PersonID: rapid.SampledFrom(members).Draw(rt, "person"),
					UpTo: rapid.Int64Range(-1, 7).Draw(rt, "up to"), Epoch: rapid.Int64Range(0, 1).Draw(rt, "epoch"),
				}
			}), 1, 8).Draw(rt, "marks")
			want := map[domain.PersonID]int64{}
			for _, m := range marks {
				if m.Epoch == 0 {
					want[m.PersonID] = max(want[m.PersonID], min(m.UpTo, last))
				}
			}
			delivered := rapid.Permutation(slices.Concat(marks, marks)).Draw(rt, "delivered")
			at := map[domain.PersonID]int64{}
			for batch := range slices.Chunk(delivered, rapid.IntRange(1, 5).Draw(rt, "batch")) {
				for _, p := range mark(t, db, batch...) {
					require.Greater(rt, p.UpTo, at[p.PersonID])
					at[p.PersonID] = p.UpTo
				}
			}
			for _, m := range members {
				require.Equal(rt, want[m], at[m])
				require.Equal(rt, want[m], view(t, db, room, m).ReadUpTo)
			}
		})
	})
}
