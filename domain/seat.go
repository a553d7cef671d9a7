package domain

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a seating plan.
const (
	MaxSections        = 200
	MaxRowsPerSection  = 1000
	MaxSeatsPerRow     = 1000
	MaxSeatsPerShow    = 200_000
	MaxSectionNameSize = 32
)

// HoldCeilingFactor bounds a hold's whole life: extending never reaches beyond
// this many times the hold time, counted from the first hold.
const HoldCeilingFactor = 2

// Seating is a show's plan and the rules for taking seats from it. A show
// without sections is a waiting room only: it has no seats and never sells out.
type Seating struct {
	HoldSeconds int       `json:"holdSeconds"` // life of a hold
	SeatLimit   int       `json:"seatLimit"`   // seats held or bought by one person
	Sections    []Section `json:"sections"`
}

// Section is a block of equal rows at one price.
type Section struct {
	Name        string `json:"name"`
	Rows        int    `json:"rows"`
	SeatsPerRow int    `json:"seatsPerRow"`
	Price       Price  `json:"price"`
}

// DefaultSeating returns the rules of a show that names none.
func DefaultSeating() Seating { return Seating{HoldSeconds: 300, SeatLimit: 4, Sections: []Section{}} }

// HoldTime is the life of a hold.
func (s Seating) HoldTime() time.Duration { return time.Duration(s.HoldSeconds) * time.Second }

// HoldCeiling is the longest a hold may live by extending.
func (s Seating) HoldCeiling() time.Duration { return HoldCeilingFactor * s.HoldTime() }

var sectionForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_ -]*[A-Za-z0-9])?$`)

func (s Seating) check(p *problems) {
	p.between("seating.holdSeconds", s.HoldSeconds, 5, 7200)
	p.between("seating.seatLimit", s.SeatLimit, 1, 100)
	if len(s.Sections) > MaxSections {
		p.add("seating.sections", "must be at most %d", MaxSections)
		return
	}
	seen := map[string]bool{}
	for i, section := range s.Sections {
		field := fmt.Sprintf("seating.sections[%d]", i)
		if !sectionForm.MatchString(section.Name) || len(section.Name) > MaxSectionNameSize {
			p.add(field+".name", "must be 1 to %d letters, digits, spaces, - or _", MaxSectionNameSize)
		}
		if seen[section.Name] {
			p.add(field+".name", "stands twice")
		}
		seen[section.Name] = true
		p.between(field+".rows", section.Rows, 1, MaxRowsPerSection)
		p.between(field+".seatsPerRow", section.SeatsPerRow, 1, MaxSeatsPerRow)
		if section.Price < 0 {
			p.add(field+".price", "must not be negative")
		}
	}
	if s.Capacity() > MaxSeatsPerShow {
		p.add("seating.sections", "must have at most %d seats together", MaxSeatsPerShow)
	}
}

// Capacity is the number of seats of the plan.
func (s Seating) Capacity() int {
	n := 0
	for _, section := range s.Sections {
		n += section.Rows * section.SeatsPerRow
	}
	return n
}

// NewSeatID names a seat; row and number count from 1.
func NewSeatID(section string, row, number int) SeatID {
	return SeatID(section + "-" + strconv.Itoa(row) + "-" + strconv.Itoa(number))
}

// split reads a seat id from its end, since a section's name may have hyphens.
func (id SeatID) split() (section string, row, number int, ok bool) {
	rest, last, ok1 := cutLast(string(id))
	section, middle, ok2 := cutLast(rest)
	row, ok3 := plainNumber(middle)
	number, ok4 := plainNumber(last)
	return section, row, number, ok1 && ok2 && ok3 && ok4
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// plainNumber refuses signs and leading zeros, so that a seat has one name only.
func plainNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && strconv.Itoa(n) == s
}

func (s Seating) section(name string) (Section, bool) {
	for _, section := range s.Sections {
		if section.Name == name {
			return section, true
		}
	}
	return Section{}, false
}

// SectionOf returns the section that a seat belongs to, and whether the plan has the seat.
func (s Seating) SectionOf(id SeatID) (Section, bool) {
	name, row, number, ok := id.split()
	if !ok {
		return Section{}, false
	}
	section, ok := s.section(name)
	return section, ok && row <= section.Rows && number <= section.SeatsPerRow
}

// PriceOf sums the price of seats. It fails with *UnknownSeatsError naming every
// seat that the plan does not have.
func (s Seating) PriceOf(seats []SeatID) (Price, error) {
	var sum Price
	var unknown []SeatID
	for _, id := range seats {
		section, ok := s.SectionOf(id)
		if !ok {
			unknown = append(unknown, id)
			continue
		}
		sum += section.Price
	}
	if len(unknown) > 0 {
		return 0, &UnknownSeatsError{Seats: unknown}
	}
	return sum, nil
}

// AllSeats lists the plan's seats in the plan's order: by section, row, number.
func (s Seating) AllSeats() []SeatID {
	all := make([]SeatID, 0, s.Capacity())
	for _, section := range s.Sections {
		for row := 1; row <= section.Rows; row++ {
			for number := 1; number <= section.SeatsPerRow; number++ {
				all = append(all, NewSeatID(section.Name, row, number))
			}
		}
	}
	return all
}

// CheckSelection validates the seats of one request: at least one, none twice,
// no more than one person may have, all in the plan. It returns them sorted.
// It fails with *InvalidError, *UnknownSeatsError or *LimitError.
func (s Seating) CheckSelection(seats []SeatID) ([]SeatID, error) {
	if len(seats) == 0 {
		return nil, &InvalidError{Problems: []Problem{{Field: "seats", Detail: "must not be empty"}}}
	}
	if len(seats) > s.SeatLimit {
		return nil, &LimitError{Limit: s.SeatLimit}
	}
	if _, err := s.PriceOf(seats); err != nil {
		return nil, err
	}
	sorted := slices.Sorted(slices.Values(seats))
	if len(slices.Compact(slices.Clone(sorted))) < len(sorted) {
		return nil, &InvalidError{Problems: []Problem{{Field: "seats", Detail: "a seat stands twice"}}}
	}
	return sorted, nil
}

// SeatState is what everybody may know about a seat.
type SeatState string

// The states of a seat.
const (
	SeatFree SeatState = "FREE"
	SeatHeld SeatState = "HELD" // in a live hold or being booked
	SeatSold SeatState = "SOLD"
)

// Seat is one seat's state; HoldID is set only for the holder's own eyes.
type Seat struct {
	ID     SeatID    `json:"id"`
	State  SeatState `json:"state"`
	HoldID HoldID    `json:"holdId,omitempty"`
}

// SeatChanges are seats that are not free, or that changed after a version,
// as of Version.
type SeatChanges struct {
	Epoch   int64
	Version int64
	Seats   []Seat
}

// Hold is seats kept for one person until ExpiresAt.
type Hold struct {
	HoldID     HoldID    `json:"holdId"`
	ShowID     ShowID    `json:"showId"`
	Seats      []SeatID  `json:"seats"`
	Price      Price     `json:"price"`
	ExpiresAt  time.Time `json:"expiresAt"`
	CeilingAt  time.Time `json:"ceilingAt"` // extending never reaches beyond
	ServerTime time.Time `json:"serverTime"`
	Version    int64     `json:"version"` // the show's seat version with this hold in it
}
