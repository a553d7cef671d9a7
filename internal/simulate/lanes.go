package simulate

// slack is what sums of fractions may lose.
const slack = 1e-9

// lane is one line of a show and its share of the turns. See prelude_lanes.lua in package
// lua, which computes the same in the same order.
type lane struct {
	line
	weight  float64
	waiting int     // in this lane, silent or not
	due     float64 // when its next turn begins, in turns' time from now
}

// newLanes makes the lanes of some weights; without any there is one.
func newLanes(weights []int) []lane {
	if len(weights) == 0 {
		weights = []int{1}
	}
	lanes := make([]lane, len(weights))
	for i, weight := range weights {
		lanes[i].lane, lanes[i].weight = uint8(i), float64(weight)
	}
	return lanes
}

// nextLane is whose turn is next: as if all lanes moved on at once, each at its share of
// the rate, the one whose next turn has begun and is over first. Somebody must wait.
func (r *Room) nextLane() *lane {
	if len(r.lanes) == 1 {
		return &r.lanes[0]
	}
	total, first, waits := 0.0, 0.0, false
	for i := range r.lanes {
		if l := &r.lanes[i]; l.waiting > 0 {
			total += l.weight
			if !waits || l.due < first {
				first, waits = l.due, true
			}
		}
	}
	var chosen *lane
	overAt := 0.0
	for i := range r.lanes {
		l := &r.lanes[i]
		if first > 0 { // nothing has begun: time goes on until it has
			l.due -= first
		}
		ends := l.due + 1/l.weight
		if l.waiting > 0 && l.due <= slack && (chosen == nil || ends < overAt-slack) {
			chosen, overAt = l, ends
		}
	}
	chosen.due = overAt
	for i := range r.lanes {
		r.lanes[i].due -= 1 / total
	}
	return chosen
}

// settleLanes ends a step: a lane where nobody waits saves nothing up.
func (r *Room) settleLanes() {
	for i := range r.lanes {
		if l := &r.lanes[i]; l.waiting == 0 {
			l.due = max(l.due, 0)
		}
	}
}
