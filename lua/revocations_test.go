package lua

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

func revocationOutcomes() []outcomeCase {
	read := func(ctx context.Context, w *world) (any, error) {
		list, next, more, err := w.Revocations(ctx, w.show.ID, RevocationCursor{}, 0)
		return []any{list, next, more}, err
	}
	return []outcomeCase{
		{"show_revocations", "OK", loaded(read)},
		missing("show_revocations", func(ctx context.Context, w *world) error { _, err := read(ctx, w); return err }),
	}
}

// revoked reads all ended sessions after a cursor.
func (w *world) revoked(since RevocationCursor) (ended []domain.RequestID, next RevocationCursor) {
	w.t.Helper()
	for more := true; more; {
		var list []Revocation
		var err error
		list, since, more, err = w.Revocations(w.ctx(), w.show.ID, since, 2)
		require.NoError(w.t, err)
		for _, r := range list {
			ended = append(ended, r.RequestID)
		}
	}
	return ended, since
}

// Somebody who left, bought or was too slow went on shopping with their pass. Every end of
// a session is told, once; that of a turn and of a wait is not, for they have no pass.
func TestEveryEndOfASessionIsTold(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 4 })
		w.enter("leaves", "buys", "slow")
		w.join("unclaimed")
		w.join("waits")
		ended, cursor := w.revoked(RevocationCursor{})
		require.Empty(t, ended)
		require.EqualValues(t, 1, cursor.MinEpoch)

		deadline := w.place("leaves").ExpiresAt
		w.leave("leaves")
		list, next, more, err := w.Revocations(t.Context(), w.show.ID, cursor, 0)
		require.NoError(t, err)
		require.False(t, more)
		require.Len(t, list, 1)
		require.Equal(t, domain.RequestID("leaves"), list[0].RequestID)
		require.Equal(t, *deadline, list[0].Deadline, "the instant by which the pass is named")
		require.EqualValues(t, 1, list[0].Epoch)
		require.WithinDuration(t, time.Now(), list[0].EndedAt, time.Minute)
		cursor = next

		w.leave("waits")
		w.leave("unclaimed")
		w.buy("buys", "b1", w.show.Seating.AllSeats()[0])
		w.travel(w.show.Queue.Session())
		w.admit()
		w.admit()
		ended, cursor = w.revoked(cursor)
		require.Equal(t, []domain.RequestID{"buys", "slow"}, ended)
		ended, _ = w.revoked(cursor)
		require.Empty(t, ended)
		all, _ := w.revoked(RevocationCursor{})
		require.Equal(t, []domain.RequestID{"leaves", "buys", "slow"}, all, "who begins late is told everything")
	})
}

// Who comes back before their old session was swept has a new one, and the old is told.
func TestJoiningAgainTellsTheOldSession(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("a")
		w.travel(w.show.Queue.Session())
		w.enter("a")
		ended, _ := w.revoked(RevocationCursor{})
		require.Equal(t, []domain.RequestID{"a"}, ended)
	})
}

// The list would grow with the sale: what is over by time anyway is forgotten.
func TestOldRevocationsAreForgotten(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("a", "b")
		w.leave("a")
		w.travel(w.show.Queue.Session())
		w.leave("b")
		w.enter("c", "d")
		w.leave("c")
		ended, _ := w.revoked(RevocationCursor{})
		require.Equal(t, []domain.RequestID{"a", "b", "c"}, ended, "a clock may be slow")
		w.travel(2 * time.Minute)
		w.leave("d")
		ended, cursor := w.revoked(RevocationCursor{})
		require.Equal(t, []domain.RequestID{"c", "d"}, ended)
		require.EqualValues(t, 4, cursor.Number)
	})
}

// After Redis was lost all sessions are gone: the numbers begin anew, and so do readers.
func TestALostRedisVoidsThePassesOfBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("a", "b")
		w.leave("a")
		w.leave("b")
		_, old := w.revoked(RevocationCursor{})
		require.NoError(t, rdb.Del(t.Context(), "show:{"+string(w.show.ID)+"}").Err())
		w.show.Epoch++
		restored, err := w.Restore(t.Context(), w.show, nil)
		require.NoError(t, err)
		require.True(t, restored)
		ended, cursor := w.revoked(old)
		require.Empty(t, ended)
		require.Equal(t, RevocationCursor{MinEpoch: w.show.Epoch}, cursor)
		w.enter("c")
		w.leave("c")
		ended, _ = w.revoked(old)
		require.Equal(t, []domain.RequestID{"c"}, ended)
		ended, _ = w.revoked(RevocationCursor{MinEpoch: w.show.Epoch, Number: 99})
		require.Equal(t, []domain.RequestID{"c"}, ended, "a number that was never given reads all")
	})
}

func TestARevocationThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	w := load(t, embedded(t))
	key := "revoked:{" + string(w.show.ID) + "}"
	require.NoError(t, w.rdb.HSet(t.Context(), "show:{"+string(w.show.ID)+"}", "revoked", 1).Err())
	for _, member := range []string{"a", "a:b:c:d"} {
		require.NoError(t, w.rdb.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: member}).Err())
		_, _, _, err := w.Revocations(t.Context(), w.show.ID, RevocationCursor{}, 0)
		require.ErrorContains(t, err, member)
		require.NoError(t, w.rdb.Del(t.Context(), key).Err())
	}
}
