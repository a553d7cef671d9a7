package simulate

// What Redis does for each thing that happens: the commands that reach it, and how long
// they keep its core busy in us, network and all. Measured with Redis 7.0 on a busy
// two-core machine, so an idle one does it in less than half. Joins are reckoned as in a
// rush, when many share a call; a join that travels alone takes five times as long.
const (
	joinSteps, joinMicros   = 1, 20.0
	claimSteps, claimMicros = 2, 60.0   // the step and what is told
	leaveSteps, leaveMicros = 2, 55.0   // the step and what is told
	buySteps, buyMicros     = 11, 430.0 // hold, begin, published, complete; the command's way on its stream; what is told
	tickSteps, tickMicros   = 9, 200.0  // due, sweep, admit, knots; the command's way on its stream; what is told
	freedSteps, freedMicros = 5, 130.0  // admit; the command's way on its stream; what is told
	admitMicros             = 4.0       // for each person let in
	knotMicros              = 3.7       // for each rank sampled
	touchMicros             = 2.7       // for each person whose presence is renewed
)

// Memory of Redis in bytes, measured with 100,000 people. One who waits stands in the
// line and in presence, one who is inside among the active and the claimed, and one whose
// place ended in the list of these.
const (
	waiterBytes = 260
	insideBytes = 225
	endedBytes  = 140
	seatBytes   = 260 // of a seat sold: its state, its log, and its share of what is kept of the booking
)

// Presence is renewed this often at most, as many times in a show's grace, and so many
// people in one step.
const (
	touchEvery = 30 // s
	touchShare = 3
	touchBatch = 500
)

// load is the work of Redis, by the second.
type load struct {
	plan  Plan
	steps []float64
	busy  []float64 // us
	bytes int
	stood int64 // end of what is reckoned in for presence
}

func (l *load) at(now int64) int {
	second := int((now - birth) / 1000)
	for len(l.steps) <= second {
		l.steps, l.busy = append(l.steps, 0), append(l.busy, 0)
	}
	return second
}

func (l *load) add(now int64, steps int, micros float64) {
	second := l.at(now)
	l.steps[second] += float64(steps)
	l.busy[second] += micros
}

// stands reckons what it costs that people are there: presence and memory.
func (l *load) stands(now int64, waiting, inside, joined, sold int) {
	second := l.at(now)
	share := seconds(now-max(l.stood, birth)) / min(touchEvery, l.plan.Queue.Grace().Seconds()/touchShare)
	l.stood = now
	l.busy[second] += float64(waiting) * share * touchMicros
	l.steps[second] += float64((waiting+touchBatch-1)/touchBatch) * share
	l.bytes = max(l.bytes, waiting*waiterBytes+inside*insideBytes+(joined-waiting-inside)*endedBytes+sold*seatBytes)
}

// Redis is an estimate of what Redis has to do.
type Redis struct {
	PeakStepsPerSecond float64 `json:"peakStepsPerSecond"` // in one second
	MeanStepsPerSecond float64 `json:"meanStepsPerSecond"`
	PeakBusy           float64 `json:"peakBusy"` // share of one core, in one second
	MeanBusy           float64 `json:"meanBusy"`
	PeakBytes          int     `json:"peakBytes"`
}

func (l *load) estimate() Redis {
	r := Redis{PeakBytes: l.bytes}
	for i, steps := range l.steps {
		busy := l.busy[i] / 1e6
		r.PeakStepsPerSecond, r.PeakBusy = max(r.PeakStepsPerSecond, steps), max(r.PeakBusy, busy)
		r.MeanStepsPerSecond += steps / float64(len(l.steps))
		r.MeanBusy += busy / float64(len(l.steps))
	}
	return r
}
