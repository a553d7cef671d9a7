package api

import "slices"

// lane is a class of frames; a lower lane is sent first.
type lane int

// The lanes in the order of sending. What decides about a person's turn goes
// ahead of what is merely interesting.
const (
	laneHello lane = iota
	laneAdmission
	laneSoldOut
	laneControl
	laneBooking
	laneChat
	laneRank
	laneStats
	laneSeats
	laneCount
)

// maxChatQueued and maxErrorsQueued bound the two lanes where every frame
// counts and none replaces another.
const (
	maxChatQueued   = 64
	maxErrorsQueued = 32
)

// pending is a frame that waits for its turn to be written.
type pending struct {
	event string
	topic string      // "" when it belongs to none
	key   string      // what it replaces within its lane; "" replaces nothing; of an ERROR, which replaces nothing, its code
	stamp stamp       // how new its content is
	data  []byte      // the encoded frame, shared between connections; nil when seats is set
	seats *seatsFrame // a seat delta that more deltas may still be merged into
	// control marks what only one codec has: data is its message and no frame.
	control bool
}

// outbox holds what a connection has yet to send. In most lanes the latest value
// of a key takes the place of the one before it, so that a slow reader gets fewer
// and fresher frames instead of a backlog. It is not safe for concurrent use.
type outbox struct{ lanes [laneCount][]pending }

// put adds a frame, or replaces the one with the same key in its place.
func (o *outbox) put(l lane, p pending) {
	if i := o.find(l, p.key); i >= 0 {
		o.lanes[l][i] = p
		return
	}
	o.lanes[l] = append(o.lanes[l], p)
}

// push adds a frame that replaces nothing; false when the lane is full.
func (o *outbox) push(l lane, p pending, limit int) bool {
	if len(o.lanes[l]) >= limit {
		return false
	}
	o.lanes[l] = append(o.lanes[l], p)
	return true
}

func (o *outbox) find(l lane, key string) int {
	if key == "" {
		return -1
	}
	return slices.IndexFunc(o.lanes[l], func(p pending) bool { return p.key == key })
}

// drop removes the frame with the key, if one waits.
func (o *outbox) drop(l lane, key string) {
	if i := o.find(l, key); i >= 0 {
		o.lanes[l] = slices.Delete(o.lanes[l], i, i+1)
	}
}

// mergeSeats adds a seat delta to the one that waits, so that no seat is lost.
func (o *outbox) mergeSeats(p pending, delta seatsFrame) {
	i := o.find(laneSeats, p.key)
	if i < 0 {
		o.lanes[laneSeats] = append(o.lanes[laneSeats], p)
		return
	}
	merged := o.lanes[laneSeats][i].seats.merge(delta)
	o.lanes[laneSeats][i] = pending{event: p.event, topic: p.topic, key: p.key, stamp: p.stamp, seats: &merged}
}

// next takes the frame that is to be sent now; false when there is none.
func (o *outbox) next() (pending, bool) {
	for l := range o.lanes {
		if len(o.lanes[l]) > 0 {
			p := o.lanes[l][0]
			o.lanes[l] = slices.Delete(o.lanes[l], 0, 1)
			return p, true
		}
	}
	return pending{}, false
}

// empty reports whether nothing waits.
func (o *outbox) empty() bool {
	for l := range o.lanes {
		if len(o.lanes[l]) > 0 {
			return false
		}
	}
	return true
}
