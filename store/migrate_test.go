package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/migrations"
)

// migrator moves a database to any version.
func migrator(t *testing.T, db *DB) *goose.Provider {
	t.Helper()
	dialect, files := goose.DialectSQLite3, migrations.SQLite()
	var pool *sql.DB
	switch e := db.engine.(type) {
	case *sqlite:
		pool = e.writer
	case *postgres:
		dialect, files = goose.DialectPostgres, migrations.Postgres()
		pool = stdlib.OpenDBFromPool(e.pool)
		t.Cleanup(func() { _ = pool.Close() })
	}
	provider, err := goose.NewProvider(dialect, pool, files)
	require.NoError(t, err)
	return provider
}

// What waited, was decided or was to be cancelled before pending bookings had a table of
// their own is found as it was found before, also after going back and forth.
func TestPendingBookingsOfAnOlderDatabase(t *testing.T) {
	t.Parallel()
	for _, url := range []string{testenv.DatabaseURL(t), "sqlite:" + filepath.Join(t.TempDir(), "foyer.db")} {
		db, err := Open(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		t.Run(db.Dialect(), func(t *testing.T) {
			ctx, provider := t.Context(), migrator(t, db)
			_, err := provider.UpTo(ctx, 4)
			require.NoError(t, err)
			require.NoError(t, db.CreateShow(ctx, domain.Show{ID: "old", Title: "T"}))
			var bookings []domain.Booking
			for i := range 5 {
				bookings = append(bookings, recordOld(t, db, i))
			}
			for i, status := range []string{"", "CONFIRMED", "CANCELLED"} {
				if status != "" {
					setOld(t, db, bookings[i].BookingID, status)
				}
			}
			for range 2 {
				require.NoError(t, db.Migrate(ctx))
				require.Equal(t, []domain.Booking{bookings[0], bookings[3], bookings[4]}, pendingOf(t, db))
				_, err := provider.DownTo(ctx, 4)
				require.NoError(t, err)
			}
			require.NoError(t, db.Migrate(ctx))
			asked, err := db.Cancellations(ctx, 0, 10)
			require.NoError(t, err)
			require.Len(t, asked, 1)
			require.Equal(t, bookings[1].BookingID, asked[0].BookingID)

			// A process of the version before, which knows of no such table, still works here.
			setOld(t, db, bookings[0].BookingID, "CONFIRMED")
			late := recordOld(t, db, 5)
			require.Equal(t, []domain.Booking{bookings[3], bookings[4], late}, pendingOf(t, db))
			outcomes, err := db.Book(ctx, []domain.Booking{bookings[3], bookings[4], late})
			require.NoError(t, err)
			for _, o := range outcomes {
				require.NoError(t, o.Err)
				require.Equal(t, domain.BookingConfirmed, o.Booking.Status)
			}
			require.Empty(t, pendingOf(t, db))
			left, _, err := first(ctx, db.engine, one[int], `SELECT count(*) FROM pending_bookings`)
			require.NoError(t, err)
			require.Zero(t, left, "no row is left of what is decided")
		})
	}
}

// recordOld writes a booking in the words of the version before.
func recordOld(t *testing.T, db *DB, i int) domain.Booking {
	t.Helper()
	id := domain.BookingID(fmt.Sprintf("booking-%d", i))
	require.NoError(t, changeOld(t.Context(), db, `INSERT INTO bookings (id, command_id, show_id, person_id, request_id, hold_id, fingerprint, seats,
		price, status, created_at) VALUES ($1, $1, 'old', $1, $1, $1, '', $2, 100, 'PENDING', `+db.engine.now()+`)`,
		id, fmt.Sprintf(`["A-1-%d"]`, i)))
	b, err := db.Booking(t.Context(), id)
	require.NoError(t, err)
	return b
}

func setOld(t *testing.T, db *DB, id domain.BookingID, status string) {
	t.Helper()
	cancelled := "NULL"
	if status == "CANCELLED" {
		cancelled = db.engine.now()
	}
	require.NoError(t, changeOld(t.Context(), db, `UPDATE bookings SET status = $2, decided_at = `+db.engine.now()+`,
		cancel_asked_at = `+db.engine.now()+`, cancelled_at = `+cancelled+` WHERE id = $1`, id, status))
}

func changeOld(ctx context.Context, db *DB, sql string, args ...any) error {
	return db.engine.write(ctx, func(tx session) error { return tx.run(ctx, statement{sql: sql, args: args}) })
}

func pendingOf(t *testing.T, db *DB) []domain.Booking {
	t.Helper()
	pending, err := db.PendingBookings(t.Context(), 0, 10)
	require.NoError(t, err)
	of, err := db.PendingBookingsOf(t.Context(), "old", 10)
	require.NoError(t, err)
	require.Equal(t, pending, of)
	return pending
}
