package simulate

import (
	"cmp"
	"slices"
	"time"
)

// Result is what came of a run. Times are in seconds, and count from the opening.
type Result struct {
	Seed uint64 `json:"seed"`
	Plan Limits `json:"plan"`

	People  int `json:"people"`
	Joined  int `json:"joined"`
	Refused int `json:"refused"` // came when there were no new places: sold out or over
	LetIn   int `json:"letIn"`
	NoShows int `json:"noShows"` // let in, and let their turn pass
	Buyers  int `json:"buyers"`
	NotIn   int `json:"notIn"` // had a place and were never let in

	SeatsSold    int      `json:"seatsSold"`
	SoldOutAfter *float64 `json:"soldOutAfter"` // nil: was not sold out
	EndedAfter   float64  `json:"endedAfter"`

	// Waits count from joining, or from the opening for those who came before.
	WaitOfLetIn Percentiles `json:"waitOfLetIn"`
	// WaitOfAll counts the wait of those never let in until they went away, or until it
	// was sold out or over: without them a wait looks the better the fewer get in.
	WaitOfAll Percentiles `json:"waitOfAll"`

	PeakWaiting        int     `json:"peakWaiting"`
	PeakInside         int     `json:"peakInside"`
	PeakSockets        int     `json:"peakSockets"`
	PeakLetInPerMinute int     `json:"peakLetInPerMinute"` // in any 60 seconds
	MeanLetInPerMinute float64 `json:"meanLetInPerMinute"` // from the opening to the last one

	Lanes []LaneResult `json:"lanes,omitempty"` // of a plan with lanes: the ordinary line, then the lanes

	Redis  Redis    `json:"redis"`
	Series []Sample `json:"series"`
	Waits  []Band   `json:"waits"`
}

// Limits are the plan as it is told beside a result.
type Limits struct {
	MaxActive       int     `json:"maxActive"`
	RatePerMinute   int     `json:"ratePerMinute"`
	TurnSeconds     int     `json:"turnSeconds"`
	SessionSeconds  int     `json:"sessionSeconds"`
	GraceSeconds    int     `json:"graceSeconds"`
	LateJoinSeconds int     `json:"lateJoinSeconds"`
	OverAdmit       int     `json:"overAdmitPercent"`
	Seats           int     `json:"seats"`
	PrequeueSeconds float64 `json:"prequeueSeconds"`
	TickSeconds     float64 `json:"tickSeconds"`
}

// Percentiles of a wait in seconds; of nobody they are 0.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Band tells how long those had waited who were let in from one instant on until the
// next band begins.
type Band struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	P10  float64 `json:"p10"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
}

// LaneResult is what came of the people of one line.
type LaneResult struct {
	Name        string      `json:"name"` // empty: the ordinary line
	Weight      int         `json:"weight"`
	Joined      int         `json:"joined"`
	LetIn       int         `json:"letIn"`
	WaitOfLetIn Percentiles `json:"waitOfLetIn"`
}

// How much of the course of a sale is kept in a result.
const (
	keptSamples = 400
	keptBands   = 60
)

func (s *sale) result(seed uint64) *Result {
	g, q := s.gauge, s.plan.Queue
	r := &Result{
		Seed: seed,
		Plan: Limits{
			MaxActive: q.MaxActive, RatePerMinute: q.RatePerMinute, TurnSeconds: q.TurnSeconds, SessionSeconds: q.SessionSeconds,
			GraceSeconds: q.GraceSeconds, LateJoinSeconds: q.LateJoinSeconds, OverAdmit: q.OverAdmitPercent, Seats: s.plan.Seats, PrequeueSeconds: s.plan.Prequeue.Seconds(), TickSeconds: s.plan.Tick.Seconds(),
		},
		People: s.crowd.People, Joined: g.joined, Refused: g.refused, LetIn: g.ins, NoShows: g.noShows, Buyers: g.buyers,
		NotIn: g.joined - g.ins, SeatsSold: s.room.Sold(), EndedAfter: g.sinceOpening(g.end),
		PeakWaiting: g.peak.Waiting, PeakInside: g.peak.Inside, PeakSockets: g.peak.Sockets, PeakLetInPerMinute: g.mostIn(),
		Redis: g.load.estimate(), Series: thin(g.samples, keptSamples),
	}
	stop := s.ends
	if g.soldOutAt > 0 {
		after := g.sinceOpening(g.soldOutAt)
		r.SoldOutAfter, stop = &after, g.soldOutAt
	}
	if minutes := time.Duration(g.lastIn-s.opens) * time.Millisecond; minutes > 0 {
		r.MeanLetInPerMinute = float64(g.ins) / max(minutes.Minutes(), 1)
	}
	r.waits(s, stop)
	r.byLane(s)
	return r
}

// byLane tells how each line fared.
func (r *Result) byLane(s *sale) {
	q := s.plan.Queue
	for number, weight := range q.LaneWeights() {
		lane := LaneResult{Name: q.LaneName(number), Weight: weight}
		var waits []int64
		for i := range s.visitors {
			v := &s.visitors[i]
			if v.since == 0 || int(v.lane) != number {
				continue
			}
			lane.Joined++
			if v.in {
				lane.LetIn++
				waits = append(waits, max(v.until-v.since, 0))
			}
		}
		lane.WaitOfLetIn = percentiles(waits)
		r.Lanes = append(r.Lanes, lane)
	}
}

// waits tells how long people waited; who still did at the stop gave up then.
func (r *Result) waits(s *sale, stop int64) {
	type entry struct{ at, wait int64 }
	var in []entry
	var all []int64
	for i := range s.visitors {
		v := &s.visitors[i]
		if v.since == 0 {
			continue
		}
		until := cmp.Or(v.until, stop)
		wait := max(until-v.since, 0)
		all = append(all, wait)
		if v.in {
			in = append(in, entry{until, wait})
		}
	}
	r.WaitOfAll = percentiles(all)
	slices.SortFunc(in, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	own := make([]int64, len(in))
	for i, e := range in {
		own[i] = e.wait
	}
	r.WaitOfLetIn = percentiles(slices.Clone(own))
	span := max((s.gauge.lastIn-s.opens)/keptBands, 1000)
	for i := 0; i < len(in); {
		band := (in[i].at - s.opens) / span
		j := i
		for j < len(in) && (in[j].at-s.opens)/span == band {
			j++
		}
		part := own[i:j]
		slices.Sort(part)
		r.Waits = append(r.Waits, Band{
			From: seconds(band * span), To: seconds((band + 1) * span),
			P10: percentile(part, 0.1), P50: percentile(part, 0.5), P90: percentile(part, 0.9),
		})
		i = j
	}
}

// percentiles sorts the waits, which are in ms.
func percentiles(waits []int64) Percentiles {
	slices.Sort(waits)
	return Percentiles{P50: percentile(waits, 0.5), P90: percentile(waits, 0.9), P99: percentile(waits, 0.99)}
}

// percentile is the smallest wait that a share of people did not exceed, in s.
func percentile(sorted []int64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(share * float64(len(sorted)))
	if float64(rank) < share*float64(len(sorted)) {
		rank++
	}
	return seconds(sorted[max(rank, 1)-1])
}
