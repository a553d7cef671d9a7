package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/store"
)

func action(show domain.ShowID, what string) domain.OperatorAction {
	return domain.OperatorAction{ID: domain.NewID(), ShowID: show, Operator: "op", Action: what, Detail: `{"n":1}`}
}

// An operator's change and the word about it are one transaction: neither is there
// without the other.
func TestAChangeIsWrittenDownWithWhoDidIt(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		pause := action(show.ID, domain.ActionPause)
		changed, err := db.ChangeShow(t.Context(), pause, func(s *domain.Show) error { s.Paused = true; return nil })
		require.NoError(t, err)
		require.True(t, changed.Paused)
		require.Equal(t, show.Revision+1, changed.Revision)
		refused := errors.New("no")
		_, err = db.ChangeShow(t.Context(), action(show.ID, domain.ActionClose), func(*domain.Show) error { return refused })
		require.ErrorIs(t, err, refused)
		_, err = db.ChangeShow(t.Context(), action("none", domain.ActionClose), func(*domain.Show) error { return nil })
		require.ErrorIs(t, err, domain.ErrShowNotFound)

		actions, err := db.Actions(t.Context(), show.ID, "", 10)
		require.NoError(t, err)
		require.Len(t, actions, 1, "what was refused did not happen")
		got := actions[0]
		require.NotNil(t, got.DoneAt)
		require.WithinDuration(t, time.Now(), got.At, time.Minute)
		got.At, got.DoneAt = pause.At, nil
		require.Equal(t, pause, got)
	})
}

// T37: a reset that dies half-way is found again.
func TestT37AResetIsUndoneUntilItIsSaidToBeDone(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		reset := action(show.ID, domain.ActionReset)
		changed, err := db.ResetShow(t.Context(), reset, func(s *domain.Show) error { s.DrawSeed = "00"; return nil })
		require.NoError(t, err)
		require.Equal(t, show.Epoch+1, changed.Epoch)
		require.Equal(t, show.Revision+1, changed.Revision)
		require.Equal(t, "00", changed.DrawSeed)

		undone := func(age time.Duration) []domain.OperatorAction {
			actions, err := db.UndoneActions(t.Context(), domain.ActionReset, age, 10)
			require.NoError(t, err)
			return actions
		}
		require.Len(t, undone(0), 1)
		require.JSONEq(t, fmt.Sprintf(`{"epoch":%d}`, changed.Epoch), undone(0)[0].Outcome)
		require.Empty(t, undone(time.Hour), "it may be under way")
		require.NoError(t, db.EndAction(t.Context(), reset.ID, `{"ended":3}`))
		require.NoError(t, db.EndAction(t.Context(), reset.ID, `{"ended":0}`))
		require.Empty(t, undone(0))
		actions, err := db.Actions(t.Context(), show.ID, "", 10)
		require.NoError(t, err)
		require.Equal(t, `{"ended":3}`, actions[0].Outcome, "its end is written once")
	})
}

func TestActionsAreListedNewestFirstInPages(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		for i := range 7 {
			a := action(show.ID, domain.ActionAdmit)
			a.Detail = fmt.Sprint(i)
			require.NoError(t, db.BeginAction(t.Context(), a))
		}
		require.NoError(t, db.BeginAction(t.Context(), action(newShow(t, db, 1, 1).ID, domain.ActionAdmit)))
		seen, before := map[string]bool{}, ""
		for range 4 {
			page, err := db.Actions(t.Context(), show.ID, before, 3)
			require.NoError(t, err)
			for _, a := range page {
				require.False(t, seen[a.Detail])
				seen[a.Detail], before = true, a.ID
			}
		}
		require.Len(t, seen, 7)
	})
}

// What is done to dead letters is listed by kind, whatever show it was about, or none.
func TestActionsAreListedByKind(t *testing.T) {
	onBoth(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		show := newShow(t, db, 1, 1)
		done := []domain.OperatorAction{
			action("", domain.ActionRequeueLetter), action(show.ID, domain.ActionPause), action(show.ID, domain.ActionDropLetter),
		}
		for _, a := range done {
			require.NoError(t, db.BeginAction(t.Context(), a))
			require.NoError(t, db.EndAction(t.Context(), a.ID, "{}"))
		}
		first, err := db.ActionsOfKind(t.Context(), domain.LetterActions(), "", 1)
		require.NoError(t, err)
		require.Len(t, first, 1)
		require.Equal(t, done[2].ID, first[0].ID, "newest first")
		rest, err := db.ActionsOfKind(t.Context(), domain.LetterActions(), first[0].ID, 10)
		require.NoError(t, err)
		require.Len(t, rest, 1)
		require.Equal(t, done[0].ID, rest[0].ID)
		of, err := db.Actions(t.Context(), show.ID, "", 10)
		require.NoError(t, err)
		require.Len(t, of, 2, "the show's own list has them too")
	})
}
