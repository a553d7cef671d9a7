package domain

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// MaxLanes bounds the lanes of a show, and maxLaneWeight what each may weigh.
const (
	MaxLanes      = 8
	maxLaneWeight = 100
)

// Lane is a line of its own beside the ordinary one, for people with a code for it. All
// lines share a show's rate and room by their weights, turn by turn; the share of a line
// where nobody waits goes to the others.
type Lane struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
}

// OrdinaryLane is the number of the line that everybody joins without a code, and
// OrdinaryName what it is called where it needs a name. Lanes are numbered from 1, as they
// stand in the settings.
const (
	OrdinaryLane = 0
	OrdinaryName = "ordinary"
)

// LaneSpan is how far the scores of one lane reach: those of lane n are from n*LaneSpan
// on, and within it are what they would be without lanes.
const LaneSpan int64 = 4 * DrawCeiling

var laneNameForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

func (q QueueSettings) checkLanes(p *problems) {
	p.between("queue.ordinaryWeight", q.OrdinaryWeight, 0, maxLaneWeight)
	if len(q.Lanes) > MaxLanes {
		p.add("queue.lanes", "must be at most %d", MaxLanes)
	}
	for i, lane := range q.Lanes {
		if !laneNameForm.MatchString(lane.Name) {
			p.add(fmt.Sprintf("queue.lanes[%d].name", i), "must match [a-z0-9-]{1,32}")
		}
		if lane.Name == OrdinaryName {
			p.add(fmt.Sprintf("queue.lanes[%d].name", i), "is the name of the line without a lane")
		}
		if q.LaneNumber(lane.Name) != i+1 {
			p.add(fmt.Sprintf("queue.lanes[%d].name", i), "is the name of another lane")
		}
		p.between(fmt.Sprintf("queue.lanes[%d].weight", i), lane.Weight, 1, maxLaneWeight)
	}
}

// LaneNumber is the number of the lane of a name; 0 when there is none.
func (q QueueSettings) LaneNumber(name string) int {
	return 1 + slices.IndexFunc(q.Lanes, func(lane Lane) bool { return lane.Name == name })
}

// LaneName is the name of a lane; empty for the ordinary line.
func (q QueueSettings) LaneName(number int) string {
	if number < 1 || number > len(q.Lanes) {
		return ""
	}
	return q.Lanes[number-1].Name
}

// LaneWeights are the weights of the ordinary line and the lanes, by number; nil where
// there are no lanes. The ordinary line weighs 1 unless it is said otherwise.
func (q QueueSettings) LaneWeights() []int {
	if len(q.Lanes) == 0 {
		return nil
	}
	weights := []int{max(q.OrdinaryWeight, 1)}
	for _, lane := range q.Lanes {
		weights = append(weights, lane.Weight)
	}
	return weights
}

// KeepsLanes reports an *InvalidError when the settings lack a lane of those before, or
// number it otherwise: people may stand in it, and codes for it may be about.
func (q QueueSettings) KeepsLanes(before QueueSettings) error {
	for i, lane := range before.Lanes {
		if q.LaneName(i+1) != lane.Name {
			return &InvalidError{Problems: []Problem{{
				Field: "queue.lanes", Detail: "must begin with the lanes that are there, in their order; weights may change and lanes may be added",
			}}}
		}
	}
	return nil
}

// LaneLine is how one line of a show with lanes stands.
type LaneLine struct {
	Weight  int64 `json:"weight"`
	Waiting int64 `json:"waiting"`
}

// LaneLines are the lines of a show with lanes by number, the ordinary one first; those
// that are not there weigh nothing. It is zero for a show without lanes. On the wire it
// is an array of the lines that are there.
type LaneLines [1 + MaxLanes]LaneLine

// Len is how many lines there are.
func (l LaneLines) Len() int {
	n := slices.IndexFunc(l[:], func(line LaneLine) bool { return line.Weight == 0 })
	if n < 0 {
		return len(l)
	}
	return n
}

// weight is that of all lines together.
func (l LaneLines) weight() (total int64) {
	for _, line := range l {
		total += line.Weight
	}
	return total
}

// MarshalJSON writes the lines that are there.
func (l LaneLines) MarshalJSON() ([]byte, error) { return json.Marshal(l[:l.Len()]) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *LaneLines) UnmarshalJSON(text []byte) error {
	*l = LaneLines{}
	var lines []LaneLine
	if err := json.Unmarshal(text, &lines); err != nil {
		return err
	}
	if len(lines) > len(l) {
		return fmt.Errorf("read lanes: %d are too many", len(lines))
	}
	copy(l[:], lines)
	return nil
}

// WaitingIn is how many wait in one line of the show.
func (s Stats) WaitingIn(lane int) int64 {
	if s.Lanes.Len() == 0 {
		return s.Waiting
	}
	return s.Lanes[lane].Waiting
}

// Turns is which turn of the show that of a rank in a lane will be, counted from the next
// one, if nobody comes or goes: the rank itself where there are no lanes.
func (s Stats) Turns(lane int, rank int64) int64 {
	if rank <= 0 || lane < 0 || lane >= s.Lanes.Len() {
		return rank
	}
	turns, own := rank, s.Lanes[lane].Weight
	for i, line := range s.Lanes {
		if i != lane {
			turns += min(line.Waiting, rank*line.Weight/own)
		}
	}
	return turns
}
