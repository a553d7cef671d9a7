package lua

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
	"foyer/internal/testenv"
)

// withLanes gives a show lanes of weights, the ordinary line first, and much room.
func withLanes(weights ...int) func(*domain.Show) {
	return func(s *domain.Show) {
		roomy(s)
		s.Queue.OrdinaryWeight = weights[0]
		for i, weight := range weights[1:] {
			s.Queue.Lanes = append(s.Queue.Lanes, domain.Lane{Name: "lane-" + strconv.Itoa(i+1), Weight: weight})
		}
	}
}

// joinLane joins somebody whose name begins with the number of their lane.
func (w *world) joinLane(lane, n int) domain.RequestID {
	w.t.Helper()
	request := domain.RequestID(fmt.Sprintf("%d-%05d", lane, n))
	place, _, err := w.Join(w.ctx(), JoinRequest{ShowID: w.show.ID, RequestID: request, Lane: lane})
	require.NoError(w.t, err)
	if place.Status == domain.StatusWaiting {
		require.Equal(w.t, lane, place.Lane)
	}
	return request
}

func laneOf(request domain.RequestID) int { return int(request[0] - '0') }

// pauseFor stops admission, so that a line comes to be.
func (w *world) pauseFor(fill func()) {
	w.change(func(s *domain.Show) { s.Paused = true })
	fill()
	w.change(func(s *domain.Show) { s.Paused = false })
}

// Lanes share the rate by weight within one turn: however many steps let people in, and
// however many at a time, no lane in which somebody waits all the while is ever a whole
// turn behind its share or ahead of it.
func TestLanesShareTurnsByWeight(t *testing.T) {
	t.Parallel()
	rdb := testenv.Redis(t)
	rapid.Check(t, func(r *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 9), 2, 5).Draw(r, "weights")
		w := load(t, rdb, withLanes(weights...))
		const each = 40
		var people []JoinRequest
		for i := range each * len(weights) {
			lane := i % len(weights)
			people = append(people, JoinRequest{ShowID: w.show.ID, RequestID: domain.RequestID(fmt.Sprintf("%d-%05d", lane, i)), Lane: lane})
		}
		w.pauseFor(func() {
			_, err := w.joinAll(w.ctx(), w.show.ID, people)
			require.NoError(r, err)
		})
		total, came, all := 0, make([]int, len(weights)), 0
		for _, weight := range weights {
			total += weight
		}
		for slices.Max(came) < each-1 {
			batch := rapid.IntRange(1, 20).Draw(r, "batch")
			result, err := w.Admit(w.ctx(), w.show.ID, AdmitOptions{Batch: batch})
			require.NoError(r, err)
			require.NotEmpty(r, result.Admitted)
			for _, a := range result.Admitted {
				if slices.Max(came) == each {
					return // a lane is empty: from here on its share is the others'
				}
				came[laneOf(a.RequestID)]++
				all++
				for lane, weight := range weights {
					share := float64(all*weight) / float64(total)
					if math.Abs(float64(came[lane])-share) >= 1 {
						r.Fatalf("after %d turns lane %d had %d, its share is %.2f; weights %v, all %v", all, lane, came[lane], share, weights, came)
					}
				}
			}
		}
	})
}

// A lane is somebody's gain and nobody's loss of place: whoever waits, in any line, sees
// their rank stay or fall, whatever others do in lanes; both as the step tells it and as
// it follows from the sample that all processes get. The line itself is served in order.
func TestRanksNeverRiseBecauseOfLanes(t *testing.T) {
	t.Parallel()
	rdb := testenv.Redis(t)
	rapid.Check(t, func(r *rapid.T) {
		w := load(t, rdb, withLanes(1, 3, 2), func(s *domain.Show) { s.Queue.MaxActive, s.Queue.RatePerMinute = 4, 30 })
		ranks, next := map[domain.RequestID]int64{}, 0
		someone := func() domain.RequestID {
			return rapid.SampledFrom(append(slices.Sorted(maps.Keys(ranks)), "nobody")).Draw(r, "who")
		}
		r.Repeat(map[string]func(*rapid.T){
			"join": func(r *rapid.T) {
				next++
				w.joinLane(rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2}).Draw(r, "lane"), next)
			},
			"leave": func(r *rapid.T) { w.leave(someone()) },
			"admit": func(r *rapid.T) { w.admit() },
			"free": func(r *rapid.T) {
				inside, err := rdb.ZRange(w.ctx(), patternOf("active").with(string(w.show.ID)), 0, -1).Result()
				require.NoError(r, err)
				if len(inside) > 0 {
					w.leave(domain.RequestID(inside[0]))
				}
			},
			"": func(r *rapid.T) {
				knots, _, err := w.Knots(w.ctx(), w.show.ID)
				require.NoError(r, err)
				now := map[domain.RequestID]int64{}
				for _, member := range rdb.ZRange(w.ctx(), patternOf("waiting").with(string(w.show.ID)), 0, -1).Val() {
					place := w.place(domain.RequestID(member))
					now[place.RequestID] = place.Rank
					if before, known := ranks[place.RequestID]; known && place.Rank > before {
						r.Fatalf("the rank of %s rose from %d to %d", member, before, place.Rank)
					}
					if told := knots.Lane(place.Lane).Rank(place.Score); told != place.Rank {
						r.Fatalf("%s is number %d and the sample says %d", member, place.Rank, told)
					}
					if own := knots.Lane(place.Lane).Waiting; place.Waiting != own {
						r.Fatalf("%s waits with %d, and %d are in the lane", member, place.Waiting, own)
					}
				}
				ranks = now
			},
		})
	})
}

// The share of a lane where nobody waits goes to the others at once, and is not saved up:
// when people come to it again they have its share from then on, and no more.
func TestAnEmptyLaneSavesNothingUp(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, withLanes(1, 1))
		ordinary, fans := 0, 0
		w.pauseFor(func() {
			for range 30 {
				ordinary++
				w.joinLane(0, ordinary)
			}
		})
		take := func(n int) (lanes []int) {
			result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{Batch: n})
			require.NoError(t, err)
			for _, a := range result.Admitted {
				lanes = append(lanes, laneOf(a.RequestID))
			}
			return lanes
		}
		require.Equal(t, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, take(10), "nobody else waits")
		for range 10 {
			fans++
			w.joinLane(1, fans)
		}
		came := take(8)
		require.Equal(t, 4, len(slices.DeleteFunc(came, func(lane int) bool { return lane == 0 })), "half each, and not the half that was passed by")
	})
}

// A code with a number of uses is counted by person: nobody else can use it up by coming
// and going, and whoever lost their place comes back with it.
func TestCodesAreCountedByPerson(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, withLanes(1, 4))
		use := func(who domain.RequestID) (domain.Place, error) {
			place, _, err := w.Join(t.Context(), JoinRequest{ShowID: w.show.ID, RequestID: who, Lane: 1, CodeID: "code", CodeUses: 2})
			return place, err
		}
		w.pauseFor(func() {
			for _, who := range []domain.RequestID{"a", "b", "a"} {
				place, err := use(who)
				require.NoError(t, err)
				require.Equal(t, 1, place.Lane)
			}
			_, err := use("c")
			require.ErrorIs(t, err, domain.ErrCodeUsedUp)
			_, err = w.Place(t.Context(), w.show.ID, "c")
			require.ErrorIs(t, err, domain.ErrNotJoined, "nothing was joined")
			w.leave("a")
			_, err = use("a")
			require.NoError(t, err, "who comes back is the same person")
			_, err = use("c")
			require.ErrorIs(t, err, domain.ErrCodeUsedUp)
		})
	})
}

// What a show without lanes keeps in Redis has no trace of them.
func TestAShowWithoutLanesIsAsItWas(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		w.crowd("w", 3)
		w.leave("in1")
		w.admit()
		for field := range rdb.HGetAll(t.Context(), patternOf("show").with(string(w.show.ID))).Val() {
			require.NotRegexp(t, "lane|weight|due_", field)
		}
		knots, stats, err := w.Knots(t.Context(), w.show.ID)
		require.NoError(t, err)
		require.Nil(t, knots.Lanes)
		require.Zero(t, stats.Lanes)
	})
}

// Lanes are settings: whoever loads a show anew, after Redis was lost, has them, and a
// new weight counts from the next turn on.
func TestLanesComeBackWithTheShow(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, withLanes(1, 3))
		require.NoError(t, rdb.Del(t.Context(), patternOf("show").with(string(w.show.ID))).Err())
		_, err := w.Restore(t.Context(), w.show, nil)
		require.NoError(t, err)
		require.Equal(t, domain.LaneLines{{Weight: 1}, {Weight: 3}}, w.stats().Lanes)
		w.change(func(s *domain.Show) {
			s.Queue.Lanes = append(slices.Clone(s.Queue.Lanes), domain.Lane{Name: "late", Weight: 7})
			s.Queue.Lanes[0].Weight = 9
		})
		w.pauseFor(func() { w.joinLane(2, 1) })
		require.Equal(t, domain.LaneLines{{Weight: 1}, {Weight: 9}, {Weight: 7, Waiting: 1}}, w.stats().Lanes)
	})
}
