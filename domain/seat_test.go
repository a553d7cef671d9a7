package domain_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
)

func plan() domain.Seating {
	s := domain.DefaultSeating()
	s.Sections = []domain.Section{{Name: "A", Rows: 3, SeatsPerRow: 9, Price: 2550}, {Name: "A-1", Rows: 2, SeatsPerRow: 4, Price: 1000}}
	return s
}

func TestSeatsHaveOneNameEach(t *testing.T) {
	t.Parallel()
	s := plan()
	require.Len(t, s.AllSeats(), s.Capacity())
	for _, id := range s.AllSeats() {
		_, ok := s.SectionOf(id)
		require.True(t, ok, id)
	}
	section, ok := s.SectionOf("A-1-2-4")
	require.True(t, ok, "a section's name may have a hyphen")
	require.Equal(t, "A-1", section.Name)
	for _, id := range []domain.SeatID{"", "A", "A-1", "A-0-1", "A-1-0", "A-4-1", "A-1-10", "A-01-1", "A-+1-1", "A--1-1", "B-1-1", "A-1-1 ", "-1-1"} {
		_, ok := s.SectionOf(id)
		require.False(t, ok, "%q is no seat", id)
	}
}

func TestSelectionIsCheckedWhole(t *testing.T) {
	t.Parallel()
	s := plan()
	seats, err := s.CheckSelection([]domain.SeatID{"A-1-2", "A-1-1"})
	require.NoError(t, err)
	require.Equal(t, []domain.SeatID{"A-1-1", "A-1-2"}, seats, "sorted, so that two requests never cross")

	var unknown *domain.UnknownSeatsError
	_, err = s.CheckSelection([]domain.SeatID{"A-1-1", "Z-1-1", "A-9-9"})
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, []domain.SeatID{"Z-1-1", "A-9-9"}, unknown.Seats)
	var invalid *domain.InvalidError
	_, err = s.CheckSelection([]domain.SeatID{"A-1-1", "A-1-1"})
	require.ErrorAs(t, err, &invalid)
	_, err = s.CheckSelection(nil)
	require.ErrorAs(t, err, &invalid)
	var limit *domain.LimitError
	_, err = s.CheckSelection([]domain.SeatID{"A-1-1", "A-1-2", "A-1-3", "A-1-4", "A-1-5"})
	require.ErrorAs(t, err, &limit)
}

func TestPricesStayExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]domain.Price{"25": 2500, "25.5": 2550, "0.05": 5, "0": 0, "19.99": 1999} {
		var p domain.Price
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		require.Equal(t, want, p)
		back, err := json.Marshal(p)
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
	for _, text := range []string{"1.005", `"5"`, "1e30", "true"} {
		var p domain.Price
		require.Error(t, json.Unmarshal([]byte(text), &p), text)
	}
	sum, err := plan().PriceOf([]domain.SeatID{"A-1-1", "A-1-1-1"})
	require.NoError(t, err)
	require.Equal(t, domain.Price(3550), sum)
}

// E6, E7, E12: rows were merged, the middle wandered, gaps counted as seats.
func TestBestBlocksAreNeighboursOfOneRowAndDisjoint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := plan()
		taken := map[domain.SeatID]bool{}
		for _, id := range s.AllSeats() {
			taken[id] = rapid.Bool().Draw(t, "taken")
		}
		count := rapid.IntRange(1, 4).Draw(t, "count")
		blocks := s.BestBlocks(count, "", taken, rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))))
		seen := map[domain.SeatID]bool{}
		for _, block := range blocks {
			if len(block) != count {
				t.Fatalf("block of %d seats, want %d", len(block), count)
			}
			sections := map[string]bool{}
			for _, id := range block {
				section, ok := s.SectionOf(id)
				if !ok || taken[id] || seen[id] {
					t.Fatalf("seat %s is unknown, taken or offered twice", id)
				}
				sections[section.Name], seen[id] = true, true
			}
			if len(sections) != 1 {
				t.Fatalf("block %v crosses sections", block)
			}
		}
		if len(blocks) == 0 && longestRun(s, taken) >= count {
			t.Fatalf("no block of %d offered though there is one", count)
		}
	})
}

func longestRun(s domain.Seating, taken map[domain.SeatID]bool) int {
	longest := 0
	for _, section := range s.Sections {
		for row := 1; row <= section.Rows; row++ {
			run := 0
			for number := 1; number <= section.SeatsPerRow; number++ {
				if run++; taken[domain.NewSeatID(section.Name, row, number)] {
					run = 0
				}
				longest = max(longest, run)
			}
		}
	}
	return longest
}

func TestBestBlockIsInFrontAndInTheMiddle(t *testing.T) {
	t.Parallel()
	blocks := plan().BestBlocks(3, "A", nil, rand.New(rand.NewPCG(1, 2)))
	require.NotEmpty(t, blocks)
	require.Equal(t, []domain.SeatID{"A-1-4", "A-1-5", "A-1-6"}, blocks[0])
	require.Empty(t, plan().BestBlocks(3, "Z", nil, rand.New(rand.NewPCG(1, 2))))
	require.Empty(t, plan().BestBlocks(10, "", nil, rand.New(rand.NewPCG(1, 2))))
}
