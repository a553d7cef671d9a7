package simulate

import (
	"slices"

	"foyer/domain"
)

// Sample is how things stood at one instant.
type Sample struct {
	At      float64 `json:"at"` // s since the opening
	Waiting int     `json:"waiting"`
	Inside  int     `json:"inside"`
	Sold    int     `json:"sold"`
	Sockets int     `json:"sockets"`
}

// sampleEvery is how far apart samples are at least, in ms.
const sampleEvery = 1000

// gauge counts what goes on.
type gauge struct {
	plan  Plan
	opens int64

	samples []Sample
	sampled int64
	sockets int
	peak    Sample // the highest of each
	end     int64  // last tick

	joined, refused, ins, claims, noShows, buyers, left int
	soldOutAt                                           int64 // 0: never
	insBySecond                                         []int
	lastIn                                              int64
	load                                                load
}

func newGauge(plan Plan, opens int64) *gauge {
	return &gauge{plan: plan, opens: opens, load: load{plan: plan}}
}

func (g *gauge) sample(now int64, waiting, inside, sold int) {
	s := Sample{At: g.sinceOpening(now), Waiting: waiting, Inside: inside, Sold: sold, Sockets: g.sockets}
	g.load.stands(now, waiting, inside, g.joined, sold)
	if now-g.sampled >= sampleEvery || len(g.samples) == 0 {
		g.samples, g.sampled = append(g.samples, s), now
	}
}

func (g *gauge) sinceOpening(now int64) float64 { return seconds(now - g.opens) }

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func (g *gauge) join(now int64, waiting int) {
	g.peak.Waiting = max(g.peak.Waiting, waiting)
	g.joined++
	g.sockets++
	g.peak.Sockets = max(g.peak.Sockets, g.sockets)
	g.load.add(now, joinSteps, joinMicros)
}

func (g *gauge) letIn(now int64, inside int) {
	g.ins++
	g.peak.Inside = max(g.peak.Inside, inside)
	g.lastIn = now
	second := int((now - birth) / 1000)
	for len(g.insBySecond) <= second {
		g.insBySecond = append(g.insBySecond, 0)
	}
	g.insBySecond[second]++
}

// admitted notes one admit step and what its worker does around it.
func (g *gauge) admitted(now int64, tick bool, n, waiting int) {
	knots := 0
	if tick || waiting <= domain.RankDense {
		knots = len(domain.RankGrid(int64(waiting)))
	}
	steps, micros := freedSteps, freedMicros
	if tick {
		steps, micros = tickSteps, tickMicros
	}
	g.load.add(now, steps, micros+float64(n)*admitMicros+float64(knots)*knotMicros)
}

func (g *gauge) claim(now int64) {
	g.claims++
	g.load.add(now, claimSteps, claimMicros)
}

func (g *gauge) buy(now int64, soldOut bool) {
	g.buyers++
	g.load.add(now, buySteps, buyMicros)
	if soldOut && g.soldOutAt == 0 {
		g.soldOutAt = now
	}
}

func (g *gauge) leave(now int64) {
	g.left++
	g.load.add(now, leaveSteps, leaveMicros)
}

// mostIn is the most people let in within any 60 whole seconds.
func (g *gauge) mostIn() int {
	most, sum := 0, 0
	for i, n := range g.insBySecond {
		sum += n
		if i >= rateWindow {
			sum -= g.insBySecond[i-rateWindow]
		}
		most = max(most, sum)
	}
	return most
}

// thin keeps about n samples, evenly, with the first and the last.
func thin(samples []Sample, n int) []Sample {
	if len(samples) <= n {
		return samples
	}
	kept := make([]Sample, 0, n)
	for i := range n {
		kept = append(kept, samples[i*(len(samples)-1)/(n-1)])
	}
	return slices.Clip(kept)
}
