package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/store"
)

func TestOpenRefusals(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                    "must begin with",
		"mysql://secret@host":                 "must begin with",
		"sqlite:":                             "path of a file",
		"sqlite::memory:":                     "path of a file",
		"sqlite:" + t.TempDir() + "/no/db":    "directory of the file",
		"postgres://u:secret@127.0.0.1:1/x":   "open postgres database",
		"postgres://u:secret@127.0.0.1:x/x":   "open postgres database",
		"postgresql://u:secret@%zz/x":         "open postgresql database",
		"postgres://u:secret@h/x?sslmode=odd": "open postgres database",
	} {
		_, err := store.Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret", url)
	}
}

// Every process migrates when it starts, and they start together.
func TestMigrateFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{testenv.DatabaseURL(t), "sqlite:" + filepath.Join(t.TempDir(), "foyer.db")} {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				db, err := store.Open(t.Context(), url)
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				defer db.Close()
				for range 2 {
					if err := db.Migrate(t.Context()); err != nil {
						t.Errorf("migrate: %v", err)
					}
				}
				if _, err := db.Shows(t.Context()); err != nil {
					t.Errorf("use: %v", err)
				}
			})
		}
		wg.Wait()
	}
}

func TestPing(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		require.NoError(t, db.Ping(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, db.Ping(ctx), context.Canceled)
	})
}

// What was answered is there after the process ended.
func TestReopen(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		show := newShow(t, open(), 1, 2)
		second := open()
		b := record(t, second, newBooking(show.ID, "A-1-1"))
		require.NoError(t, book(t, second, b).Err)
		got, err := open().Booking(t.Context(), b.BookingID)
		require.NoError(t, err)
		require.Equal(t, domain.BookingConfirmed, got.Status)
	})
}

// A path is a path, whatever characters are in it.
func TestSQLitePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"plain.db", "a b?mode=memory&x#y%41.db"} {
		for _, prefix := range []string{"sqlite:", "sqlite://"} {
			db, err := store.Open(t.Context(), prefix+filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, db.Migrate(t.Context()))
			require.NoError(t, db.Close())
		}
		found, err := filepath.Glob(filepath.Join(dir, strings.ReplaceAll(name, "?", "[?]")))
		require.NoError(t, err)
		require.Len(t, found, 1)
	}
}

// Text that PostgreSQL cannot hold is refused alike on both, wherever it comes in.
func TestTextThatCannotBeStored(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		for _, text := range []string{"a\x00", "a\xff"} {
			person := domain.PersonID(text)
			var errs []error
			note := func(err error) { errs = append(errs, err) }
			_, err := db.Rooms(t.Context(), person)
			note(err)
			_, err = db.Bookings(t.Context(), person, "", 1)
			note(err)
			_, err = db.CancelBooking(t.Context(), "c", domain.BookingID(text))
			note(err)
			_, err = db.MarkUnread(t.Context(), "r", person, 1)
			note(err)
			_, err = db.Messages(t.Context(), domain.RoomID(text), 0, 1)
			note(err)
			note(db.RemoveMember(t.Context(), "r", person))
			for _, err := range errs {
				var invalid *domain.InvalidError
				require.ErrorAs(t, err, &invalid)
			}
		}
	})
}
