package verify

import (
	"slices"
	"time"

	"foyer/domain"
	"foyer/lua"
	"foyer/store"
)

// sales: SQL agrees with itself.
func (c *checker) sales() {
	rows := map[domain.BookingID][]domain.SeatID{}
	for _, seat := range c.SQL.Sold {
		rows[seat.BookingID] = append(rows[seat.BookingID], seat.SeatID)
		if b, known := c.SQL.Bookings[seat.BookingID]; !known || b.Status != domain.BookingConfirmed {
			wrong(c, "sold seat=confirmed booking", seat.SeatID, "is sold to booking %s, which is %q", seat.BookingID, b.Status)
		}
	}
	bought := map[domain.RequestID]int{}
	for id, b := range c.SQL.Bookings {
		if b.Status != domain.BookingConfirmed {
			continue
		}
		bought[b.RequestID] += len(b.Seats)
		if want := slices.Sorted(slices.Values(b.Seats)); !slices.Equal(rows[id], want) {
			wrong(c, "one live booking a seat", id, "is confirmed for %v and has %v", want, rows[id])
		}
	}
	for request, n := range bought {
		if limit := c.SQL.Show.Seating.SeatLimit; n > limit {
			wrong(c, "limit of a person", request, "bought %d seats of %d; right only where the limit was lowered since", n, limit)
		}
	}
	c.handled()
}

// handled: every decided booking was decided by its own command, once. That of a decision
// so old that commands of its age are forgotten need not be there.
func (c *checker) handled() {
	decided, cancelled := map[domain.BookingID][]store.HandledCommand{}, map[domain.BookingID]int{}
	for _, h := range c.SQL.Handled {
		if h.Kind == "cancel" {
			cancelled[h.BookingID]++
			continue
		}
		decided[h.BookingID] = append(decided[h.BookingID], h)
	}
	for id, b := range c.SQL.Bookings {
		commands := decided[id]
		want := 1
		if b.Status == domain.BookingPending || b.Reason == domain.ReasonFailed { // given up on without having been decided
			want = 0
		}
		switch {
		case want == 1 && len(commands) == 0 && forgettable(b, b.DecidedAt):
		case len(commands) != want:
			wrong(c, "one command a booking", id, "is %s by %d commands", b.Status, len(commands))
		case want == 1 && commands[0].CommandID != b.CommandID:
			wrong(c, "one command a booking", id, "was decided by command %s and not by its own, %s", commands[0].CommandID, b.CommandID)
		case want == 1 && (commands[0].Outcome == domain.BookingConfirmed) != (b.Status != domain.BookingRejected):
			wrong(c, "one command a booking", id, "was %s by its command and is %s", commands[0].Outcome, b.Status)
		}
		if taken := b.Status == domain.BookingCancelled; taken != (cancelled[id] == 1) && (cancelled[id] > 0 || !forgettable(b, b.CancelledAt)) {
			wrong(c, "one command a booking", id, "is %s by %d cancellations", b.Status, cancelled[id])
		}
	}
}

// forgettable reports whether a command that had its effect at that time may have been
// forgotten since.
func forgettable(b store.LedgerBooking, at *time.Time) bool {
	return at != nil && b.Age-at.Sub(b.CreatedAt) > domain.MinCommandRetention
}

// agreement: Redis has sold what SQL has sold, and to the same.
func (c *checker) agreement() {
	inSQL := map[domain.SeatID]domain.BookingID{}
	for _, seat := range c.SQL.Sold {
		inSQL[seat.SeatID] = seat.BookingID
		if got := c.Redis.Seats[seat.SeatID]; got.Kind != lua.SeatKindSold || got.BookingID != seat.BookingID {
			wrong(c, "sold in SQL=sold in Redis", seat.SeatID, "SQL has it sold to booking %s, Redis has %q", seat.BookingID, got.Value)
		}
	}
	for id, seat := range c.Redis.Seats {
		if seat.Kind == lua.SeatKindSold && inSQL[id] == "" {
			wrong(c, "sold in SQL=sold in Redis", id, "Redis has %q, SQL has not sold it", seat.Value)
		}
	}
	outcomes := map[string]domain.BookingStatus{"C": domain.BookingConfirmed, "R": domain.BookingRejected, "X": domain.BookingCancelled}
	for id, outcome := range c.Redis.Settled {
		b, known := c.SQL.Bookings[id]
		if !known {
			wrong(c, "settled=decided", id, "Redis has settled it as %s, SQL does not know it", outcome)
		} else if b.Status != outcomes[outcome] {
			wrong(c, "settled=decided", id, "Redis has settled it as %s, in SQL it is %s", outcome, b.Status)
		}
	}
	for id, hold := range c.Redis.Holds {
		if hold.BookingID == "" {
			continue
		}
		b, known := c.SQL.Bookings[hold.BookingID]
		switch {
		case known && b.Status != domain.BookingPending:
			wrong(c, "settled=decided", hold.BookingID, "it is %s, and hold %s of it is still being booked", b.Status, id)
		case !known && c.Redis.At.Sub(hold.Begun) > overdue:
			wrong(c, "settled=decided", hold.BookingID, "hold %s is being booked for it since %s, and SQL does not know it",
				id, hold.Begun.Format(time.RFC3339))
		}
	}
}

// people: what each holds and has bought is within the limit, and counted right.
func (c *checker) people() {
	buyer := map[domain.BookingID]domain.RequestID{}
	for id, b := range c.SQL.Bookings {
		buyer[id] = b.RequestID
	}
	bought, held := map[domain.RequestID]int64{}, map[domain.RequestID]int64{}
	for _, seat := range c.Redis.Seats {
		if request, known := buyer[seat.BookingID]; known && seat.Kind == lua.SeatKindSold {
			bought[request]++
		}
	}
	for _, hold := range c.Redis.Holds {
		if hold.State != lua.HoldPlain || hold.Deadline.After(c.Redis.At) {
			held[hold.RequestID] += int64(len(hold.Seats))
		}
	}
	for request := range union(bought, c.Redis.Bought) {
		if bought[request] != c.Redis.Bought[request] {
			wrong(c, "bought counter=seats", request, "%d counted, %d seats bought", c.Redis.Bought[request], bought[request])
		}
	}
	for request := range union(bought, held) {
		if limit := c.Redis.Fields["seat_limit"]; bought[request]+held[request] > limit {
			wrong(c, "limit of a person", request, "%d seats bought and %d held, of %d; right only where the limit was lowered since",
				bought[request], held[request], limit)
		}
	}
}

func union[K comparable, A, B any](a map[K]A, b map[K]B) map[K]bool {
	all := make(map[K]bool, len(a)+len(b))
	for key := range a {
		all[key] = true
	}
	for key := range b {
		all[key] = true
	}
	return all
}
