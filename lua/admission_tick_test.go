package lua

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// T1, J1: slots were granted to people who had left, and nobody behind them moved.
// With 10 slots and 30 waiting of whom 11 to 20 vanish, 21 to 30 get in within one grace.
func TestVanishedWaitersDoNotStallTheLine(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 10; s.Queue.SessionSeconds = 10_000 })
		w.settled()
		w.enter(w.names("in", 10)...)
		waiting := w.crowd("w", 30)
		first, gone, last := waiting[:10], waiting[10:20], waiting[20:]
		for i := range 10 {
			w.leave(domain.RequestID(fmt.Sprintf("in%d", i+1)))
		}
		admitted, _ := w.admit()
		require.Equal(t, first, admitted)
		for _, request := range first {
			w.claim(request)
		}
		admitted, ended := w.travelTicking(w.show.Queue.Grace(), last...)
		require.Empty(t, admitted, "the house is full")
		require.ElementsMatch(t, gone, ended, "the silent are dropped wherever they stand")
		for _, request := range first {
			w.leave(request)
		}
		admitted, _ = w.admit()
		require.Equal(t, last, admitted)
	})
}

// J1: the very front of a long line can have fallen silent at once, more people than
// one step drops. They use no slot, and those behind get in by calling again.
func TestGhostsAtTheFrontUseNoSlot(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.settled()
		w.enter("in1", "in2")
		for _, ghost := range w.crowd("ghost", 3*maxEndings) { // last heard of long ago
			presence := patternOf("presence").with(string(w.show.ID))
			require.NoError(t, rdb.ZAdd(t.Context(), presence, redis.Z{Member: string(ghost), Score: 1}).Err())
		}
		present := w.crowd("p", 3)
		w.leave("in1")
		result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{Batch: 1000})
		require.NoError(t, err)
		require.True(t, result.More, "one step is bounded")
		admitted, _ := w.admit()
		for _, a := range result.Admitted {
			admitted = append([]domain.RequestID{a.RequestID}, admitted...)
		}
		require.Equal(t, present[:1], admitted)
		require.EqualValues(t, 2, w.stats().Waiting)
	})
}

// T5: several slots were free and each event let in one person only. One step fills
// all, and raising the limit counts as freeing slots.
func TestEveryFreeSlotIsFilledAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		waiting := w.crowd("w", 8)
		w.leave("in1")
		w.leave("in2")
		admitted, _ := w.admit()
		require.Equal(t, waiting[:2], admitted)
		w.change(func(s *domain.Show) { s.Queue.MaxActive = 7 })
		admitted, _ = w.admit()
		require.Equal(t, waiting[2:7], admitted)
	})
}

// T7: the sweep stopped for good when nobody held exactly the number at its boundary.
// Every leading entry may vanish between two steps and the rest still expires.
func TestExpiryNeedsNoParticularEntry(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 5 })
		w.enter(w.names("in", 5)...)
		require.NoError(t, rdb.ZRem(t.Context(), "sessions:{"+string(w.show.ID)+"}:active", "in1", "in2").Err())
		w.travel(w.show.Queue.Session())
		_, ended := w.admit()
		require.ElementsMatch(t, []domain.RequestID{"in3", "in4", "in5"}, ended)
	})
}

// T11: expired state was found by scanning everything. One step ends a bounded number,
// says that there is more, and nothing that is over counts until then.
func TestExpiryIsBoundedPerStep(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const people = 2*maxEndings + 50
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = people })
		w.crowd("in", people)
		w.travel(w.show.Queue.Turn())
		stats := w.stats()
		require.EqualValues(t, 0, stats.Active)
		require.EqualValues(t, people, stats.Ended)
		for _, want := range []int{maxEndings, maxEndings, 50} {
			result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{})
			require.NoError(t, err)
			require.Len(t, result.Expired, want)
			require.Equal(t, want == maxEndings, result.More)
		}
		require.EqualValues(t, people, w.stats().Ended)
	})
}

// T12, B17: a freed slot was lost when no listener was up for the key's expiry. Nothing
// here listens; a slot is free from the instant its deadline passes.
func TestSlotsAreFreeWithoutAnyNotification(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		w.travel(w.show.Queue.Session())
		require.Equal(t, domain.StatusAdmitted, w.join("new").Status, "no sweep has run")
	})
}

// J5: many workers admit at once, and more never get in than there is room for.
func TestManyWorkersAdmitTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		w.enter("in")
		waiting := w.crowd("w", 60)
		w.change(func(s *domain.Show) { s.Queue.MaxActive = 31 })
		var mu sync.Mutex
		var admitted []domain.RequestID
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{Batch: 4})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, a := range result.Admitted {
					admitted = append(admitted, a.RequestID)
				}
			})
		}
		wg.Wait()
		require.ElementsMatch(t, waiting[:30], admitted, "each once, none twice")
		require.EqualValues(t, 31, w.stats().Active)
	})
}

// T17: every process ran the schedule, so the rate was multiplied by their number. Of
// all who ask in one interval one is told that the tick is due, and a tick that
// arrives twice counts once.
func TestOneTickPerIntervalWhateverTheNumberOfWorkers(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		for range 3 {
			w.travel(time.Minute)
			due := make(chan bool, 20)
			var wg sync.WaitGroup
			for range cap(due) {
				wg.Go(func() {
					yes, err := w.DueTick(t.Context(), w.show.ID, time.Minute)
					if err != nil {
						t.Error(err)
					}
					due <- yes
				})
			}
			wg.Wait()
			close(due)
			told := 0
			for yes := range due {
				if yes {
					told++
				}
			}
			require.Equal(t, 1, told)
		}
		opts := AdmitOptions{Tick: time.Minute}
		first, err := w.Admit(t.Context(), w.show.ID, opts)
		require.NoError(t, err)
		require.False(t, first.Skipped)
		again, err := w.Admit(t.Context(), w.show.ID, opts)
		require.NoError(t, err)
		require.True(t, again.Skipped)
		freed, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{})
		require.NoError(t, err)
		require.False(t, freed.Skipped, "a freed slot does not wait for the beat")
	})
}

// A tick keeps its beat though it is asked for late, and begins anew after a standstill.
func TestTicksKeepTheirBeat(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		due := func() bool {
			yes, err := w.DueTick(t.Context(), w.show.ID, time.Hour)
			require.NoError(t, err)
			return yes
		}
		require.True(t, due())
		w.travel(90 * time.Minute) // half an hour late
		require.True(t, due())
		require.False(t, due())
		w.travel(31 * time.Minute)
		require.True(t, due(), "the next stays where it was")
		w.travel(100 * time.Hour)
		require.True(t, due())
		require.False(t, due(), "missed ticks are not made up for")
	})
}

// T18: a lock without expiry, and a crash, stopped admissions for ever. There is no
// lock: a worker that dies after being told of its tick costs one interval.
func TestDeadTickerCostsOneInterval(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		for range 3 {
			w.travel(time.Second)
			due, err := w.DueTick(t.Context(), w.show.ID, time.Second)
			require.NoError(t, err)
			require.True(t, due, "though whoever was told before did nothing")
		}
	})
}

// T19: people were taken from the line and added to the inside in two calls; a crash
// between lost them, and two workers took the same. One script moves them.
func TestMovingInsideLosesNobody(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in1", "in2")
		waiting := w.crowd("w", 3)
		w.leave("in1")
		admitted, _ := w.admit()
		require.Equal(t, waiting[:1], admitted)
		require.Equal(t, domain.StatusAdmitted, w.status("w1"))
		again, _ := w.admit() // the same command, delivered twice
		require.Empty(t, again)
		stats := w.stats()
		require.Equal(t, stats.Joined, stats.Waiting+stats.Active+stats.Ended)
	})
}

// T34: a few seconds offline sent people to the end. The grace counts from the last
// contact, and within it nobody loses their place.
func TestGraceCountsFromTheLastContact(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.settled()
		w.enter("in1", "in2")
		w.crowd("w", 2)
		w.travelTicking(w.show.Queue.Grace()-5*time.Second, "in1", "stranger")
		require.EqualValues(t, 2, w.place("w2").Rank)
		require.NoError(t, w.Touch(t.Context(), w.show.ID, []domain.RequestID{"w2"}))
		_, ended := w.travelTicking(w.show.Queue.Grace() - 5*time.Second)
		require.Equal(t, []domain.RequestID{"w1"}, ended, "w2 was heard of")
		require.EqualValues(t, 1, w.place("w2").Rank)
		require.Equal(t, domain.StatusExpired, w.status("w1"))
		place, created, err := w.Join(t.Context(), JoinRequest{ShowID: w.show.ID, RequestID: "w1"})
		require.NoError(t, err)
		require.True(t, created)
		require.EqualValues(t, 2, place.Rank, "a new place at the end")
		members, err := rdb.ZRange(t.Context(), "presence:{"+string(w.show.ID)+"}", 0, -1).Result()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"w1", "w2"}, members, "presence is of those who wait")
	})
}

// After an outage people come back late through no fault of theirs: nobody is dropped
// until all have had the time to renew their presence.
func TestNobodyIsDroppedRightAfterAnOutage(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.SessionSeconds = 10_000 })
		w.settled()
		w.enter("in1", "in2")
		w.crowd("w", 2)
		w.travel(5 * time.Minute) // nobody ticked, nobody could make contact
		_, ended := w.admit()
		require.NotContains(t, ended, domain.RequestID("w1"))
		require.NoError(t, w.Touch(t.Context(), w.show.ID, []domain.RequestID{"w1"}))
		_, ended = w.travelTicking(w.show.Queue.Grace()+20*time.Second, "w1")
		require.Empty(t, ended)
		_, ended = w.travelTicking(15*time.Second, "w1")
		require.Equal(t, []domain.RequestID{"w2"}, ended)
	})
}

// J2: ended places stayed in the count of the line. Counts come from the sets.
func TestEndedPlacesLeaveTheCounts(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.settled()
		w.enter("in1", "in2")
		w.crowd("w", 4)
		w.leave("w1")
		w.travelTicking(w.show.Queue.Grace(), "w2", "w3")
		stats := w.stats()
		require.EqualValues(t, 2, stats.Waiting)
		require.Equal(t, stats.Joined, stats.Waiting+stats.Active+stats.Ended)
	})
}

// J3: who left between being let in and coming in kept the slot. A turn has a deadline.
func TestUnclaimedTurnsGoToTheNext(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive = 1 })
		require.Equal(t, domain.StatusAdmitted, w.join("absent").Status)
		place := w.join("next")
		require.Equal(t, domain.StatusWaiting, place.Status)
		w.travelTicking(w.show.Queue.Turn()/2, "next")
		require.Equal(t, domain.StatusWaiting, w.status("next"))
		w.travel(w.show.Queue.Turn() / 2)
		admitted, ended := w.admit()
		require.Equal(t, []domain.RequestID{"absent"}, ended)
		require.Equal(t, []domain.RequestID{"next"}, admitted)
		place = w.place("next")
		require.Equal(t, w.show.Queue.Turn(), place.ClaimBy.Sub(place.ServerTime).Round(time.Second))
		place = w.claim("next")
		require.Equal(t, w.show.Queue.Session(), place.ExpiresAt.Sub(place.ServerTime).Round(time.Second))
		until := *place.ExpiresAt
		w.travel(time.Second)
		require.Equal(t, until, *w.claim("next").ExpiresAt, "claiming again does not prolong")
	})
}

// No 60 seconds see more admissions than the rate, by joining and by ticks together.
func TestRateHoldsInEveryMinute(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive, s.Queue.RatePerMinute, s.Queue.GraceSeconds = 1000, 7, 3600 })
		w.crowd("p", 40)
		require.EqualValues(t, 7, w.stats().Active)
		var at []time.Time
		for range 300 {
			w.travel(time.Second)
			result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{})
			require.NoError(t, err)
			for _, a := range result.Admitted {
				at = append(at, a.ClaimBy)
			}
		}
		require.GreaterOrEqual(t, len(at), 4*7-7)
		for i := range at[:max(0, len(at)-7)] {
			require.GreaterOrEqual(t, at[i+7].Sub(at[i]), time.Minute)
		}
	})
}

// Turns are written some at a time, in as many parts as there are: everybody gets one, in
// order, until the instant they are told. What the rate counts is forgotten after a minute.
func TestEverybodyLetInHasATurn(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb, func(s *domain.Show) { s.Queue.MaxActive, s.Queue.GraceSeconds, s.Paused = 1000, 3600, true })
		for _, n := range []int{1, 15, 16, 44, 45} {
			people := w.crowd(fmt.Sprintf("p%d-", n), n)
			w.change(func(s *domain.Show) { s.Paused = false })
			result, err := w.Admit(t.Context(), w.show.ID, AdmitOptions{})
			require.NoError(t, err)
			require.Len(t, result.Admitted, n)
			for i, a := range result.Admitted {
				require.Equal(t, people[i], a.RequestID)
				require.Equal(t, a.ClaimBy, *w.place(a.RequestID).ClaimBy)
			}
			require.EqualValues(t, n, result.Stats.Active)
			require.EqualValues(t, n, result.Stats.AdmittedLastMinute)
			require.EqualValues(t, 1, rdb.HLen(t.Context(), "rate:{"+string(w.show.ID)+"}").Val())
			w.change(func(s *domain.Show) { s.Paused = true })
			w.travel(62 * time.Second)
		}
	})
}

// A pause lets nobody in, takes nobody's place, and ends when it is lifted.
func TestPauseStandsStillAndEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := load(t, rdb)
		w.enter("in")
		w.change(func(s *domain.Show) { s.Paused = true })
		place := w.join("w1")
		require.Equal(t, domain.StatusWaiting, place.Status)
		require.EqualValues(t, 1, place.Rank)
		require.Nil(t, place.ETA)
		admitted, _ := w.admit()
		require.Empty(t, admitted)
		w.mustHold("in", "h1", "A-1-1") // who is inside goes on
		w.change(func(s *domain.Show) { s.Paused = false })
		admitted, _ = w.admit()
		require.Equal(t, []domain.RequestID{"w1"}, admitted)
	})
}
