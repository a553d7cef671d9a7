package domain

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// PlaceFacts are all that is known of one place at one instant, for explaining it.
type PlaceFacts struct {
	Place        Place
	Stats        Stats
	Past         []PlaceEvent // oldest first; the beginning may be forgotten
	JoinedAfter  *time.Time   // of somebody in order of arrival; nil: not known
	JoinedBefore *time.Time
	LastContact  *time.Time // of somebody who waits
	DropsFrom    time.Time  // from when silence ends places: some time after an outage
	Turn, Grace  time.Duration
	Allowance    int64           // turns that may be given in a minute
	Admissions   map[int64]int64 // second -> turns given, of the last minute
	Queue        QueueSettings   // for the names of lanes; zero where nobody needs them
}

// PlaceEvent is something that happened to a place.
type PlaceEvent struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// Rule is a rule that decides about a place now.
type Rule struct {
	Code string `json:"code"` // stable, such as NO_VACANCY
	Text string `json:"text"` // for people
}

// ends say why a place is over, by the words that Redis keeps.
var ends = map[string]string{
	"turn": "the turn ran out before it was claimed", "session": "the time inside ran out", "silent": "nothing was heard for longer than the grace",
	"left": "left by their own wish", "removed": "removed by an operator", "booked": "booked, so the session was done",
	"admitted": "was given a turn", "claimed": "claimed the turn", "extended": "the turn was extended once, since the page could not be seen",
}

// Describe puts a kept word into a sentence; words it does not know stay as they are.
func Describe(word string) string {
	if text, known := ends[word]; known {
		return text
	}
	return word
}

// History tells what happened to the place, oldest first.
func (f PlaceFacts) History() []PlaceEvent {
	var history []PlaceEvent
	switch {
	case f.JoinedBefore != nil && f.JoinedAfter != nil:
		history = append(history, PlaceEvent{At: *f.JoinedBefore, What: fmt.Sprintf("joined, within the %s before", f.JoinedBefore.Sub(*f.JoinedAfter).Round(time.Millisecond))})
	case f.JoinedBefore != nil:
		history = append(history, PlaceEvent{At: *f.JoinedBefore, What: "had joined by then"})
	}
	history = append(history, f.Past...)
	if f.Place.Status == StatusAdmitted && f.Place.ClaimBy != nil && !f.wasExtended() {
		history = append(history, PlaceEvent{At: f.Place.ClaimBy.Add(-f.Turn), What: Describe("admitted")})
	}
	if f.LastContact != nil {
		history = append(history, PlaceEvent{At: *f.LastContact, What: "was last heard of"})
	}
	slices.SortStableFunc(history, func(a, b PlaceEvent) int { return a.At.Compare(b.At) })
	return history
}

func (f PlaceFacts) wasExtended() bool {
	return len(f.Past) > 0 && f.Past[len(f.Past)-1].What == Describe("extended")
}

// Rules tell what decides about the place now, the most telling first.
func (f PlaceFacts) Rules() []Rule {
	place := f.Place
	switch place.Status {
	case StatusPrequeue:
		return []Rule{{"DRAW_OPEN", "the draw is open; nobody has a rank or is let in before it closes"}}
	case StatusAdmitted:
		return []Rule{{"TURN", "has a turn until " + stamp(place.ClaimBy) + ", then the next person gets it"}}
	case StatusActive:
		return []Rule{{"SESSION", "is inside until " + stamp(place.ExpiresAt) + ", or until they book or leave"}}
	case StatusSoldOut:
		return []Rule{{"SOLD_OUT", "every seat is sold; should one come back, the line moves on and the place counts again"}}
	case StatusClosed:
		return []Rule{{"CLOSED", "the sale has ended"}}
	case StatusExpired, StatusLeft:
		why := "the place is over"
		if n := len(f.Past); n > 0 {
			why += ": " + f.Past[n-1].What
		}
		return []Rule{{"OVER", why + "; joining again gives a new place at the end of the line"}}
	}
	return f.waitingRules()
}

func (f PlaceFacts) waitingRules() []Rule {
	var rules []Rule
	add := func(code, format string, args ...any) {
		rules = append(rules, Rule{code, fmt.Sprintf(format, args...)})
	}
	s, now := f.Stats, f.Place.ServerTime
	if s.Phase == PhasePaused {
		add("PAUSED", "the sale is paused; nobody is let in but by an operator")
	}
	if s.Active >= s.MaxActive {
		add("NO_VACANCY", "%d are inside and %d may be; the next slot comes free when somebody books, leaves or runs out of time", s.Active, s.MaxActive)
	}
	if budget := f.Allowance - s.AdmittedLastMinute; budget <= 0 {
		add("RATE", "%d were let in during the last minute and %d may be; the next may come in at %s", s.AdmittedLastMinute, f.Allowance, stamp(f.nextBudget()))
	}
	if f.LastContact != nil {
		silence := now.Sub(*f.LastContact).Round(time.Second)
		switch dropped := f.LastContact.Add(f.Grace); {
		case !now.Before(dropped) && now.Before(f.DropsFrom):
			add("SILENT", "nothing was heard for %s; nobody is dropped before %s, since people may have been unable to make contact", silence, stamp(&f.DropsFrom))
		case !now.Before(dropped):
			add("SILENT", "nothing was heard for %s, more than the grace of %s; is dropped at the next step", silence, f.Grace)
		case silence > f.Grace/2:
			add("SILENT", "nothing was heard for %s; is dropped at %s unless heard of", silence, stamp(&dropped))
		}
	}
	if ahead := f.Place.Rank - 1; ahead > 0 {
		add("LINE", "%d people are ahead", ahead)
	} else if len(rules) == 0 {
		add("NEXT", "is next and is let in at the next step")
	}
	if lines := s.Lanes.Len(); f.Place.Lane < lines {
		add("LANE", "stands in %s, which has %d of %d turns while somebody waits in every line", f.line(), s.Lanes[f.Place.Lane].Weight, s.Lanes.weight())
	}
	return rules
}

// line names the line that the place is in, at a show with lanes.
func (f PlaceFacts) line() string {
	if f.Place.Lane == OrdinaryLane {
		return "the ordinary line"
	}
	return fmt.Sprintf("lane %d, %q", f.Place.Lane, f.Queue.LaneName(f.Place.Lane))
}

// nextBudget is when the oldest admissions of the last minute no longer count.
func (f PlaceFacts) nextBudget() *time.Time {
	const window = 60 // seconds that Redis looks back, beside the running one
	over := f.Stats.AdmittedLastMinute - f.Allowance
	for _, second := range slices.Sorted(maps.Keys(f.Admissions)) {
		if second < f.Place.ServerTime.Unix()-window {
			continue
		}
		if over -= f.Admissions[second]; over < 0 {
			at := time.Unix(second+window+1, 0)
			return &at
		}
	}
	return nil
}

func stamp(at *time.Time) string {
	if at == nil {
		return "a time that is not known"
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}
