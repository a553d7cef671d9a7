package verify

import (
	"slices"

	"foyer/domain"
	"foyer/lua"
)

// line: everybody who joined is in one place, and no more are inside than allowed.
func (c *checker) line() {
	a, show := c.Redis, c.SQL.Show.ID
	if got := a.Waiting + a.Inside + a.Fields["ended"]; got != a.Fields["joined"] {
		wrong(c, "waiting+active+ended=joined", show, "%d + %d + %d is not %d", a.Waiting, a.Inside, a.Fields["ended"], a.Fields["joined"])
	}
	if a.Present != a.Waiting+a.TurnsPresent {
		wrong(c, "presence of those who wait", show, "%d wait, %d of those inside are not claimed yet, and the presence of %d is kept", a.Waiting, a.TurnsPresent, a.Present)
	}
	if a.Astray > 0 {
		wrong(c, "a lane of the show", show, "%d wait in a lane that the show does not have", a.Astray)
	}
	if active := a.Inside - a.Over; active > a.Fields["max_active"] {
		wrong(c, "active<=maxActive", show, "%d are inside and %d may be; right only while people leave after the limit was lowered",
			active, a.Fields["max_active"])
	}
	for _, request := range a.WaitingInside {
		wrong(c, "one place a person", request, "waits and is inside")
	}
	for _, request := range a.ClaimedOutside {
		wrong(c, "one place a person", request, "has claimed a turn and is not inside")
	}
}

// counters: what is counted is what is there.
func (c *checker) counters() {
	a, show := c.Redis, c.SQL.Show.ID
	sold, held := int64(0), int64(0)
	for _, seat := range a.Seats {
		if seat.Kind == lua.SeatKindSold {
			sold++
		} else {
			held++
		}
	}
	if sold != a.Fields["sold"] {
		wrong(c, "sold counter=seats", show, "%d counted, %d seats are sold in Redis", a.Fields["sold"], sold)
	}
	if held != a.Fields["held"] {
		wrong(c, "held counter=seats", show, "%d counted, %d seats are held in Redis", a.Fields["held"], held)
	}
	capacity := a.Fields["capacity"]
	if want := capacity > 0 && sold >= capacity; a.SoldOut != want {
		wrong(c, "sold-out key", show, "it says %t; %d of %d seats are sold", a.SoldOut, sold, capacity)
	}
	switch epoch := a.Fields["epoch"]; {
	case epoch < c.SQL.Show.Epoch:
		wrong(c, "epoch", show, "Redis has the older state %d, SQL has begun %d", epoch, c.SQL.Show.Epoch)
	case epoch > c.SQL.Show.Epoch:
		wrong(c, "epoch", show, "SQL has the older state %d, Redis has %d", c.SQL.Show.Epoch, epoch)
	}
}

// seats: each is in the plan, and one that is held is held by one hold that knows it.
// That a seat is not held and sold at once follows from there being one value for each.
func (c *checker) seats() {
	for id, seat := range c.Redis.Seats {
		if _, err := c.SQL.Show.Seating.PriceOf([]domain.SeatID{id}); err != nil {
			wrong(c, "seats of the plan", id, "is not one of the show's seats")
		}
		switch seat.Kind {
		case lua.SeatKindSold:
		case lua.SeatKindHeld, lua.SeatKindBooking:
			if why := c.disowned(id, seat); why != "" {
				wrong(c, "held seat=hold", id, "%q: %s", seat.Value, why)
			}
		default:
			wrong(c, "held seat=hold", id, "%q means nothing", seat.Value)
		}
	}
}

// disowned says why a held seat is not its hold's, or nothing.
func (c *checker) disowned(id domain.SeatID, seat lua.AuditedSeat) string {
	hold, known := c.Redis.Holds[seat.HoldID]
	booking := hold.State == lua.HoldBegun || hold.State == lua.HoldPublished
	switch {
	case !known:
		return "there is no such hold"
	case !slices.Contains(hold.Seats, id):
		return "its hold is of other seats"
	case hold.RequestID != seat.RequestID:
		return "its hold is another's"
	case booking != (seat.Kind == lua.SeatKindBooking) || booking && hold.BookingID != seat.BookingID:
		return "its hold is in another state"
	}
	return ""
}

// holds: each has its seats, and is found by its owner and by its deadline.
func (c *checker) holds() {
	a := c.Redis
	deadlines, begun, owned := setOf(a.Deadlines), setOf(a.Begun), map[domain.HoldID]domain.RequestID{}
	for request, holds := range a.Owners {
		for _, id := range holds {
			owned[id] = request
			if _, known := a.Holds[id]; !known {
				wrong(c, "index of holds", id, "%s is said to own it and it is not there", request)
			}
		}
	}
	for _, id := range slices.Concat(a.Deadlines, a.Begun) {
		if _, known := a.Holds[id]; !known {
			wrong(c, "index of holds", id, "it has a deadline and is not there")
		}
	}
	for id, hold := range a.Holds {
		plain, lapsed := hold.State == lua.HoldPlain, hold.State == lua.HoldLapsed
		if deadlines[id] != (plain || lapsed) || begun[id] == (plain || lapsed) || lapsed == (owned[id] == hold.RequestID) {
			wrong(c, "index of holds", id, "a hold in state %s of %s is not found as such", hold.State, hold.RequestID)
		}
		for _, seat := range hold.Seats {
			value := a.Seats[seat]
			// What is being booked may be sold to somebody else by now; SQL decides.
			if value.HoldID != id && (plain || value.Kind != lua.SeatKindSold) {
				wrong(c, "hold=its seats", id, "%s of it is %q", seat, value.Value)
			}
		}
	}
}

func setOf[ID comparable](list []ID) map[ID]bool {
	set := make(map[ID]bool, len(list))
	for _, id := range list {
		set[id] = true
	}
	return set
}
