package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
	"foyer/store"
)

func TestBookRejectsWithConflicts(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 4)
		b := record(t, db, newBooking(show.ID, "A-1-2", "A-1-1"))
		require.Equal(t, []domain.SeatID{"A-1-1", "A-1-2"}, b.Seats)
		done := book(t, db, b)
		require.NoError(t, done.Err)
		require.False(t, done.Repeated)
		require.Equal(t, domain.BookingConfirmed, done.Booking.Status)
		require.NotNil(t, done.Booking.DecidedAt)

		second := record(t, db, newBooking(show.ID, "A-1-2", "A-1-3"))
		lost := book(t, db, second)
		require.NoError(t, lost.Err)
		require.False(t, lost.Repeated)
		require.Equal(t, domain.BookingRejected, lost.Booking.Status)
		require.Equal(t, domain.ReasonSeatUnavailable, lost.Booking.Reason)
		require.Equal(t, []domain.SeatID{"A-1-2"}, lost.Booking.Conflicts)
		buyer := []domain.SoldSeat{{SeatID: "A-1-2", BookingID: b.BookingID, RequestID: b.RequestID}}
		require.Equal(t, buyer, lost.SoldBy)
		again := book(t, db, second)
		require.True(t, again.Repeated)
		require.Equal(t, lost.Booking, again.Booking)
		require.Equal(t, buyer, again.SoldBy)
		require.Equal(t, 2, sold(t, db, show.ID))
		// The seat that the loser did get for a moment is free again.
		require.Equal(t, domain.BookingConfirmed, book(t, db, record(t, db, newBooking(show.ID, "A-1-3"))).Booking.Status)
	})
}

// H6, D7: a worker died between commit and acknowledgement, and the command came
// again, to another process. It is absorbed; the number sold does not drift.
func TestH6RepeatAfterCommit(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 1, 4)
		b := record(t, dbs[0], newBooking(show.ID, "A-1-1", "A-1-2"))
		first := book(t, dbs[0], b)
		for i := range 4 {
			again := book(t, dbs[i%2], b)
			require.NoError(t, again.Err)
			require.True(t, again.Repeated)
			require.Equal(t, first.Booking, again.Booking)
			require.Equal(t, 2, sold(t, dbs[1], show.ID))
		}
	})
}

func TestBookSameCommandTwiceInOneGroup(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 4)
		b := record(t, db, newBooking(show.ID, "A-1-1"))
		outcomes, err := db.Book(t.Context(), []domain.Booking{b, b})
		require.NoError(t, err)
		require.False(t, outcomes[0].Repeated)
		require.True(t, outcomes[1].Repeated)
		require.Equal(t, domain.BookingConfirmed, outcomes[0].Booking.Status)
		require.Equal(t, outcomes[0].Booking, outcomes[1].Booking)
	})
}

// SQL was restored from a backup of before the booking was recorded. The command
// has all that is needed.
func TestBookRecordsWhatIsMissing(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 4)
		person := domain.PersonID(domain.NewID())
		one, two := newBooking(show.ID, "A-1-1"), newBooking(show.ID, "A-1-2")
		one.PersonID, two.PersonID = person, person
		outcomes, err := db.Book(t.Context(), []domain.Booking{one, two})
		require.NoError(t, err)
		for i, o := range outcomes {
			require.NoError(t, o.Err)
			require.False(t, o.Repeated)
			require.Equal(t, domain.BookingConfirmed, o.Booking.Status)
			stored, err := db.Booking(t.Context(), []domain.Booking{one, two}[i].BookingID)
			require.NoError(t, err)
			require.Equal(t, stored, o.Booking)
		}
	})
}

// One bad command fails by itself, whatever is wrong with it.
func TestBookBadCommandsFailAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 10)
		used := record(t, db, newBooking(show.ID, "A-1-1"))
		require.NoError(t, book(t, db, used).Err)

		zero, empty := newBooking(show.ID, "A-1-2\x00"), newBooking(show.ID)
		nowhere := newBooking("t-nowhere", "A-1-2")
		stolenHold := newBooking(show.ID, "A-1-2")
		stolenHold.HoldID = used.HoldID
		reused := record(t, db, newBooking(show.ID, "A-1-2"))
		reused.CommandID = used.CommandID
		bad := []domain.Booking{zero, empty, nowhere, stolenHold, reused}
		good := []domain.Booking{record(t, db, newBooking(show.ID, "A-1-3")), record(t, db, newBooking(show.ID, "A-1-4"))}
		commands := slices.Concat(good[:1], bad, good[1:])

		outcomes, err := db.Book(t.Context(), commands)
		require.NoError(t, err)
		for i, o := range outcomes {
			if i == 0 || i == len(commands)-1 {
				require.NoError(t, o.Err)
				require.Equal(t, domain.BookingConfirmed, o.Booking.Status)
				continue
			}
			require.Error(t, o.Err, "command %d", i)
			require.Equal(t, commands[i].BookingID, o.Booking.BookingID)
		}
		require.ErrorIs(t, outcomes[3].Err, domain.ErrShowNotFound)
		require.ErrorIs(t, outcomes[4].Err, domain.ErrHoldNotFound)
		require.ErrorIs(t, outcomes[5].Err, domain.ErrIdempotencyMismatch)
		require.Equal(t, 3, sold(t, db, show.ID))
		pending, err := db.Booking(t.Context(), reused.BookingID)
		require.NoError(t, err)
		require.Equal(t, domain.BookingPending, pending.Status)
	})
}

// A2, A7, A8, A12: a last ticket was sold twice where a check stood apart from the
// taking, where a shortcut went without a lock, where two people took the same
// instant and where two instances counted for themselves. Here 80 buyers on two
// handles want 20 seats: each seat goes once and every loser is told to whom.
func TestA7EightyBuyersTwentySeats(t *testing.T) {
	for _, size := range []int{1, 8} {
		t.Run(fmt.Sprintf("groups of %d", size), func(t *testing.T) {
			onBoth(t, func(t *testing.T, open func() *store.DB) {
				dbs := []*store.DB{open(), open()}
				show := newShow(t, dbs[0], 2, 10)
				var commands []domain.Booking
				for i := range 80 {
					commands = append(commands, record(t, dbs[i%2], newBooking(show.ID, show.Seating.AllSeats()[i%20])))
				}
				outcomes := bookAtOnce(t, dbs, slices.Collect(slices.Chunk(commands, size)))
				checkSold(t, dbs[0], show.ID, outcomes)
				require.Equal(t, 20, sold(t, dbs[1], show.ID))
			})
		})
	}
}

// A11: one or two seats a booking worked, three did not. And seats wanted in
// every order by groups that overlap: the orders of a deadlock. All are decided.
func TestA11OverlappingGroups(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 3, 10)
		all := show.Seating.AllSeats()
		r := rand.New(rand.NewPCG(1, 2))
		var commands []domain.Booking
		for i := range 120 {
			seats := make([]domain.SeatID, 1+i%6)
			for j, k := range r.Perm(len(all))[:len(seats)] {
				seats[j] = all[k]
			}
			commands = append(commands, record(t, dbs[i%2], newBooking(show.ID, seats...)))
		}
		outcomes := bookAtOnce(t, dbs, slices.Collect(slices.Chunk(commands, 10)))
		checkSold(t, dbs[0], show.ID, outcomes)
		// Each command again, in other groups: nothing changes.
		r.Shuffle(len(commands), func(i, j int) { commands[i], commands[j] = commands[j], commands[i] })
		for _, o := range bookAtOnce(t, dbs, slices.Collect(slices.Chunk(commands, 17))) {
			require.True(t, o.Repeated)
			require.Equal(t, outcomes[o.Booking.BookingID].Booking, o.Booking)
		}
		checkSold(t, dbs[0], show.ID, outcomes)
	})
}

// bookAtOnce sends all groups at the same time, in turn to the handles.
func bookAtOnce(t *testing.T, dbs []*store.DB, groups [][]domain.Booking) map[domain.BookingID]store.BookingOutcome {
	t.Helper()
	parts := make([][]store.BookingOutcome, len(groups))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, group := range groups {
		wg.Go(func() {
			<-start
			var err error
			if parts[i], err = dbs[i%len(dbs)].Book(t.Context(), group); err != nil {
				t.Errorf("group %d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
	outcomes := map[domain.BookingID]store.BookingOutcome{}
	for _, part := range parts {
		for _, o := range part {
			require.NoError(t, o.Err)
			outcomes[o.Booking.BookingID] = o
		}
	}
	return outcomes
}

// checkSold compares the rows of sold seats with what was answered: a confirmed
// booking has all its seats, a rejected one has none and names who does.
func checkSold(t *testing.T, db *store.DB, show domain.ShowID, outcomes map[domain.BookingID]store.BookingOutcome) {
	t.Helper()
	rows, err := db.SoldSeats(t.Context(), show)
	require.NoError(t, err)
	owner := map[domain.SeatID]domain.BookingID{}
	for _, row := range rows {
		require.Empty(t, owner[row.SeatID])
		owner[row.SeatID] = row.BookingID
	}
	confirmed := 0
	for id, o := range outcomes {
		switch o.Booking.Status {
		case domain.BookingConfirmed:
			confirmed += len(o.Booking.Seats)
			for _, seat := range o.Booking.Seats {
				require.Equal(t, id, owner[seat])
			}
		case domain.BookingRejected:
			require.NotEmpty(t, o.Booking.Conflicts)
			require.Len(t, o.SoldBy, len(o.Booking.Conflicts))
			for _, by := range o.SoldBy {
				require.Equal(t, by.BookingID, owner[by.SeatID])
				require.Equal(t, outcomes[by.BookingID].Booking.RequestID, by.RequestID)
			}
		default:
			t.Fatalf("booking %s is %s", id, o.Booking.Status)
		}
	}
	require.Len(t, rows, confirmed)
}

// A group is decided as if its commands came one after the other, with
// cancellations in between; the model does just that. No seat is there twice, and
// the number sold is the number of rows.
func TestBookAgreesWithModel(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		rapid.Check(t, func(rt *rapid.T) {
			show := newShow(t, db, 1, 6)
			all := show.Seating.AllSeats()
			owner := map[domain.SeatID]domain.BookingID{}
			var known []domain.Booking
			for range rapid.IntRange(1, 3).Draw(rt, "groups") {
				var group []domain.Booking
				for range rapid.IntRange(1, 6).Draw(rt, "size") {
					if len(known) > 0 && rapid.IntRange(0, 4).Draw(rt, "repeat") == 0 {
						group = append(group, rapid.SampledFrom(known).Draw(rt, "which"))
						continue
					}
					seats := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID).Draw(rt, "seats")
					group = append(group, newBooking(show.ID, seats...))
					known = append(known, group[len(group)-1])
				}
				outcomes, err := db.Book(t.Context(), group)
				require.NoError(rt, err)
				decideByModel(rt, group, outcomes, owner, known)
				require.Equal(rt, len(owner), sold(t, db, show.ID))
				cancelSome(rt, db, outcomes, owner)
				require.Equal(rt, len(owner), sold(t, db, show.ID))
			}
		})
	})
}

func decideByModel(rt *rapid.T, group []domain.Booking, outcomes []store.BookingOutcome, owner map[domain.SeatID]domain.BookingID, known []domain.Booking) {
	for i, b := range group {
		o := outcomes[i]
		require.NoError(rt, o.Err)
		if o.Repeated {
			require.Contains(rt, known, b)
			continue
		}
		var conflicts []domain.SeatID
		for _, seat := range slices.Sorted(slices.Values(b.Seats)) {
			if owner[seat] != "" {
				conflicts = append(conflicts, seat)
			}
		}
		require.Equal(rt, conflicts, o.Booking.Conflicts)
		require.Equal(rt, len(conflicts) == 0, o.Booking.Status == domain.BookingConfirmed)
		for _, seat := range b.Seats {
			if len(conflicts) == 0 {
				owner[seat] = b.BookingID
			}
		}
	}
}

func cancelSome(rt *rapid.T, db *store.DB, outcomes []store.BookingOutcome, owner map[domain.SeatID]domain.BookingID) {
	for _, o := range outcomes {
		if o.Booking.Status != domain.BookingConfirmed || !rapid.Bool().Draw(rt, "cancel") {
			continue
		}
		_, err := db.CancelBooking(rt.Context(), "cancel-"+o.Booking.CommandID, o.Booking.BookingID)
		require.NoError(rt, err)
		for _, seat := range o.Booking.Seats {
			if owner[seat] == o.Booking.BookingID {
				delete(owner, seat)
			}
		}
	}
}

// Booking and cancelling the same seats at once, as at the end of a sale: whatever
// the interleaving, rows and bookings agree.
func TestBookAndCancelRace(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 1, 6)
		all := show.Seating.AllSeats()
		var wg sync.WaitGroup
		for worker := range 6 {
			wg.Go(func() {
				db := dbs[worker%2]
				for round := range 10 {
					seats := []domain.SeatID{all[(worker+round)%6], all[(worker+round+3)%6]}
					outcomes, err := db.Book(t.Context(), []domain.Booking{newBooking(show.ID, seats...)})
					if err != nil || outcomes[0].Err != nil {
						t.Errorf("book: %v", errors.Join(err, outcomes[0].Err))
						return
					}
					if b := outcomes[0].Booking; b.Status == domain.BookingConfirmed && round < 9 {
						if _, err := db.CancelBooking(t.Context(), "cancel-"+b.CommandID, b.BookingID); err != nil {
							t.Errorf("cancel: %v", err)
						}
					}
				}
			})
		}
		wg.Wait()
		rows, err := dbs[0].SoldSeats(t.Context(), show.ID)
		require.NoError(t, err)
		for _, row := range rows {
			b, err := dbs[0].Booking(t.Context(), row.BookingID)
			require.NoError(t, err)
			require.Equal(t, domain.BookingConfirmed, b.Status)
			require.Contains(t, b.Seats, row.SeatID)
		}
	})
}

// A caller that gives up leaves no transaction behind: the next one is served.
func TestBookCancelledContext(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 2)
		b := record(t, db, newBooking(show.ID, "A-1-1"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			_, err := db.Book(ctx, []domain.Booking{b})
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Equal(t, domain.BookingConfirmed, book(t, db, b).Booking.Status)
	})
}

// Two workers have the same commands, none of them recorded, in opposite orders.
// Each command has its effect once, whoever was first.
func TestBookUnrecordedOnTwoHandles(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 1, 12)
		var commands []domain.Booking
		for _, seat := range show.Seating.AllSeats() {
			commands = append(commands, newBooking(show.ID, seat))
		}
		reversed := slices.Clone(commands)
		slices.Reverse(reversed)
		answers := make([][]store.BookingOutcome, 2)
		var wg sync.WaitGroup
		for i, group := range [][]domain.Booking{commands, reversed} {
			wg.Go(func() {
				var err error
				if answers[i], err = dbs[i].Book(t.Context(), group); err != nil {
					t.Errorf("book: %v", err)
				}
			})
		}
		wg.Wait()
		effects := map[domain.BookingID]int{}
		for _, o := range slices.Concat(answers...) {
			require.NoError(t, o.Err)
			require.Equal(t, domain.BookingConfirmed, o.Booking.Status)
			if !o.Repeated {
				effects[o.Booking.BookingID]++
			}
		}
		require.Len(t, effects, len(commands))
		for _, n := range effects {
			require.Equal(t, 1, n)
		}
		require.Equal(t, len(commands), sold(t, dbs[0], show.ID))
	})
}
