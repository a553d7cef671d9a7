package crowd

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Summary counts what a crowd did.
type Summary struct {
	Visits    int64 // people who came
	Joined    int64 // places taken
	Entered   int64 // turns claimed
	Held      int64 // holds
	Conflicts int64 // holds refused because somebody was faster
	Booked    int64 // bookings confirmed
	Rejected  int64 // bookings refused
	Cancelled int64 // bookings cancelled by their person
	Released  int64 // holds given back
	Vanished  int64 // people who went without a word, waiting or with a hold
	Left      int64 // people who said that they leave
	TurnedOff int64 // people told that the show is sold out, closed or not open yet
	Expired   int64 // places that ran out of time
	Messages  int64 // said in the lobby
	Failures  int64 // visits that ended in an error
}

// String is the summary as one line for people.
func (s Summary) String() string {
	var b strings.Builder
	for _, part := range []struct {
		count int64
		what  string
	}{
		{s.Visits, "came"}, {s.Joined, "joined"}, {s.Entered, "entered"}, {s.Held, "holds"}, {s.Conflicts, "conflicts"},
		{s.Booked, "booked"}, {s.Rejected, "rejected"}, {s.Cancelled, "cancelled"}, {s.Released, "released"},
		{s.Vanished, "vanished"}, {s.Left, "left"}, {s.TurnedOff, "turned away"}, {s.Expired, "expired"},
		{s.Messages, "messages"}, {s.Failures, "failures"},
	} {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", part.count, part.what)
	}
	return b.String()
}

// counts is a Summary that many people add to.
type counts struct {
	visits, joined, entered, held, conflicts, booked, rejected, cancelled,
	released, vanished, left, turnedOff, expired, messages, failures atomic.Int64
}

func (c *counts) summary() Summary {
	return Summary{
		Visits: c.visits.Load(), Joined: c.joined.Load(), Entered: c.entered.Load(), Held: c.held.Load(),
		Conflicts: c.conflicts.Load(), Booked: c.booked.Load(), Rejected: c.rejected.Load(),
		Cancelled: c.cancelled.Load(), Released: c.released.Load(), Vanished: c.vanished.Load(),
		Left: c.left.Load(), TurnedOff: c.turnedOff.Load(), Expired: c.expired.Load(),
		Messages: c.messages.Load(), Failures: c.failures.Load(),
	}
}
