package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"foyer/domain"
)

// Plan is what the operator sets. Durations are rounded to whole milliseconds.
type Plan struct {
	Queue    domain.QueueSettings
	Seats    int           // 0: a waiting room only
	Prequeue time.Duration // how long before the opening people may enter the draw; 0: no pre-queue
	Sale     time.Duration // from the opening until the sale ends
	Tick     time.Duration // between regular admit steps
}

// Crowd is who comes and what they do.
//
// People of the pre-queue come more and more until the opening. Those of the burst come
// right after it, ever fewer; the rest trickle in evenly over Trickle. Whoever is let
// in and is no no-show claims after a moment, stays for a time that is log-normal around
// Inside, picks seats after half of it, fewer than wanted where there are not enough,
// and pays at the end. Whoever found no seat tries once more at the end. No-shows have
// their page open, but nobody looks at it. Whoever gives up closes the page without a
// word after an exponential time around Patience, counted from the opening for those
// who came before; nobody comes back.
type Crowd struct {
	People        int
	PrequeueShare float64       // of all people; 0 where there is no pre-queue
	BurstShare    float64       // of all people
	BurstDecay    time.Duration // until the burst has fallen to 37 %
	Trickle       time.Duration
	NoShowShare   float64       // of all people
	GiveUpShare   float64       // of all people: do not wait for ever
	Patience      time.Duration // of those
	LookShare     float64       // of who is inside: leave without buying
	ClaimAfter    time.Duration // mean
	Inside        time.Duration // median time from claim to leaving
	Seats         []float64     // weights of 1, 2, 3 ... seats to one buyer
	LaneShares    []float64     // of all people: have a code for lane 1, 2 ... of the plan
}

// DefaultPlan returns the settings of a show that names none, a pre-queue of half an
// hour, and a sale of twelve hours at most.
func DefaultPlan() Plan {
	return Plan{Queue: domain.DefaultQueue(), Seats: 20_000, Prequeue: 30 * time.Minute, Sale: 12 * time.Hour, Tick: time.Second}
}

// DefaultCrowd returns a busy on-sale.
func DefaultCrowd() Crowd {
	return Crowd{
		People: 100_000, PrequeueShare: 0.5, BurstShare: 0.3, BurstDecay: 2 * time.Minute, Trickle: time.Hour,
		NoShowShare: 0.05, GiveUpShare: 0.2, Patience: 20 * time.Minute, LookShare: 0.2,
		ClaimAfter: 5 * time.Second, Inside: 3 * time.Minute, Seats: []float64{25, 50, 10, 15},
	}
}

// insideSpread is the sigma of the time inside: one in six stays longer than 1.65 times
// the median.
const insideSpread = 0.5

// Limits of what can be simulated within memory.
const (
	maxPeople = 5_000_000
	maxSale   = 48 * time.Hour
	maxSeats  = 100 // to one buyer
)

func ms(d time.Duration) int64 { return d.Milliseconds() }

// dice are all of a run's chances, from its seed.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0x666f796572))} }

func (d dice) chance(share float64) bool { return d.Float64() < share }

// about is an exponential time around a mean, in ms.
func (d dice) about(mean time.Duration) int64 { return int64(d.ExpFloat64() * float64(ms(mean))) }

// inside is how long somebody takes from claim to leaving, in ms.
func (d dice) inside(median time.Duration) int64 {
	return int64(float64(ms(median)) * math.Exp(insideSpread*d.NormFloat64()))
}

// lane is the number of the line that somebody joins.
func (d dice) lane(shares []float64) int {
	if len(shares) == 0 {
		return 0
	}
	at := d.Float64()
	for i, share := range shares {
		if at -= share; at < 0 {
			return i + 1
		}
	}
	return 0
}

// seats is how many seats a buyer wants.
func (d dice) seats(weights []float64) int {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	at := d.Float64() * total
	for i, w := range weights {
		if at -= w; at < 0 {
			return i + 1
		}
	}
	return len(weights)
}

// arrivals are the instants at which people come, in order, relative to the opening.
func (c Crowd) arrivals(prequeue time.Duration, d dice) []int64 {
	times := make([]int64, c.People)
	for i := range times {
		switch share := d.Float64(); {
		case prequeue > 0 && share < c.PrequeueShare:
			times[i] = int64(float64(ms(prequeue)) * (math.Sqrt(d.Float64()) - 1))
		case share < c.PrequeueShare+c.BurstShare:
			times[i] = d.about(c.BurstDecay)
		default:
			times[i] = int64(d.Float64() * float64(ms(c.Trickle)))
		}
	}
	slices.Sort(times)
	return times
}
