package lua

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// T3: a place was held for ever after somebody left. Leaving frees it at once, and
// without a word the turn and the session run out by themselves.
func TestPlacesEndByLeavingAndByTime(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("stays")
		w.join("sleeper") // never claims
		w.crowd("w", 3)
		require.Equal(t, domain.StatusWaiting, w.status("w1"))
		d := w.leave("w1")
		require.True(t, d.Left)
		require.False(t, d.FreedSlot)
		require.False(t, w.leave("w1").Left, "leaving again is no error")
		require.False(t, w.leave("never").Left)

		w.travel(w.show.Queue.Turn())
		require.Equal(t, domain.StatusExpired, w.status("sleeper"), "judged when read, before any sweep")
		require.EqualValues(t, 1, w.stats().Active)
		admitted, ended := w.admit()
		require.Equal(t, []domain.RequestID{"w2"}, admitted)
		require.Equal(t, []domain.RequestID{"sleeper"}, ended)
		d = w.leave("stays")
		require.True(t, d.FreedSlot)
		require.Equal(t, domain.StatusLeft, w.status("stays"))
	})
}

// T6: a join that was delivered twice took a second number and moved the person back.
func TestJoiningAgainKeepsThePlace(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		w.crowd("w", 5)
		before := w.place("w2")
		place, created, err := w.Join(t.Context(), JoinRequest{ShowID: w.show.ID, RequestID: "w2"})
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, before.Rank, place.Rank)
		require.Equal(t, before.Score, place.Score)
		require.Equal(t, domain.StatusActive, w.join("in1").Status)
		require.EqualValues(t, 7, w.stats().Joined)
	})
}

// T13, T20: equal scores were served in the order of names, and ranks did not follow
// arrival. user10 sorts before user2; both must be served as they came.
func TestOrderIsArrivalNotName(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		w.enter("in")
		names := []domain.RequestID{"user9", "user10", "user2", "user1", "a", "Z"}
		var batch []JoinRequest
		for _, name := range names {
			batch = append(batch, JoinRequest{ShowID: w.show.ID, RequestID: name})
		}
		_, err := w.joinAll(t.Context(), w.show.ID, batch) // all in the same millisecond
		require.NoError(t, err)
		for i, name := range names {
			require.EqualValues(t, i+1, w.place(name).Rank)
		}
		var served []domain.RequestID
		for last := domain.RequestID("in"); len(served) < len(names); last = served[len(served)-1] {
			w.leave(last)
			admitted, _ := w.admit()
			served = append(served, admitted...)
		}
		require.Equal(t, names, served)
	})
}

// T16, J5, A8: checking and adding apart let more than the limit inside. 400 people join
// through three processes at once: exactly 50 are in, the rest stand in order of arrival.
func TestNeverMoreInsideThanAllowed(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const people, slots = 400, 50
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = slots })
		processes := []*Steps{w.Steps, New(rdb), New(rdb)}
		places := make([]domain.Place, people)
		var wg sync.WaitGroup
		for i := range people {
			wg.Go(func() {
				request := domain.RequestID(fmt.Sprintf("p%d", i))
				place, created, err := processes[i%3].Join(t.Context(), JoinRequest{ShowID: w.show.ID, RequestID: request})
				if err != nil || !created {
					t.Errorf("join: created %v, error %v", created, err)
				}
				places[i] = place
			})
		}
		wg.Wait()
		inside, ranks := 0, map[int64]int64{}
		for i := range places {
			place := w.place(places[i].RequestID)
			switch place.Status {
			case domain.StatusAdmitted:
				inside++
			case domain.StatusWaiting:
				ranks[place.Rank] = place.Score
			default:
				t.Errorf("unexpected status %s", place.Status)
			}
		}
		require.Equal(t, slots, inside)
		require.Len(t, ranks, people-slots, "every rank is another")
		for rank := int64(2); rank <= people-slots; rank++ {
			require.Equal(t, ranks[rank-1]+1, ranks[rank], "ranks follow the counter of arrivals")
		}
	})
}

// T21: somebody lower in the line was served first because of what they wanted to buy.
// A late joiner never passes those who wait, even with room inside.
func TestNobodyPassesTheLine(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		w.join("first")
		w.leave("in1")
		require.Equal(t, domain.StatusWaiting, w.join("second").Status)
		admitted, _ := w.admit()
		require.Equal(t, []domain.RequestID{"first"}, admitted)
	})
}

// T23, T24: people behind a leaver kept their number, two saw the same one, and
// numbers went the wrong way. Ranks close up at once and never grow.
func TestRanksCloseUpAndNeverGrow(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		waiting := w.crowd("w", 10)
		last := map[domain.RequestID]int64{}
		for _, leaver := range []domain.RequestID{"w3", "w1", "in1", "w9"} {
			w.leave(leaver)
			w.admit()
			w.crowd("later"+string(leaver), 2)
			var ranks []int64
			for _, request := range waiting {
				if place := w.place(request); place.Status == domain.StatusWaiting {
					ranks = append(ranks, place.Rank)
					if before, ok := last[request]; ok {
						require.LessOrEqual(t, place.Rank, before)
					}
					last[request] = place.Rank
				}
			}
			for i, rank := range ranks {
				require.EqualValues(t, i+1, rank)
			}
		}
	})
}

// T31: waiters were not told that the sale had ended. Their place says so, new ones
// are refused, and who is inside stays.
func TestWaitersAreToldTheSaleIsOver(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) {
			s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: 2}
		})
		w.enter("buyer", "other")
		w.join("late")
		require.True(t, w.buy("buyer", "b1", "A-1-1", "A-1-2").SoldOutChanged)
		require.Equal(t, domain.StatusSoldOut, w.status("late"))
		require.Equal(t, domain.StatusSoldOut, w.join("late").Status, "a place there is still told")
		require.Equal(t, domain.StatusActive, w.status("other"))
		require.ErrorIs(t, w.joinError("newcomer"), domain.ErrSoldOut)
		admitted, _ := w.admit()
		require.Empty(t, admitted)
		w.change(func(s *domain.Show) { s.Closed = true })
		require.Equal(t, domain.StatusClosed, w.status("late"))
		require.ErrorIs(t, w.joinError("newcomer"), domain.ErrClosed)
	})
}

// T40: the timer of one show ran out while its person was buying at another. Every
// key is of one show; what ends here touches nothing there.
func TestShowsDoNotTouchEachOther(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		a := load(t, rdb)
		b := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		a.enter("me")
		b.enter("me")
		b.mustHold("me", "h1", "A-1-1")
		a.travel(a.show.Queue.Session())
		_, ended := a.admit()
		require.Equal(t, []domain.RequestID{"me"}, ended)
		require.Equal(t, domain.StatusActive, b.status("me"))
		require.Equal(t, map[domain.SeatID]string{"A-1-1": "HELD h1"}, b.seatStates(0, "me"))
	})
}

// T45: a release raced with a poll, and the page went back to "ready" with a turn that
// was over. A newer version always tells the end, and a new turn must be claimed anew.
func TestAnOldTurnIsNeverReadyAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me")
		before := w.place("me")
		d := w.leave("me")
		require.Greater(t, d.Version, before.Version)
		after := w.place("me")
		require.Equal(t, domain.StatusLeft, after.Status)
		require.GreaterOrEqual(t, after.Version, d.Version)
		_, err := w.Claim(t.Context(), w.show.ID, "me")
		require.ErrorIs(t, err, domain.ErrNotAdmitted)
		again := w.join("me")
		require.Equal(t, domain.StatusAdmitted, again.Status, "a turn, not the old session")
		require.Greater(t, again.Version, after.Version)
		_, err = w.hold("me", "h1", "A-1-1")
		require.ErrorIs(t, err, domain.ErrNotAdmitted, "not before it is claimed")
	})
}

// T48: a token was valid although its holder was no longer inside. Every step asks
// Redis, and leaving early lowers the number inside at once.
func TestLeavingEarlyCountsAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("me", "you")
		w.mustHold("me", "h1", "A-1-1")
		require.True(t, w.leave("me").FreedSlot)
		require.EqualValues(t, 1, w.stats().Active)
		_, err := w.hold("me", "h2", "A-1-2")
		require.ErrorIs(t, err, domain.ErrNotAdmitted)
		w.travel(w.show.Queue.Session())
		_, err = w.hold("you", "h3", "A-1-2")
		require.ErrorIs(t, err, domain.ErrNotAdmitted, "over, though not swept")
		require.EqualValues(t, 0, w.stats().Active)
	})
}

// In the pre-queue nobody has a rank; the draw orders those who came early, whenever
// they came, ahead of all who come after the opening. Nothing is shuffled at the opening.
func TestDrawOrdersThePrequeue(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		opens := time.Now().Add(time.Minute)
		early := time.Now().Add(-time.Minute)
		w := load(t, rdb, func(s *domain.Show) { s.OpensAt, s.PrequeueAt = opens, &early; s.Queue.MaxActive = 1 })
		for i, request := range []domain.RequestID{"third", "first", "second"} {
			place, created, err := w.Join(t.Context(), JoinRequest{ShowID: w.show.ID, RequestID: request, DrawScore: []int64{30, 10, 20}[i]})
			require.NoError(t, err)
			require.True(t, created)
			require.Equal(t, domain.StatusPrequeue, place.Status)
			require.Zero(t, place.Rank)
		}
		admitted, _ := w.admit()
		require.Empty(t, admitted)
		w.travel(2 * time.Minute)
		require.EqualValues(t, 4, w.join("late").Rank, "room inside, but others wait")
		for i, request := range []domain.RequestID{"first", "second", "third"} {
			require.EqualValues(t, i+1, w.place(request).Rank)
		}
		admitted, _ = w.admit()
		require.Equal(t, []domain.RequestID{"first"}, admitted)
	})
}

func TestJoiningBeforeTimeTellsWhenItOpens(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		opens := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		w := load(t, rdb, func(s *domain.Show) { s.OpensAt = opens })
		var notOpen *domain.NotOpenError
		require.ErrorAs(t, w.joinError("early"), &notOpen)
		require.True(t, notOpen.OpensAt.Equal(opens))
	})
}

// The sample must stand at exactly the ranks that domain.RankGrid names, whichever
// way it is read.
func TestKnotsStandOnTheGrid(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		for _, n := range []int{0, 1, 99, 100, 101, 150, fewer(t, 2500)} {
			w := load(t, rdb, func(s *domain.Show) { s.Paused = true })
			var people []JoinRequest
			for i := range n {
				people = append(people, JoinRequest{ShowID: w.show.ID, RequestID: domain.RequestID(fmt.Sprint("p", i))})
			}
			for part := range slices.Chunk(people, maxBatch) {
				_, err := w.joinAll(t.Context(), w.show.ID, part)
				require.NoError(t, err)
			}
			for _, whole := range []int{wholeLine, embeddedLine} {
				w.whole = whole
				knots, stats, err := w.Knots(t.Context(), w.show.ID)
				require.NoError(t, err)
				grid := domain.RankGrid(int64(n))
				require.EqualValues(t, n, stats.Waiting)
				require.Len(t, knots.Scores, len(grid), "%d waiting", n)
				for i, rank := range grid {
					require.Equal(t, domain.DrawCeiling+rank, knots.Scores[i])
				}
			}
		}
	})
}

// Places of many people at many shows come back in the order asked for.
func TestPlacesOfManyShows(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		a, b := load(t, rdb), load(t, rdb)
		a.crowd("p", 5)
		b.join("p5")
		keys := []PlaceKey{{b.show.ID, "p5"}, {a.show.ID, "p5"}, {a.show.ID, "p1"}, {b.show.ID, "p1"}}
		places, found, err := a.Places(t.Context(), keys)
		require.NoError(t, err)
		require.Equal(t, []bool{true, true, true, false}, found)
		require.Equal(t, domain.StatusAdmitted, places[0].Status)
		require.EqualValues(t, 3, places[1].Rank)
		require.Equal(t, a.show.ID, places[2].ShowID)
		empty, found, err := a.Places(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, empty)
		require.Empty(t, found)
	})
}

// A caller who gives up while waiting for others' batch leaves, and the rest go on.
func TestJoiningSurvivesCallersWhoGiveUp(t *testing.T) {
	t.Parallel()
	w := load(t, testenv.Redis(t), func(s *domain.Show) { s.Queue.MaxActive = 1000 })
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			ctx, cancel := contextOf(t, i%3 == 0)
			defer cancel()
			_, _, _ = w.Join(ctx, JoinRequest{ShowID: w.show.ID, RequestID: domain.RequestID(fmt.Sprint("p", i))})
		})
	}
	wg.Wait()
	require.Equal(t, domain.StatusAdmitted, w.join("after").Status)
	require.GreaterOrEqual(t, w.stats().Joined, int64(201))
}

// T31: a turn that nobody had taken when the sale ended was told as theirs still,
// and could be claimed for nothing.
func TestAnUnclaimedTurnEndsWithTheSale(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("inside")
		w.join("turn")
		w.change(func(s *domain.Show) { s.Closed = true })
		require.Equal(t, domain.StatusClosed, w.status("turn"))
		_, err := w.Claim(w.ctx(), w.show.ID, "turn")
		require.ErrorIs(t, err, domain.ErrNotAdmitted)
		require.Equal(t, domain.StatusActive, w.status("inside"), "who is inside stays")
		w.change(func(s *domain.Show) { s.Closed = false })
		require.Equal(t, domain.StatusAdmitted, w.status("turn"), "opened again, the turn goes on")
	})
}
