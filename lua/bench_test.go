package lua

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// benchShow is a line of a length, standing still.
func benchShow(b *testing.B, waiting int) *world {
	w := load(b, testenv.Redis(b), func(s *domain.Show) {
		s.Queue.MaxActive, s.Queue.RatePerMinute, s.Paused = 1_000_000, 1_000_000, true
		s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 200, SeatsPerRow: 250}
	})
	w.crowd("w", waiting)
	return w
}

// One caller after the other, and many at once, whose calls travel together.
func BenchmarkJoin(b *testing.B) {
	for _, callers := range []int{1, 500} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w := benchShow(b, 10_000)
			var n atomic.Int64
			b.SetParallelism(callers)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					request := domain.RequestID(fmt.Sprint("p", n.Add(1)))
					if _, _, err := w.Join(b.Context(), JoinRequest{ShowID: w.show.ID, RequestID: request}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// Steps that let in a thousand each, of a line of a hundred thousand.
func BenchmarkAdmit(b *testing.B) {
	var w *world
	for left := 0; b.Loop(); left -= maxAdmissions {
		if left == 0 {
			b.StopTimer()
			left = 100_000
			w = benchShow(b, left)
			w.change(func(s *domain.Show) { s.Paused = false })
			b.StartTimer()
		}
		result, err := w.Admit(b.Context(), w.show.ID, AdmitOptions{})
		require.NoError(b, err)
		require.Len(b, result.Admitted, maxAdmissions)
	}
}

func BenchmarkKnots(b *testing.B) {
	for _, waiting := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			w := benchShow(b, waiting)
			for b.Loop() {
				_, _, err := w.Knots(b.Context(), w.show.ID)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkHold(b *testing.B) {
	w := benchShow(b, 0)
	w.change(func(s *domain.Show) { s.Paused, s.Queue.SessionSeconds = false, 86_400 })
	w.enter("me")
	for b.Loop() {
		w.mustHold("me", "h1", "A-1-1", "A-1-2", "A-1-3")
		_, _, err := w.ReleaseHold(b.Context(), w.show.ID, "me", "h1")
		require.NoError(b, err)
	}
}

// The whole map of a sold-out house.
func BenchmarkSeats(b *testing.B) {
	w := unloaded(b, testenv.Redis(b), func(s *domain.Show) {
		s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 200, SeatsPerRow: 250}
	})
	_, err := w.Restore(b.Context(), w.show, soldTo("r", "b", w.show.Seating.AllSeats()...))
	require.NoError(b, err)
	for b.Loop() {
		changes, err := w.Seats(b.Context(), w.show.ID, 0, "")
		require.NoError(b, err)
		require.Len(b, changes.Seats, 50_000)
	}
}
