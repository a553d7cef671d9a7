package simulate

import (
	"cmp"
	"slices"
)

// spot is somebody's place in the line.
type spot struct {
	score int64
	id    int32
}

// line is who waits, in order of score. Scores of before the opening come in any order,
// later ones rise. Who no longer waits is passed over when their turn comes.
type line struct {
	lane   uint8
	spots  []spot
	head   int
	sorted bool // spots are in order; what is added from now on is behind them all
}

func (l *line) add(s spot) {
	if n := len(l.spots); n > 0 && s.score < l.spots[n-1].score {
		l.sorted = false
	}
	l.spots = append(l.spots, s)
}

// next takes the first out who still waits; there must be one.
func (l *line) next(people []place) int32 {
	if !l.sorted {
		slices.SortFunc(l.spots[l.head:], func(a, b spot) int {
			return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.id, b.id))
		})
		l.sorted = true
	}
	for {
		s := l.spots[l.head]
		l.head++
		if p := &people[s.id]; p.standing == Waiting && p.score == s.score && p.lane == l.lane {
			return s.id
		}
	}
}

// queue is a queue of people at instants that never fall.
type queue struct {
	all  []due
	head int
}

func (q *queue) push(d due) { q.all = append(q.all, d) }

// over takes the first out when its instant is not later than now.
func (q *queue) over(now int64) (due, bool) {
	if q.head == len(q.all) || q.all[q.head].at > now {
		return due{}, false
	}
	d := q.all[q.head]
	q.head++
	if q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return d, true
}
