package client

import "time"

// The server takes 5 frames a second with a burst of 10; staying below leaves room
// for its clock and for frames that arrive together.
const (
	sendBurst = 8
	sendEvery = 250 * time.Millisecond
)

// send writes what the budget allows, and comes back for the rest.
func (s *session) send() {
	for len(s.sending) > 0 && s.conn != nil {
		if wait := s.budget.take(time.Now()); wait > 0 {
			s.sendAt.Reset(wait)
			return
		}
		o := s.sending[0]
		s.sending = s.sending[1:]
		if err := s.conn.write(o.frame()); err != nil {
			// The reader finds the broken socket and reports it.
			_ = s.conn.ws.Close()
			return
		}
		if o.kind == orderRead && s.unread[o.room] <= o.upTo {
			delete(s.unread, o.room)
		}
	}
}

// sendBudget is a token bucket.
type sendBudget struct {
	left int
	at   time.Time // when left was right
}

// take uses one frame of the budget, or tells how long until there is one.
func (b *sendBudget) take(now time.Time) (wait time.Duration) {
	if earned := int(now.Sub(b.at) / sendEvery); earned > 0 {
		b.left = min(b.left+earned, sendBurst)
		b.at = b.at.Add(time.Duration(earned) * sendEvery)
	}
	if b.left > 0 {
		b.left--
		return 0
	}
	return b.at.Add(sendEvery).Sub(now)
}
