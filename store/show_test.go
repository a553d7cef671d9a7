package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/store"
)

// t0 has microseconds, so that a database that keeps fewer is found out.
var t0 = time.Date(2031, 3, 4, 19, 30, 15, 123456000, time.UTC)

func fullShow(t *testing.T) domain.Show {
	zone := time.FixedZone("venue", 2*60*60)
	starts, prequeue, closes := t0.Add(time.Hour).In(zone), t0.Add(-time.Hour), t0.Add(30*time.Minute+time.Microsecond)
	return domain.Show{
		ID: testenv.ShowID(t), Title: "Die Nacht — 夜", Venue: "Hall \"2\"", StartsAt: &starts, PrequeueAt: &prequeue,
		OpensAt: t0, ClosesAt: &closes, Paused: true, Message: "Doors at 7\n", Queue: domain.DefaultQueue(),
		Seating: domain.Seating{HoldSeconds: 90, SeatLimit: 6, Sections: []domain.Section{
			{Name: "Z", Rows: 2, SeatsPerRow: 3, Price: 12345}, {Name: "A", Rows: 1, SeatsPerRow: 1, Price: 0},
		}},
		DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 3, CreatedAt: t0.Add(-48 * time.Hour),
	}
}

// F2: each save of an event moved its start by the offset to UTC. Here a save
// without a change changes nothing but the revision, however often, on a machine
// in whichever zone.
func TestF2SavingUnchangedIsIdentity(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		want := fullShow(t)
		require.NoError(t, db.CreateShow(t.Context(), want))
		for range 3 {
			updated, err := db.UpdateShow(t.Context(), want.ID, func(*domain.Show) error { return nil })
			require.NoError(t, err)
			want.Revision++
			got, err := db.Show(t.Context(), want.ID)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
			require.Empty(t, cmp.Diff(got, updated))
			require.Equal(t, time.UTC, got.StartsAt.Location())
		}
	})
}

func TestShowWithoutOptionalTimes(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		want := domain.Show{ID: testenv.ShowID(t), Title: "T", OpensAt: t0.Add(999 * time.Nanosecond), Seating: domain.DefaultSeating()}
		require.NoError(t, db.CreateShow(t.Context(), want))
		got, err := db.Show(t.Context(), want.ID)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), got.CreatedAt, time.Minute)
		want.OpensAt, want.CreatedAt = t0, got.CreatedAt
		require.Empty(t, cmp.Diff(want, got))
	})
}

func TestShowConditions(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		require.ErrorIs(t, db.CreateShow(t.Context(), show), domain.ErrShowExists)
		for _, unknown := range []domain.ShowID{"t-nowhere", "", "t-\x00", "t-\xff"} {
			_, err := db.Show(t.Context(), unknown)
			require.ErrorIs(t, err, domain.ErrShowNotFound)
			_, err = db.UpdateShow(t.Context(), unknown, func(*domain.Show) error { return nil })
			require.ErrorIs(t, err, domain.ErrShowNotFound)
			_, err = db.NextEpoch(t.Context(), unknown)
			require.ErrorIs(t, err, domain.ErrShowNotFound)
		}
		var invalid *domain.InvalidError
		_, err := db.UpdateShow(t.Context(), show.ID, func(s *domain.Show) error { s.Title = "a\x00b"; return nil })
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "title", invalid.Problems[0].Field)
	})
}

func TestUpdateShow(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		refused := errors.New("refused")
		_, err := db.UpdateShow(t.Context(), show.ID, func(s *domain.Show) error { s.Title = "half"; return refused })
		require.ErrorIs(t, err, refused)
		updated, err := db.UpdateShow(t.Context(), show.ID, func(s *domain.Show) error {
			s.Title, s.Paused, s.ID, s.Revision, s.Epoch = "new", true, "t-other", 77, 88
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, "new", updated.Title)
		require.True(t, updated.Paused)
		require.Equal(t, show.ID, updated.ID)
		require.EqualValues(t, 2, updated.Revision)
		require.EqualValues(t, 1, updated.Epoch)

		next, err := db.NextEpoch(t.Context(), show.ID)
		require.NoError(t, err)
		require.EqualValues(t, 2, next.Epoch)
		require.EqualValues(t, 3, next.Revision)
	})
}

// Two operators who change different things at once must not undo each other.
func TestUpdateShowLosesNoChange(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		dbs := []*store.DB{open(), open()}
		show := newShow(t, dbs[0], 1, 1)
		const each = 15
		var wg sync.WaitGroup
		for _, db := range dbs {
			wg.Go(func() {
				for range each {
					_, err := db.UpdateShow(t.Context(), show.ID, func(s *domain.Show) error { s.Queue.MaxActive++; return nil })
					if err != nil {
						t.Errorf("update: %v", err)
					}
				}
			})
		}
		wg.Wait()
		got, err := dbs[0].Show(t.Context(), show.ID)
		require.NoError(t, err)
		require.Equal(t, show.Queue.MaxActive+2*each, got.Queue.MaxActive)
		require.EqualValues(t, show.Revision+2*each, got.Revision)
	})
}

func TestShowsNewestFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		var want []domain.ShowID
		for i := range 3 {
			show := fullShow(t)
			show.CreatedAt = t0.Add(time.Duration(i) * time.Microsecond)
			require.NoError(t, db.CreateShow(t.Context(), show))
			want = append([]domain.ShowID{show.ID}, want...)
		}
		shows, err := db.Shows(t.Context())
		require.NoError(t, err)
		var got []domain.ShowID
		for _, s := range shows {
			got = append(got, s.ID)
		}
		require.Equal(t, want, got)
	})
}

// E11: a plan was edited after sales, and the sold seat was gone. Refusing the
// edit is the API's; here the seat stays sold whatever the plan says.
func TestE11SoldSeatSurvivesPlanEdit(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 2, 2)
		b := record(t, db, newBooking(show.ID, "A-2-2"))
		require.NoError(t, book(t, db, b).Err)
		_, err := db.UpdateShow(t.Context(), show.ID, func(s *domain.Show) error {
			s.Seating.Sections[0].Rows = 1
			return nil
		})
		require.NoError(t, err)
		seats, err := db.SoldSeats(t.Context(), show.ID)
		require.NoError(t, err)
		require.Equal(t, []domain.SoldSeat{{SeatID: "A-2-2", BookingID: b.BookingID, RequestID: b.RequestID}}, seats)
	})
}
