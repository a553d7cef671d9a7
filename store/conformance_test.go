package store_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/store"
)

// onBoth runs a test on every database that Foyer promises the same about. open
// may be called again for a second handle, as another process would have.
func onBoth(t *testing.T, run func(t *testing.T, open func() *store.DB)) {
	t.Parallel()
	addresses := map[string]func(t *testing.T) string{
		"postgres": func(t *testing.T) string { return testenv.DatabaseURL(t) },
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "foyer.db") },
	}
	addPooler(addresses)
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := address(t)
			run(t, func() *store.DB {
				db, err := store.Open(t.Context(), url)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, db.Close()) })
				require.NoError(t, db.Migrate(t.Context()))
				return db
			})
		})
	}
}

// newShow stores a show with one section A of the given size.
func newShow(t *testing.T, db *store.DB, rows, seatsPerRow int) domain.Show {
	t.Helper()
	s := domain.Show{
		ID: testenv.ShowID(t), Title: "A show", OpensAt: t0, Queue: domain.DefaultQueue(), Seating: domain.DefaultSeating(), Revision: 1, Epoch: 1,
	}
	s.Seating.Sections = []domain.Section{{Name: "A", Rows: rows, SeatsPerRow: seatsPerRow, Price: 2550}}
	require.NoError(t, db.CreateShow(t.Context(), s))
	return s
}

// newBooking is a booking command of a new person with a new hold.
func newBooking(show domain.ShowID, seats ...domain.SeatID) domain.Booking {
	return domain.Booking{
		BookingID: domain.BookingID(domain.NewID()), CommandID: domain.CommandID(domain.NewID()), ShowID: show,
		PersonID: domain.PersonID(domain.NewID()), RequestID: domain.RequestID(domain.NewID()), HoldID: domain.HoldID(domain.NewID()),
		Seats: seats, Price: 2550 * domain.Price(len(seats)),
	}
}

// record stores a booking as PENDING, as the API does before it sends the command.
func record(t *testing.T, db *store.DB, b domain.Booking) domain.Booking {
	t.Helper()
	stored, created, err := db.RecordBooking(t.Context(), domain.BookingRequest{Booking: b, Key: "key-" + string(b.BookingID), Fingerprint: "f"})
	require.NoError(t, err)
	require.True(t, created)
	return stored
}

// book sends one command by itself.
func book(t *testing.T, db *store.DB, b domain.Booking) store.BookingOutcome {
	t.Helper()
	outcomes, err := db.Book(t.Context(), []domain.Booking{b})
	require.NoError(t, err)
	require.Len(t, outcomes, 1)
	return outcomes[0]
}

// sold counts the rows that say what is sold.
func sold(t *testing.T, db *store.DB, show domain.ShowID) int {
	t.Helper()
	seats, err := db.SoldSeats(t.Context(), show)
	require.NoError(t, err)
	return len(seats)
}
