package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/store"
)

// Deciding a booking wrote it into every index again, which was the dearest part of a
// sale. Here PostgreSQL itself says that no decision of any kind does, although groups
// fill whole pages and are decided in one transaction.
func TestADecisionEntersNoIndex(t *testing.T) {
	t.Parallel()
	url := testenv.DatabaseURL(t)
	db, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(t.Context()))
	const group, groups = 128, 3
	show := newShow(t, db, groups, 2*group)
	all := make([]domain.Booking, 0, group*groups)
	for row := range groups {
		for i := range group {
			all = append(all, record(t, db, newBooking(show.ID, domain.NewSeatID("A", row+1, 2*i+1), domain.NewSeatID("A", row+1, 2*i+2))))
		}
	}
	loser, failed := record(t, db, newBooking(show.ID, "A-1-1")), record(t, db, newBooking(show.ID, "A-1-1"))
	outcomes, err := db.Book(t.Context(), append(all, loser))
	require.NoError(t, err)
	for i, o := range outcomes {
		require.NoError(t, o.Err)
		require.Equal(t, i < len(all), o.Booking.Status == domain.BookingConfirmed)
	}
	_, err = db.FailBooking(t.Context(), failed.BookingID, domain.ReasonFailed)
	require.NoError(t, err)
	require.NoError(t, db.Close()) // a session hands in what it counted when it ends

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	decided := len(all) + 2
	var updated, inPlace int
	require.Eventually(t, func() bool {
		err := conn.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'bookings'`).Scan(&updated, &inPlace)
		return err == nil && updated >= decided
	}, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, updated, inPlace) // the loser's first attempt was rolled back, and counts
}
