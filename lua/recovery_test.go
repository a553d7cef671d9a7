package lua

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

func recoveryOutcomes() []outcomeCase {
	return []outcomeCase{
		{"show_audit", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			audit, err := w.Audit(ctx, w.show.ID)
			return []any{audit.Seats["A-1-1"].HoldID, audit.Holds["h2"].State, audit.Inside, audit.Fields["held"]}, err
		})},
		{"show_reconcile", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			sold := domain.SoldSeat{SeatID: "A-1-1", BookingID: "b7", RequestID: "r7"}
			return w.Reconcile(ctx, w.show.ID, 5, []Correction{Sell(sold, "h7"), Recount()})
		})},
		missing("show_audit", func(ctx context.Context, w *world) error { _, err := w.Audit(ctx, w.show.ID); return err }),
		missing("show_reconcile", func(ctx context.Context, w *world) error { _, err := w.Reconcile(ctx, w.show.ID, 1, nil); return err }),
	}
}

func TestAuditTellsWhatIsThere(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("ann", "bob")
		w.join("cid")
		w.buy("ann", "b1", "A-1-1", "A-1-2")
		w.mustHold("bob", "h2", "A-2-1")
		w.mustHold("bob", "h3", "A-2-2")
		_, err := w.begin("bob", "h3", "b3")
		require.NoError(t, err)
		a, err := w.Audit(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.Equal(t, int64(1), a.Waiting)
		require.Equal(t, int64(1), a.Present)
		require.Equal(t, []int64{1, 0, 1}, []int64{a.Inside, a.Over, a.Claimed}, "a confirmed booking ends the session")
		require.Equal(t, []int64{3, 1, 2, 2, 4, 10}, []int64{
			a.Fields["joined"], a.Fields["ended"], a.Fields["sold"], a.Fields["held"], a.Fields["seat_limit"], a.Fields["capacity"],
		})
		require.Empty(t, a.WaitingInside)
		require.Empty(t, a.ClaimedOutside)
		require.Equal(t, AuditedSeat{Kind: SeatKindSold, BookingID: "b1", Value: "s:b1"}, a.Seats["A-1-1"])
		require.Equal(t, domain.HoldID("h2"), a.Seats["A-2-1"].HoldID)
		require.Equal(t, domain.BookingID("b3"), a.Seats["A-2-2"].BookingID)
		require.Equal(t, domain.RequestID("bob"), a.Seats["A-2-2"].RequestID)
		require.Equal(t, HoldPlain, a.Holds["h2"].State)
		require.Equal(t, []domain.SeatID{"A-2-1"}, a.Holds["h2"].Seats)
		require.WithinDuration(t, a.At.Add(time.Minute), a.Holds["h2"].Deadline, 5*time.Second)
		require.Equal(t, domain.BookingID("b3"), a.Holds["h3"].BookingID)
		require.WithinDuration(t, a.At, a.Holds["h3"].Begun, 5*time.Second)
		require.Equal(t, []domain.HoldID{"h2"}, a.Deadlines)
		require.Equal(t, []domain.HoldID{"h3"}, a.Begun)
		require.Equal(t, map[domain.RequestID][]domain.HoldID{"bob": {"h2", "h3"}}, a.Owners)
		require.Equal(t, map[domain.RequestID]int64{"ann": 2}, a.Bought)
		require.Equal(t, map[domain.BookingID]string{"b1": "C"}, a.Settled)
	})
}

// Redis came back from an old file: SQL has sold a seat that is held here, and has
// taken another sale back. People keep their places; the counts are right again.
func TestReconcilingBringsSoldSeatsAndKeepsPeople(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("ann", "bob")
		w.buy("ann", "b1", "A-1-1")
		w.enter("eve")
		w.join("cid")
		w.mustHold("bob", "h2", "A-2-1", "A-2-2")
		before := w.stats()

		done, err := w.Reconcile(t.Context(), w.show.ID, 9, []Correction{
			Sell(domain.SoldSeat{SeatID: "A-2-1", BookingID: "b2", RequestID: "dan"}, "h-lost"),
			Unsell(domain.SoldSeat{SeatID: "A-1-1", BookingID: "b1", RequestID: "ann"}, true),
			Unsell(domain.SoldSeat{SeatID: "A-2-2", BookingID: "b1", RequestID: "ann"}, true), // is another's
		})
		require.NoError(t, err)
		require.Equal(t, int64(9), done.Epoch)
		require.Equal(t, map[domain.SeatID]string{"A-2-1": "SOLD"}, w.seatStates(0, ""), "the hold that lost a seat is void as a whole")
		after := w.stats()
		require.Equal(t, int64(9), after.Epoch)
		require.Greater(t, after.Version, before.Version)
		require.Equal(t, []int64{1, 0}, []int64{after.Sold, after.Held})
		require.Equal(t, []int64{before.Waiting, before.Active, before.Joined}, []int64{after.Waiting, after.Active, after.Joined})
		require.Equal(t, domain.StatusActive, w.status("bob"))
		a, err := w.Audit(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.Equal(t, map[domain.RequestID]int64{"ann": 0, "dan": 1}, a.Bought)
		require.Equal(t, map[domain.BookingID]string{"b1": "X", "b2": "C"}, a.Settled)

		again, err := w.Reconcile(t.Context(), w.show.ID, 8, []Correction{Sell(domain.SoldSeat{SeatID: "A-2-1", BookingID: "b2", RequestID: "dan"}, "")})
		require.NoError(t, err)
		require.Equal(t, int64(9), again.Epoch, "an epoch never goes back")
		require.Empty(t, again.Seats)
		_, err = w.Reconcile(t.Context(), w.show.ID, 9, []Correction{Sell(domain.SoldSeat{SeatID: "A-1-1", BookingID: "b1", RequestID: "ann"}, "")})
		require.NoError(t, err)
		require.Equal(t, int64(1), w.stats().Sold, "a booking that was cancelled meanwhile is not sold again")
	})
}

// What a hand has written into Redis: values without holds, holds without seats,
// counters that nothing supports.
func TestReconcilingRepairsWhatAHandBroke(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := load(t, rdb)
		w.enter("ann")
		w.mustHold("ann", "h1", "A-1-1", "A-1-2")
		seats, show := patternOf("seats").with(string(w.show.ID)), patternOf("show").with(string(w.show.ID))
		require.NoError(t, rdb.HSet(ctx, seats, "A-2-1", "h:nobody:bob:9999999999999").Err())
		require.NoError(t, rdb.HDel(ctx, seats, "A-1-1").Err())
		require.NoError(t, rdb.HSet(ctx, show, "sold", 7).Err())
		require.NoError(t, rdb.HSet(ctx, patternOf("bought").with(string(w.show.ID)), "ann", 5, "bob", 1).Err())
		require.NoError(t, rdb.Set(ctx, SoldOutKey(string(w.show.ID)), "1", 0).Err())
		a, err := w.Audit(ctx, w.show.ID)
		require.NoError(t, err)

		_, err = w.Reconcile(ctx, w.show.ID, 1, []Correction{
			ClearSeat("A-2-1", a.Seats["A-2-1"].Value), DropHold("h1"), Recount(), SetBought("ann", 5, 0), SetBought("bob", 2, 3),
		})
		require.NoError(t, err)
		require.Empty(t, w.seatStates(0, "ann"))
		require.Equal(t, []int64{0, 0}, []int64{w.stats().Sold, w.stats().Held})
		a, err = w.Audit(ctx, w.show.ID)
		require.NoError(t, err)
		require.False(t, a.SoldOut)
		require.Equal(t, map[domain.RequestID]int64{"ann": 0, "bob": 1}, a.Bought, "what is not as it was audited is left alone")
		require.Empty(t, a.Holds)
	})
}

// More corrections than one call takes are made in several.
func TestReconcilingManySeats(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 40, SeatsPerRow: 30} })
		var corrections []Correction
		for row := 1; row <= 40; row++ {
			for number := 1; number <= 30; number++ {
				seat := domain.SoldSeat{SeatID: domain.NewSeatID("A", row, number), BookingID: "b1", RequestID: "ann"}
				corrections = append(corrections, Sell(seat, ""))
			}
		}
		done, err := w.Reconcile(t.Context(), w.show.ID, 2, corrections)
		require.NoError(t, err)
		require.Len(t, done.Seats, 1200)
		require.Equal(t, int64(1200), w.stats().Sold)
		require.Equal(t, domain.PhaseSoldOut, w.stats().Phase)
	})
}

// S34: the server that answers after a restart is known to be another run.
func TestServerRun(t *testing.T) {
	t.Parallel()
	onReal := New(testenv.Redis(t))
	first, err := onReal.ServerRun(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, first)
	again, err := onReal.ServerRun(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again)
	none, err := New(embedded(t)).ServerRun(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
}

// The clock goes back by an hour, as after a failover to a server that is behind:
// nobody is let in twice, the rate is kept, and ticks, admission and holds go on.
func TestClockGoingBackStopsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := load(t, rdb, func(s *domain.Show) { s.Queue.RatePerMinute, s.Queue.MaxActive = 3, 100 })
		w.travel(time.Hour)
		people := w.crowd("p", 8)
		w.admit()
		require.Equal(t, int64(3), w.stats().Active)
		_, err := w.DueTick(ctx, w.show.ID, time.Second)
		require.NoError(t, err)
		w.travel(-time.Hour)
		due, err := w.DueTick(ctx, w.show.ID, time.Second)
		require.NoError(t, err)
		require.True(t, due, "ticks go on by the new clock")
		result, err := w.Admit(ctx, w.show.ID, AdmitOptions{Tick: time.Second})
		require.NoError(t, err)
		require.False(t, result.Skipped, "a tick of the old clock does not stand in the way")
		require.Empty(t, result.Admitted, "the rate of the last minute is kept")
		w.claim(people[0])
		w.mustHold(people[0], "h1", "A-1-1")
		for range 14 { // a minute and a little, as workers see it
			w.travel(5 * time.Second)
			result, err := w.Admit(ctx, w.show.ID, AdmitOptions{Tick: time.Second})
			require.NoError(t, err)
			for _, admitted := range result.Admitted {
				require.False(t, slices.Contains(people[:3], admitted.RequestID), "nobody comes in twice")
			}
			require.NoError(t, w.Touch(ctx, w.show.ID, people))
		}
		require.Equal(t, int64(6), w.stats().Active, "a minute later the next three are in")
		a, err := w.Audit(ctx, w.show.ID)
		require.NoError(t, err)
		require.Equal(t, a.Fields["joined"], a.Waiting+a.Inside+a.Fields["ended"])
	})
}
