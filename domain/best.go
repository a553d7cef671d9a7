package domain

import (
	"math"
	"math/rand/v2"
	"slices"
)

// MaxBlocks bounds the alternatives that one best-available request carries to
// the atomic step. With as many disjoint blocks on offer, a crowd that asks at
// the same instant spreads over them instead of fighting for one.
const MaxBlocks = 32

// block is a run of neighbouring free seats and how good it is; lower is better.
type block struct {
	section    Section
	row, first int
	cost       float64
}

// BestBlocks proposes disjoint blocks of count neighbouring seats, best first:
// front rows before back ones, sections in the plan's order, near the middle of
// the physical row, and leaving no single seat behind. Near equals are shuffled with r, so that many callers
// do not all want the same block. Section "" means any. taken says which seats
// are not free. The answer is empty when no block of that size is left.
func (s Seating) BestBlocks(count int, section string, taken map[SeatID]bool, r *rand.Rand) [][]SeatID {
	var blocks []block
	for index, sec := range s.Sections {
		if section != "" && sec.Name != section {
			continue
		}
		for row := 1; row <= sec.Rows; row++ {
			blocks = append(blocks, rowBlocks(sec, index, row, count, taken, r)...)
		}
	}
	slices.SortStableFunc(blocks, func(a, b block) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
	chosen := [][]SeatID{}
	used := map[SeatID]bool{}
	for _, b := range blocks {
		seats := b.seats(count)
		if slices.ContainsFunc(seats, func(id SeatID) bool { return used[id] }) {
			continue
		}
		for _, id := range seats {
			used[id] = true
		}
		if chosen = append(chosen, seats); len(chosen) == MaxBlocks {
			break
		}
	}
	return chosen
}

// rowBlocks costs every block of one row. A row ahead, or a section named earlier,
// outweighs any shift from the middle by less than a seat and a half; a stranded
// single seat outweighs two rows.
func rowBlocks(sec Section, index, row, count int, taken map[SeatID]bool, r *rand.Rand) []block {
	const rowCost, strandedCost, nearEqual = 1.5, 3.0, 0.5
	free := make([]bool, sec.SeatsPerRow+2) // a border of taken seats at both ends
	for number := 1; number <= sec.SeatsPerRow; number++ {
		free[number] = !taken[NewSeatID(sec.Name, row, number)]
	}
	var blocks []block
	run := 0
	for number := 1; number <= sec.SeatsPerRow; number++ {
		if run++; !free[number] {
			run = 0
		}
		if run < count {
			continue
		}
		first := number - count + 1
		middle := float64(first+number) / 2
		cost := rowCost*float64(row+index) + math.Abs(middle-float64(sec.SeatsPerRow+1)/2) + nearEqual*r.Float64()
		cost += strandedCost * float64(stranded(free, first-1, -1)+stranded(free, number+1, 1))
		blocks = append(blocks, block{section: sec, row: row, first: first, cost: cost})
	}
	return blocks
}

// stranded is 1 when the seat at the edge of a block would be left single.
func stranded(free []bool, edge, step int) int {
	if free[edge] && !free[edge+step] {
		return 1
	}
	return 0
}

func (b block) seats(count int) []SeatID {
	seats := make([]SeatID, count)
	for i := range seats {
		seats[i] = NewSeatID(b.section.Name, b.row, b.first+i)
	}
	slices.Sort(seats)
	return seats
}
