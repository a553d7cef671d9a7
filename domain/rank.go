package domain

import "sort"

// Rank knots let every process tell its own waiters their rank from one small
// message: the scores that stand at chosen ranks. The first RankDense ranks are
// all there; beyond them the gap between knots grows by RankRatio, so that a
// rank read from between two knots is wrong by less than 1 %.
const (
	RankDense = 100
	RankRatio = 1.01
)

// RankGrid lists the ranks, 1-based and rising, at which a line of n is sampled.
// The last is always n. It is nil for an empty line.
func RankGrid(n int64) []int64 {
	var grid []int64
	for rank := int64(1); rank <= min(n, RankDense); rank++ {
		grid = append(grid, rank)
	}
	for exact := float64(RankDense) * RankRatio; n > RankDense; exact *= RankRatio {
		rank := int64(exact)
		if rank >= n {
			return append(grid, n)
		}
		if rank > grid[len(grid)-1] {
			grid = append(grid, rank)
		}
	}
	return grid
}

// RankKnots are the scores at RankGrid(Waiting), as of one version of a show.
type RankKnots struct {
	Waiting int64       `json:"waiting"`
	Scores  []int64     `json:"scores"`
	Lanes   []RankKnots `json:"lanes,omitempty"` // of lanes 1, 2 ...; what is above is of the ordinary line then
}

// Lane returns the knots of one line of a show; empty ones where it has no such lane.
func (k RankKnots) Lane(number int) RankKnots {
	switch {
	case number == OrdinaryLane:
		return k
	case number > 0 && number <= len(k.Lanes):
		return k.Lanes[number-1]
	}
	return RankKnots{}
}

// Rank returns the rank of a score: exact within the first RankDense, within
// 1 % beyond. Somebody who joined after the sample stands behind everybody in it.
func (k RankKnots) Rank(score int64) int64 { return k.Ranker()(score) }

// Ranker is Rank for many scores: what is the same for all of them is done once.
func (k RankKnots) Ranker() func(score int64) int64 {
	grid := RankGrid(k.Waiting)
	return func(score int64) int64 {
		if len(grid) == 0 || len(grid) != len(k.Scores) {
			return 0
		}
		i := sort.Search(len(k.Scores), func(i int) bool { return k.Scores[i] >= score })
		switch {
		case i == len(grid):
			return k.Waiting + 1
		case i == 0 || k.Scores[i] == score:
			return grid[i]
		}
		low, high := k.Scores[i-1], k.Scores[i]
		share := float64(score-low) / float64(high-low)
		return grid[i-1] + max(1, int64(share*float64(grid[i]-grid[i-1])))
	}
}
