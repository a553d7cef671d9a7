package lua

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// T9: arrivals that were counted twice slowed the line for the whole sale, because fewer
// seemed to come than did. Whatever is repeated (joins, claims, steps, commands told
// twice), a turn counts once in the share that nobody claims.
func TestT9RepeatsDoNotChangeTheNoShowShare(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		share := func(times int) float64 {
			w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 40 })
			again := func(do func()) {
				for range times {
					do()
				}
			}
			for i, request := range w.names("p", 40) {
				again(func() { w.join(request) })
				if i%4 > 0 { // a quarter never claims
					again(func() { w.claim(request) })
				}
			}
			w.travel(w.show.Queue.Turn())
			again(func() { w.admit() })
			again(func() {
				_, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{Tick: time.Second})
				require.NoError(t, err)
			})
			return w.stats().NoShowPercent
		}
		once := share(1)
		require.InDelta(t, 100*10.0/(40+20), once, 0.01, "10 of 40, and 20 that are taken as claimed")
		require.InDelta(t, once, share(3), 1e-9)
	})
}

// T39: closing the tab lost the place, and nothing had said so. The page says for how long
// a place is kept (see web/test/text.test.mjs), and it is kept for so long: whoever opens
// the page again by then has the same place, and is passed by nobody.
func TestT39AClosedTabKeepsThePlaceForTheGrace(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.settled()
		w.enter("in1", "in2")
		w.crowd("w", 3)
		_, ended := w.travelTicking(w.show.Queue.Grace()-time.Second, "in1", "in2", "w2", "w3") // w1 has closed the tab
		require.Empty(t, ended)
		require.EqualValues(t, 1, w.join("w1").Rank, "the same place")
		w.leave("in1")
		admitted, _ := w.admit()
		require.Equal(t, []domain.RequestID{"w1"}, admitted)
	})
}

// T71: a place was free and nobody was let in, and nobody could tell why. For each reason
// there is a rule that says so, of whoever stands first.
func TestT71WhyNobodyIsLetIn(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		rules := func(w *world) (codes []string) {
			facts, err := w.Explain(t.Context(), w.show.ID, "first")
			require.NoError(t, err)
			for _, rule := range facts.Rules() {
				codes = append(codes, rule.Code)
			}
			return codes
		}
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive, s.Queue.RatePerMinute = 3, 3 })
		w.enter("in1", "in2", "in3")
		w.join("first")
		require.Equal(t, []string{"NO_VACANCY", "RATE"}, rules(w))
		w.leave("in1")
		require.Equal(t, []string{"RATE"}, rules(w), "a slot is free, and the minute has had its turns")
		w.travel(62 * time.Second)
		require.NoError(t, w.Touch(t.Context(), w.show.ID, []domain.RequestID{"first"}))
		w.change(func(s *domain.Show) { s.Paused = true })
		require.Equal(t, []string{"PAUSED"}, rules(w))
		w.change(func(s *domain.Show) { s.Paused = false })
		require.Equal(t, []string{"NEXT"}, rules(w))
		w.travel(w.show.Queue.Grace() - time.Second)
		require.Equal(t, []string{"SILENT"}, rules(w))

		w = load(t, rdb, withLanes(1, 3), func(s *domain.Show) { s.Queue.MaxActive = 1 })
		w.enter("in1")
		w.joinLane(1, 1)
		w.join("first")
		require.Equal(t, []string{"NO_VACANCY", "LANE"}, rules(w))
		facts, err := w.Explain(t.Context(), w.show.ID, "1-00001")
		require.NoError(t, err)
		facts.Queue = w.show.Queue
		require.Contains(t, fmt.Sprint(facts.Rules()), `stands in lane 1, "lane-1", which has 3 of 4 turns`)
	})
}

// The draw is one for all lanes: everybody's score can be recomputed, whatever lane they
// drew it for, and each lane is in its order.
func TestTheDrawIsOneForAllLanes(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		seed, now := domain.NewDrawSeed(), time.Now()
		w := load(t, rdb, withLanes(1, 2), func(s *domain.Show) {
			prequeue := now.Add(-time.Hour)
			s.PrequeueAt, s.OpensAt, s.DrawSeed, s.Queue.MaxActive = &prequeue, now.Add(time.Minute), seed, 1
		})
		lanes := map[domain.RequestID]int{}
		for i := range 12 {
			request := domain.RequestID(fmt.Sprint("p", i))
			lanes[request] = i % 2
			place, _, err := w.Join(t.Context(), JoinRequest{
				ShowID: w.show.ID, RequestID: request, DrawScore: domain.DrawScore(seed, request), Lane: i % 2,
			})
			require.NoError(t, err)
			require.Equal(t, domain.StatusPrequeue, place.Status)
			require.Zero(t, place.Rank)
			require.EqualValues(t, i/2+1, place.Waiting)
		}
		w.travel(2 * time.Minute)
		drawn, err := w.Drawn(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.Zero(t, drawn.Unlisted)
		ranks := []int64{0, 0}
		for _, entry := range domain.Draw(seed, drawn.Requests) {
			require.Equal(t, entry.Score, drawn.Waiting[entry.RequestID])
			place := w.place(entry.RequestID)
			lane := lanes[entry.RequestID]
			ranks[lane]++
			require.Equal(t, lane, place.Lane)
			require.Equal(t, ranks[lane], place.Rank)
		}
		require.EqualValues(t, 6, ranks[1])
	})
}
