package verify

import (
	"time"

	"foyer/domain"
	"foyer/events"
)

const (
	// overdue is when a booking without a command, or begun without a row, is lost:
	// the workers look for both every few seconds.
	overdue = time.Minute
	// stale is when a command that nobody takes, or nobody renews, has no worker.
	stale = 2 * time.Minute
)

// commands: every one that is not done is on its way to be, and what was given up on
// has an end.
func (c *checker) commands() {
	coming, cancelling := map[domain.BookingID]map[domain.CommandID]bool{}, map[domain.BookingID]bool{}
	now := c.Redis.At
	for _, u := range c.Unfinished {
		switch {
		case u.Pending && u.Idle > stale:
			wrong(c, "pending entries", u.EntryID, "%s %s on %s is with consumer %s, silent for %s: does a worker run?",
				u.Type, u.CommandID, u.Stream, u.Consumer, u.Idle.Round(time.Second))
		case !u.Pending && c.Loaded && now.Sub(u.At) > stale:
			wrong(c, "pending entries", u.EntryID, "%s %s on %s was read by nobody since %s: does a worker run?",
				u.Type, u.CommandID, u.Stream, u.At.Format(time.RFC3339))
		}
		switch u.Type {
		case events.TypeCancelBooking:
			cancelling[u.BookingID] = true
		case events.TypeBookSeats:
			if coming[u.BookingID] == nil {
				coming[u.BookingID] = map[domain.CommandID]bool{}
			}
			coming[u.BookingID][u.CommandID] = true
		}
	}
	dead := map[domain.BookingID]bool{}
	for _, letter := range c.Letters {
		if letter.Reason == "" || letter.OriginID == "" {
			wrong(c, "dead letters", letter.ID, "on %s, without a reason or an origin", letter.Stream)
		}
		_, booking := letter.About()
		if letter.Type == events.TypeBookSeats {
			dead[booking] = true
		}
	}
	for id, b := range c.SQL.Bookings {
		for command := range coming[id] {
			if command != b.CommandID {
				wrong(c, "one command a booking", id, "command %s is on the stream, its own is %s", command, b.CommandID)
			}
		}
		if b.Status == domain.BookingPending && b.Age > overdue && len(coming[id]) == 0 {
			wrong(c, "pending bookings", id, "waits for %s without a command on the stream; a dead letter: %t", b.Age.Round(time.Second), dead[id])
		}
		if b.Cancelling() && b.CancelAsked > overdue && !cancelling[id] {
			wrong(c, "cancellations", id, "was asked to be cancelled %s ago, is %s, and no command for it is on the stream: does a worker run?",
				b.CancelAsked.Round(time.Second), b.Status)
		}
	}
}
