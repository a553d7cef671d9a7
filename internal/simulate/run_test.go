package simulate

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// exact is a crowd without chance but in when it comes: everybody is there before the
// opening, claims at once, stays for a minute and buys one seat.
func exact(people int) (Plan, Crowd) {
	plan := DefaultPlan()
	plan.Queue = domain.QueueSettings{MaxActive: 10, RatePerMinute: 1000, TurnSeconds: 30, SessionSeconds: 600, GraceSeconds: 60}
	plan.Seats, plan.Prequeue = 0, time.Minute
	return plan, Crowd{People: people, PrequeueShare: 1, Inside: time.Minute, Seats: []float64{1}}
}

// With 10 slots of exactly a minute each, 100 people are let in by tens, a minute apart.
// Times inside are log-normal; a spread of nothing is had by a session that ends first.
func TestSlotsOfOneLengthServeByTens(t *testing.T) {
	t.Parallel()
	plan, crowd := exact(100)
	plan.Queue.SessionSeconds, crowd.Inside = 60, 10*time.Hour // everybody's session runs out
	r := play(t, plan, crowd, 1)
	require.Equal(t, 100, r.LetIn)
	require.Zero(t, r.Buyers)
	require.InDelta(t, 600, r.EndedAfter, 1)
	require.Equal(t, 10, r.PeakInside)
	require.Equal(t, Percentiles{P50: 240, P90: 480, P99: 540}, r.WaitOfLetIn)
	require.Equal(t, r.WaitOfLetIn, r.WaitOfAll)
	require.Equal(t, 100, r.PeakWaiting)
	require.Equal(t, 100, r.PeakSockets)
}

// 5 a minute and room for all: the last of 20 gets in when the fourth lot does. A lot is
// 61 s apart, since seconds are counted whole.
func TestTheRateAloneSetsTheWait(t *testing.T) {
	t.Parallel()
	plan, crowd := exact(20)
	plan.Queue.MaxActive, plan.Queue.RatePerMinute = 1000, 5
	r := play(t, plan, crowd, 1)
	require.Equal(t, 20, r.LetIn)
	require.Equal(t, Percentiles{P50: 61, P90: 183, P99: 183}, r.WaitOfLetIn)
	require.Equal(t, 5, r.PeakLetInPerMinute)
	require.Equal(t, 20, r.Buyers)
}

// No-shows hold a slot for a turn and no longer.
func TestNoShowsCostATurnEach(t *testing.T) {
	t.Parallel()
	plan, crowd := exact(40)
	crowd.NoShowShare = 1
	r := play(t, plan, crowd, 1)
	require.Equal(t, 40, r.NoShows)
	require.Zero(t, r.Buyers)
	require.Equal(t, Percentiles{P50: 30, P90: 90, P99: 90}, r.WaitOfLetIn)
	require.Equal(t, 120.0, r.EndedAfter)
}

func TestSeatsAreSoldOnceAndTheSaleEndsThen(t *testing.T) {
	t.Parallel()
	plan, crowd := exact(500)
	plan.Seats, crowd.Seats = 101, []float64{0, 1} // pairs, and one is left over
	crowd.BurstShare, crowd.PrequeueShare, crowd.BurstDecay = 0.5, 0.5, time.Hour
	r := play(t, plan, crowd, 1)
	require.Equal(t, 101, r.SeatsSold)
	require.Equal(t, 51, r.Buyers)
	require.NotNil(t, r.SoldOutAfter)
	require.LessOrEqual(t, *r.SoldOutAfter, r.EndedAfter)
	require.Positive(t, r.Refused)
	require.Equal(t, r.People, r.Joined+r.Refused)
	require.Equal(t, r.Joined, r.LetIn+r.NotIn)
	require.Equal(t, *r.SoldOutAfter, r.WaitOfAll.P99, "who still waits at the end has waited until then")
	require.Less(t, r.WaitOfLetIn.P50, r.WaitOfAll.P50, "who got in waited less than all did")
}

func TestWhoGivesUpIsDroppedAndCostsNoSlot(t *testing.T) {
	t.Parallel()
	plan, crowd := exact(1000)
	crowd.GiveUpShare, crowd.Patience = 1, time.Minute
	r := play(t, plan, crowd, 1)
	require.Less(t, r.LetIn, 200)
	require.Equal(t, r.LetIn, r.Buyers+r.NoShows)
	require.Less(t, r.WaitOfAll.P50, 60.0)
	require.Less(t, r.EndedAfter, 3600.0)
}

// The promises of the waiting room hold at every step of a large, untidy sale.
func TestNeverTooManyAndAlwaysInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		plan, crowd := DefaultPlan(), DefaultCrowd()
		plan.Queue.MaxActive, plan.Queue.RatePerMinute, plan.Seats = 60, 100, 1500
		crowd.People, crowd.Inside = 4000, 40*time.Second
		opens := int64(birth) + ms(plan.Prequeue)
		s := newSale(plan, crowd, seed)
		require.NoError(t, s.play(t.Context(), crowd.arrivals(plan.Prequeue, s.dice)))
		perSecond, from := map[int64]int{}, map[int64]int64{}
		var scores []int64
		connected := 0
		for id, v := range s.visitors {
			if v.online {
				connected++
			}
			if !v.in {
				continue
			}
			require.GreaterOrEqual(t, v.until, opens)
			perSecond[v.until/1000]++
			if score := s.room.people[id].score; score > 0 {
				scores, from[score] = append(scores, score), v.until
			}
		}
		require.NotEmpty(t, scores)
		slices.Sort(scores)
		for i := range scores[1:] {
			require.LessOrEqual(t, from[scores[i]], from[scores[i+1]], "in order of the line")
		}
		for second := range perSecond {
			sum := 0
			for i := range int64(61) {
				sum += perSecond[second+i]
			}
			require.LessOrEqual(t, sum, 100, "no 60 seconds see more than the rate")
		}
		r := s.result(seed)
		require.LessOrEqual(t, r.PeakInside, 60)
		require.LessOrEqual(t, r.PeakLetInPerMinute, 100)
		require.LessOrEqual(t, r.SeatsSold, 1500)
		require.Equal(t, connected, s.gauge.sockets, "sockets are those of the people who are there")
	}
}

func TestTheSameSeedGivesTheSameSale(t *testing.T) {
	t.Parallel()
	plan, crowd := DefaultPlan(), DefaultCrowd()
	crowd.People = 20_000
	one, again, other := play(t, plan, crowd, 7), play(t, plan, crowd, 7), play(t, plan, crowd, 8)
	require.Equal(t, asJSON(t, one), asJSON(t, again))
	require.NotEqual(t, one.WaitOfAll, other.WaitOfAll)
}

// What is written stays as it is, until somebody means to change it.
func TestResultsAreWritten(t *testing.T) {
	t.Parallel()
	plan, crowd := DefaultPlan(), DefaultCrowd()
	plan.Seats, crowd.People = 300, 1500
	plan.Queue.MaxActive = 25
	r := play(t, plan, crowd, 3)
	var table, drawing bytes.Buffer
	require.NoError(t, r.WriteTable(&table))
	require.NoError(t, r.WriteSVG(&drawing))
	golden(t, "sale.txt", table.Bytes())
	golden(t, "sale.svg", drawing.Bytes())
	golden(t, "sale.json", asJSON(t, r))
	decoder := xml.NewDecoder(&drawing)
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

// A show that nobody could get into is drawn as well.
func TestAnEmptySaleIsWritten(t *testing.T) {
	t.Parallel()
	plan, crowd := exact(1)
	plan.Prequeue, plan.Sale = 0, time.Millisecond
	crowd.PrequeueShare, crowd.BurstShare, crowd.Trickle = 0, 0, 10*time.Hour
	r := play(t, plan, crowd, 1)
	require.Equal(t, 1, r.Refused)
	var b strings.Builder
	require.NoError(t, r.WriteTable(&b))
	require.NoError(t, r.WriteSVG(&b))
	require.NotContains(t, b.String(), "NaN")
	require.ErrorIs(t, r.WriteSVG(failing{}), io.ErrClosedPipe)
	require.ErrorIs(t, r.WriteTable(failing{}), io.ErrClosedPipe)
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAPlanThatMakesNoSenseIsRefusedWithAllThatIsWrong(t *testing.T) {
	t.Parallel()
	plan, crowd := DefaultPlan(), DefaultCrowd()
	plan.Queue.MaxActive, plan.Seats, plan.Prequeue, plan.Sale, plan.Tick = 0, -1, -1, 0, 0
	crowd.People, crowd.NoShowShare, crowd.PrequeueShare, crowd.Inside, crowd.Seats = 0, math.NaN(), 0.9, -1, []float64{0}
	_, err := Run(t.Context(), plan, crowd, 1)
	for _, said := range []string{"maxActive", "seats must", "prequeue must", "sale", "tick", "people", "no-show share", "burst share", "inside", "weights"} {
		require.ErrorContains(t, err, said)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, DefaultPlan(), DefaultCrowd(), 1)
	require.ErrorIs(t, err, context.Canceled)
}

// A million people within a minute on two cores: so that plans are tried and not guessed.
func TestAMillionPeopleTakeLessThanAMinute(t *testing.T) {
	t.Parallel()
	plan, crowd := DefaultPlan(), DefaultCrowd()
	crowd.People = 1_000_000
	began := time.Now()
	r := play(t, plan, crowd, 1)
	require.Less(t, time.Since(began), time.Minute)
	require.Equal(t, 1_000_000, r.Joined+r.Refused)
	require.Equal(t, 1000, r.PeakInside)
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", 1234567: "1,234,567", -123456: "-123,456"} {
		require.Equal(t, want, whole(n))
	}
	require.Equal(t, "1.5s", clock(1.46))
	require.Equal(t, "1h1m1s", clock(3661.4))
	require.Equal(t, "-0:30:05", hours(-1805))
	require.Equal(t, "12:00:00", hours(43_200))
	for highest, want := range map[float64]float64{0: 1, 3: 1, 9: 5, 40: 10, 1000: 500, 763_000: 200_000} {
		require.Equal(t, want, niceStep(highest, 4), "%v", highest)
	}
	require.Equal(t, 43_200.0, niceTime(1e7, 9))
}
