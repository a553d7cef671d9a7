package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A1, A2, A7: many carts at once on a nearly full show sold 12 of 10, and two people saw
// the same seat as theirs. 80 buyers want one of 20 seats each: exactly 20 get one.
func TestSeatsAreTakenOnceUnderARush(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const buyers, seats = 80, 20
		w := load(t, rdb, func(s *domain.Show) {
			s.Queue.MaxActive = buyers
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: seats}
		})
		people := w.names("p", buyers)
		w.enter(people...)
		var owners [seats]atomic.Int64
		var wg sync.WaitGroup
		for i, request := range people {
			wg.Go(func() {
				seat := i % seats
				_, err := w.hold(request, domain.HoldID("h-"+request), domain.NewSeatID("A", 1, seat+1))
				var conflict *domain.SeatsUnavailableError
				switch {
				case err == nil:
					owners[seat].Add(1)
				case !errors.As(err, &conflict) || len(conflict.Conflicts) != 1:
					t.Errorf("loser was told %v", err)
				}
			})
		}
		wg.Wait()
		for i := range owners {
			require.EqualValues(t, 1, owners[i].Load())
		}
		stats := w.stats()
		require.EqualValues(t, seats, stats.Held)
		require.Equal(t, domain.AllHeld, stats.Availability())
	})
}

// A3, G1: the limit was read before the lock and compared after. One person holds from
// many tabs at once and never has more than the limit, over all categories together.
func TestLimitHoldsUnderARush(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) {
			s.Seating.Sections = []domain.Section{{Name: "A", Rows: 1, SeatsPerRow: 10}, {Name: "B", Rows: 1, SeatsPerRow: 10}}
		})
		w.enter("me")
		var got atomic.Int64
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				seat := domain.NewSeatID([]string{"A", "B"}[i%2], 1, i/2+1)
				_, err := w.hold("me", domain.HoldID(fmt.Sprint("h", i)), seat)
				if err == nil {
					got.Add(1)
				} else if !isA[*domain.LimitError](err) {
					t.Errorf("refused with %v", err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, w.show.Seating.SeatLimit, got.Load())
	})
}

// G3: the limit was compared with the wrong total. It counts what the person holds now
// and has bought at this show: not what ran out, was released, or others have.
func TestLimitCountsOnesOwnLiveSeats(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("me", "you")
		w.mustHold("you", "y1", "A-2-1", "A-2-2", "A-2-3", "A-2-4")
		w.mustHold("me", "h1", "A-1-1", "A-1-2", "A-1-3")
		var limit *domain.LimitError
		_, err := w.hold("me", "h2", "A-1-4", "A-1-5")
		require.ErrorAs(t, err, &limit)
		require.Equal(t, domain.LimitError{Limit: 4, Used: 3}, *limit)
		_, _, err = w.ReleaseHold(t.Context(), w.show.ID, "me", "h1")
		require.NoError(t, err)
		w.mustHold("me", "h3", "A-1-1", "A-1-2")
		w.travel(time.Minute) // runs out
		require.True(t, w.buy("me", "b1", "A-1-3", "A-1-4", "A-1-5").Done)
		w.enter("me") // bought seats count at the next visit too
		_, err = w.hold("me", "h4", "A-1-1", "A-1-2")
		require.ErrorAs(t, err, &limit)
		require.Equal(t, 3, limit.Used)
		w.mustHold("me", "h5", "A-1-1")
	})
}

// A5, A6: a status was checked before the lock. A seat that is sold between looking and
// holding is refused, and a sale beats a hold that is there already.
func TestSoldBeatsHeld(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me", "you")
		w.mustHold("me", "h1", "A-1-1", "A-1-2")
		settled, err := w.CompleteBooking(t.Context(), w.booking("far", "gone", "b1", "A-1-2"))
		require.NoError(t, err)
		require.ElementsMatch(t, []domain.Seat{{ID: "A-1-1", State: domain.SeatFree}, {ID: "A-1-2", State: domain.SeatSold}}, settled.Seats)
		_, err = w.begin("me", "h1", "b2")
		require.ErrorIs(t, err, domain.ErrHoldExpired, "a hold that lost a seat is void as a whole")
		_, err = w.hold("you", "h2", "A-1-1", "A-1-2")
		var conflict *domain.SeatsUnavailableError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, []domain.SeatID{"A-1-2"}, conflict.Conflicts)
		w.mustHold("you", "h3", "A-1-1")
	})
}

// A11: one or two seats worked and three failed. All sizes up to the limit do.
func TestEverySizeUpToTheLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const limit = 100
		w := load(t, rdb, func(s *domain.Show) {
			s.Seating.SeatLimit = limit
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: limit}
		})
		w.enter("me")
		all := w.show.Seating.AllSeats()
		for _, n := range []int{1, 2, 3, 4, 7, 50, 99, limit} {
			hold := w.mustHold("me", domain.HoldID(fmt.Sprint("h", n)), all[:n]...)
			require.Equal(t, all[:n], hold.Seats)
			require.EqualValues(t, n, w.stats().Held)
			_, _, err := w.ReleaseHold(t.Context(), w.show.ID, "me", hold.HoldID)
			require.NoError(t, err)
		}
		require.Equal(t, limit, len(w.buy("me", "b1", all...).Seats))
		require.EqualValues(t, limit, w.stats().Sold)
	})
}

// B2: a hold ran out, its seats went to another, and the old page could still finish.
func TestARunOutHoldCannotBeBooked(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("slow", "quick")
		w.mustHold("slow", "h1", "A-1-1", "A-1-2")
		w.travel(time.Minute)
		w.mustHold("quick", "h2", "A-1-1")
		_, err := w.begin("slow", "h1", "b1")
		require.ErrorIs(t, err, domain.ErrHoldExpired)
		_, err = w.ExtendHold(t.Context(), w.show.ID, "slow", "h1")
		require.ErrorIs(t, err, domain.ErrHoldExpired)
		begun, err := w.begin("quick", "h2", "b2")
		require.NoError(t, err)
		require.Equal(t, domain.BookingID("b2"), begun)
	})
}

// B3, B5: people left full carts and the show looked sold out for ever; "held" meant
// one thing to the map and another to the limit. No sweep runs here, and map, limit,
// availability, a new hold and release all agree.
func TestRunOutHoldsAreFreeEverywhereWithoutASweep(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("me", "you")
		held := w.mustHold("me", "h1", "A-1-1", "A-1-2", "A-1-3", "A-1-4")
		w.travel(time.Minute)
		require.Empty(t, w.seatStates(0, "me"), "map")
		require.Len(t, w.seatStates(held.Version, "me"), 4, "a delta tells of it although no version was counted")
		require.EqualValues(t, 0, w.stats().Held, "availability")
		holds, err := w.Holds(t.Context(), w.show.ID, "me")
		require.NoError(t, err)
		require.Empty(t, holds)
		released, _, err := w.ReleaseHold(t.Context(), w.show.ID, "me", "h1")
		require.NoError(t, err)
		require.Empty(t, released)
		w.mustHold("me", "h2", "A-1-5", "A-2-1", "A-2-2", "A-2-3") // the limit
		before := w.stats().SeatVersion
		taken := w.mustHold("you", "h3", "A-1-1")
		require.Equal(t, before+2, taken.Version, "freeing the old hold is a change of its own, so nobody misses it")
		require.Equal(t, map[domain.SeatID]string{"A-1-1": "HELD", "A-1-2": "FREE", "A-1-3": "FREE", "A-1-4": "FREE"}, w.seatStates(before, ""))
		require.EqualValues(t, 5, w.stats().Held)
	})
}

// Sweeping tells everybody what was true before, bounded, and forgets in the end.
func TestSweepingTidiesUp(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 80_000 })
		w.enter("me")
		w.mustHold("me", "h1", "A-1-1")
		w.mustHold("me", "h2", "A-1-2")
		w.travel(time.Minute)
		freed, version, more, err := w.SweepHolds(t.Context(), w.show.ID, 1)
		require.NoError(t, err)
		require.Len(t, freed, 1)
		require.True(t, more)
		rest, later, more, err := w.SweepHolds(t.Context(), w.show.ID, 0)
		require.NoError(t, err)
		require.Len(t, rest, 1)
		require.Greater(t, later, version)
		require.False(t, more)
		_, err = w.begin("me", "h1", "b1")
		require.ErrorIs(t, err, domain.ErrHoldExpired, "its owner is told what happened")
		w.travel(2 * time.Hour)
		_, _, _, err = w.SweepHolds(t.Context(), w.show.ID, 0)
		require.NoError(t, err)
		_, err = w.begin("me", "h1", "b1")
		require.ErrorIs(t, err, domain.ErrHoldNotFound)
		for _, key := range []string{"holds", "hold-deadlines", "owners", "seats"} {
			n, err := rdb.Exists(t.Context(), key+":{"+string(w.show.ID)+"}").Result()
			require.NoError(t, err)
			require.Zero(t, n, "%s is left over", key)
		}
	})
}

// B7: going back from 10 to 5 seats, one's own old hold was in the way and the clock
// began anew. Swapping is one step that keeps deadline and ceiling.
func TestSwappingOnesOwnSelection(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me", "you")
		first := w.mustHold("me", "h1", "A-1-1", "A-1-2", "A-1-3", "A-1-4")
		w.travel(20 * time.Second)
		swapped, err := w.SwapHold(t.Context(), w.show.ID, "me", "h1", []domain.SeatID{"A-1-3", "A-1-4", "A-1-5"})
		require.NoError(t, err)
		require.Equal(t, first.ExpiresAt, swapped.ExpiresAt)
		require.Equal(t, first.CeilingAt, swapped.CeilingAt)
		require.Equal(t, first.Version+1, swapped.Version)
		require.Equal(t, map[domain.SeatID]string{"A-1-3": "HELD h1", "A-1-4": "HELD h1", "A-1-5": "HELD h1"}, w.seatStates(0, "me"))
		require.Equal(t, map[domain.SeatID]string{"A-1-1": "FREE", "A-1-2": "FREE", "A-1-5": "HELD"}, w.seatStates(first.Version, "you"))
		w.mustHold("you", "h2", "A-1-1")
		_, err = w.SwapHold(t.Context(), w.show.ID, "me", "h1", []domain.SeatID{"A-1-1", "A-1-2"})
		require.True(t, isA[*domain.SeatsUnavailableError](err))
		require.EqualValues(t, 4, w.stats().Held, "a failed swap changes nothing")
	})
}

// Extending gives the full time again, never beyond the ceiling, and never shortens.
func TestExtendingStopsAtTheCeiling(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("me")
		hold := w.mustHold("me", "h1", "A-1-1")
		require.Equal(t, w.show.Seating.HoldCeiling(), hold.CeilingAt.Sub(hold.ServerTime))
		for range 5 {
			w.travel(30 * time.Second)
			extended, err := w.ExtendHold(t.Context(), w.show.ID, "me", "h1")
			if !extended.ServerTime.Before(hold.CeilingAt) || err != nil {
				require.ErrorIs(t, err, domain.ErrHoldExpired)
				break
			}
			want := extended.ServerTime.Add(w.show.Seating.HoldTime())
			if want.After(hold.CeilingAt) {
				want = hold.CeilingAt
			}
			require.Equal(t, want, extended.ExpiresAt)
			require.Equal(t, "HELD h1", w.seatStates(0, "me")["A-1-1"])
		}
		require.Empty(t, w.seatStates(0, "me"), "the ceiling has passed")
	})
}

// B13: a rule held for the cart and not for extending or ordering. One judge for all.
func TestOneRuleForHoldExtendAndBook(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		for name, edit := range map[string]func(*domain.Show){"closed": closing, "not open": reopening, "session over": nil} {
			w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 30 })
			w.enter("me")
			w.mustHold("me", "h1", "A-1-1")
			if edit != nil {
				w.change(edit)
			} else {
				w.travel(30 * time.Second)
			}
			_, hold := w.hold("me", "h2", "A-1-2")
			_, extend := w.ExtendHold(t.Context(), w.show.ID, "me", "h1")
			_, swap := w.SwapHold(t.Context(), w.show.ID, "me", "h1", []domain.SeatID{"A-1-3"})
			_, book := w.begin("me", "h1", "b1")
			require.Error(t, hold, name)
			require.Equal(t, hold, extend, name)
			require.Equal(t, hold, swap, name)
			require.Equal(t, hold, book, name)
			_, _, err := w.ReleaseHold(t.Context(), w.show.ID, "me", "h1")
			require.NoError(t, err, "letting go is always possible")
		}
	})
}

// B18: a seat offered later kept the clock of long ago. The clock starts at the hold.
func TestTheClockStartsAtTheHold(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.enter("me", "you")
		w.mustHold("you", "h1", "A-1-1")
		w.travel(50 * time.Minute)
		hold := w.mustHold("me", "h2", "A-1-1")
		require.Equal(t, w.show.Seating.HoldTime(), hold.ExpiresAt.Sub(hold.ServerTime))
		again := w.mustHold("me", "h2", "A-1-1")
		require.Equal(t, hold.ExpiresAt, again.ExpiresAt, "the same call sent twice is one hold")
	})
}

// E4: of 160 simultaneous best-available requests 84 % were refused because all were
// given the same block. With alternatives all succeed while blocks remain.
func TestBestAvailableSpreadsARush(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		people := fewer(t, 160)
		w := load(t, rdb, func(s *domain.Show) {
			s.Queue.MaxActive = people
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 40, SeatsPerRow: 20}
		})
		crowd := w.names("p", people)
		w.enter(crowd...)
		var refused atomic.Int64
		var wg sync.WaitGroup
		for i, request := range crowd {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for range 10 { // as the API does: again with a fresh map
					changes, err := w.Seats(t.Context(), w.show.ID, 0, "")
					if err != nil {
						t.Error(err)
					}
					taken := map[domain.SeatID]bool{}
					for _, seat := range changes.Seats {
						taken[seat.ID] = true
					}
					_, err = w.Hold(t.Context(), HoldRequest{ShowID: w.show.ID, RequestID: request,
						HoldID: domain.HoldID("h-" + request), Candidates: w.show.Seating.BestBlocks(3, "A", taken, r)})
					if err == nil {
						return
					}
					if !errors.Is(err, domain.ErrNoBlock) {
						t.Errorf("refused with %v", err)
					}
				}
				refused.Add(1)
			})
		}
		wg.Wait()
		require.Zero(t, refused.Load())
		require.EqualValues(t, 3*people, w.stats().Held)
	})
}
