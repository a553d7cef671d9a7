package lua

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// Somebody a minute late for the opening used to stand behind everybody who was there
// before. Within the time to join late they are drawn as the others are; nobody is let
// in or has a rank before, and the whole draw can be read when it is over, whoever has
// left by then.
func TestLateJoinersAreDrawnToo(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		seed := domain.NewDrawSeed()
		now := time.Now()
		w := load(t, rdb, func(s *domain.Show) {
			prequeue := now.Add(-time.Hour)
			s.PrequeueAt, s.OpensAt, s.Queue.LateJoinSeconds, s.DrawSeed = &prequeue, now.Add(time.Minute), 90, seed
			s.Queue.MaxActive = 1
		})
		enter := func(request domain.RequestID) domain.Place {
			place, _, err := w.Join(t.Context(), JoinRequest{ShowID: w.show.ID, RequestID: request, DrawScore: domain.DrawScore(seed, request)})
			require.NoError(t, err)
			return place
		}
		var all []domain.RequestID
		for i := range 10 {
			all = append(all, domain.RequestID(fmt.Sprint("early", i)))
			require.Equal(t, domain.StatusPrequeue, enter(all[i]).Status)
		}
		w.travel(2 * time.Minute) // the sale has opened, the draw has not closed
		admitted, _ := w.admit()
		require.Empty(t, admitted, "nobody is let in before the draw closes")
		late := enter("late")
		require.Equal(t, domain.StatusPrequeue, late.Status)
		require.Zero(t, late.Rank, "nobody is told a rank while the draw is open")
		all = append(all, "late")
		w.leave("early3")
		enter("early3") // leaving and coming back changes nothing
		w.leave("early4")

		w.travel(time.Minute)
		require.EqualValues(t, domain.StatusWaiting, enter("later").Status)
		requests, stats, err := w.DrawRequests(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.Equal(t, all, requests, "who left took part; who came later did not")
		require.Equal(t, domain.PhaseOpen, stats.Phase)

		var order []domain.RequestID
		for _, entry := range domain.Draw(seed, requests) {
			if entry.RequestID != "early4" {
				order = append(order, entry.RequestID)
			}
		}
		order = append(order, "later")
		for _, want := range order {
			admitted, _ := w.admit()
			require.Equal(t, []domain.RequestID{want}, admitted, "people come in as the draw says")
			w.leave(want)
		}
	})
}

// A page of a draw is some hundred ids; a large one is read over many.
func TestALargeDrawIsReadInPages(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		seed := domain.NewDrawSeed()
		w := load(t, rdb, func(s *domain.Show) {
			prequeue := time.Now().Add(-time.Hour)
			s.PrequeueAt, s.OpensAt = &prequeue, time.Now().Add(time.Minute)
		})
		var batch []JoinRequest
		for i := range drawPage + 200 {
			request := domain.RequestID(fmt.Sprint("p", i))
			batch = append(batch, JoinRequest{ShowID: w.show.ID, RequestID: request, DrawScore: domain.DrawScore(seed, request)})
		}
		for len(batch) > 0 {
			n := min(len(batch), maxBatch)
			_, err := w.joinAll(t.Context(), w.show.ID, batch[:n])
			require.NoError(t, err)
			batch = batch[n:]
		}
		drawn, err := w.Drawn(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.Len(t, drawn.Requests, drawPage+200)
		require.Len(t, drawn.Waiting, drawPage+200)
		require.Zero(t, drawn.Unlisted)
		for request, score := range drawn.Waiting {
			require.Equal(t, domain.DrawScore(seed, request), score)
		}
		require.NoError(t, rdb.RPop(t.Context(), patternOf("draw").with(string(w.show.ID))).Err())
		drawn, err = w.Drawn(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, drawn.Unlisted, "who waits with a drawn place and took no part is found")
	})
}
