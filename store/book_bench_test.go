package store_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/store"
)

// BenchmarkBook decides recorded bookings of two seats each, in groups of 64; an
// operation is one booking.
func BenchmarkBook(b *testing.B) {
	for _, url := range []string{testenv.DatabaseURL(b), "sqlite:" + filepath.Join(b.TempDir(), "foyer.db")} {
		db, err := store.Open(b.Context(), url)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, db.Close()) })
		require.NoError(b, db.Migrate(b.Context()))
		for _, callers := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/callers=%d", db.Dialect(), callers), func(b *testing.B) {
				benchmarkBook(b, db, callers)
			})
		}
	}
}

func benchmarkBook(b *testing.B, db *store.DB, callers int) {
	const group = 64
	show := domain.Show{ID: testenv.ShowID(b), Title: "T", OpensAt: t0, Seating: domain.DefaultSeating()}
	require.NoError(b, db.CreateShow(b.Context(), show))
	groups := make([][]domain.Booking, (b.N+group-1)/group)
	for i := range groups {
		for j := range group {
			seats := []domain.SeatID{domain.NewSeatID("A", i+1, 2*j+1), domain.NewSeatID("A", i+1, 2*j+2)}
			booking := newBooking(show.ID, seats...)
			_, _, err := db.RecordBooking(b.Context(), domain.BookingRequest{Booking: booking, Key: "k"})
			require.NoError(b, err)
			groups[i] = append(groups[i], booking)
		}
	}
	var next atomic.Int64
	done := make(chan error, callers)
	b.ResetTimer()
	for range callers {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(groups) {
					done <- nil
					return
				}
				if _, err := db.Book(b.Context(), groups[i]); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range callers {
		require.NoError(b, <-done)
	}
	b.ReportMetric(float64(len(groups)*group)/b.Elapsed().Seconds(), "bookings/s")
}

// BenchmarkMarkRead moves 1000 pointers a call; an operation is one mark.
func BenchmarkMarkRead(b *testing.B) {
	for _, url := range []string{testenv.DatabaseURL(b), "sqlite:" + filepath.Join(b.TempDir(), "foyer.db")} {
		db, err := store.Open(b.Context(), url)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, db.Close()) })
		require.NoError(b, db.Migrate(b.Context()))
		b.Run(db.Dialect(), func(b *testing.B) { benchmarkMarkRead(b, db) })
	}
}

func benchmarkMarkRead(b *testing.B, db *store.DB) {
	const members, messages = 1000, 200
	room := domain.RoomID(domain.NewID())
	_, err := db.CreateRoom(b.Context(), domain.ChatRoom{ID: room, Name: "R"}, "ann", "Ann")
	require.NoError(b, err)
	for i := range members {
		require.NoError(b, db.AddMember(b.Context(), room, domain.PersonID(fmt.Sprint(i)), "M"))
	}
	for range messages {
		_, err := db.AddMessage(b.Context(), domain.ChatMessage{RoomID: room, Sender: "ann", Text: "x"})
		require.NoError(b, err)
	}
	marks := make([]domain.ReadMark, members)
	b.ResetTimer()
	for i := range (b.N + members - 1) / members {
		for j := range marks {
			marks[j] = domain.ReadMark{RoomID: room, PersonID: domain.PersonID(fmt.Sprint(j)), UpTo: int64(i%messages + 1)}
		}
		_, err := db.MarkRead(b.Context(), marks)
		require.NoError(b, err)
	}
}
