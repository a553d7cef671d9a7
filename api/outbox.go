package api

import "slices"

// lane is a class of frames; a lower lane is sent first.
type lane uint8

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

// urgency is which of the writers' queues a connection waits in with a frame of the
// lane.
func (l lane) urgency() urgency {
	if l <= laneBooking {
		return urgent
	}
	return ordinary
}

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

// outbox holds what a connection has yet to send, in the order of sending. In most
// lanes the latest value of a key takes the place of the one before it, so that a slow
// reader gets fewer and fresher frames instead of a backlog. Frames are shared between
// connections and never change. It is not safe for concurrent use.
type outbox struct{ queue []queued }

// queued is a frame in its lane. Frames of one lane go in the order of their coming.
type queued struct {
	lane lane
	*pending
}

// put adds a frame, or replaces the one with the same key in its place.
func (o *outbox) put(l lane, p *pending) {
	if i := o.find(l, p.key); i >= 0 {
		o.queue[i].pending = p
		return
	}
	o.push(l, p)
}

// push adds a frame that replaces nothing.
func (o *outbox) push(l lane, p *pending) {
	at := len(o.queue)
	for at > 0 && o.queue[at-1].lane > l {
		at--
	}
	o.queue = slices.Insert(o.queue, at, queued{l, p})
}

// waiting counts the frames of a lane.
func (o *outbox) waiting(l lane) int {
	n := 0
	for _, q := range o.queue {
		if q.lane == l {
			n++
		}
	}
	return n
}

// get is the frame with the key, if one waits.
func (o *outbox) get(l lane, key string) (*pending, bool) {
	if i := o.find(l, key); i >= 0 {
		return o.queue[i].pending, true
	}
	return nil, false
}

func (o *outbox) find(l lane, key string) int {
	if key == "" {
		return -1
	}
	return slices.IndexFunc(o.queue, func(q queued) bool { return q.lane == l && q.key == key })
}

// drop removes the frame with the key, if one waits.
func (o *outbox) drop(l lane, key string) {
	if i := o.find(l, key); i >= 0 {
		o.queue = slices.Delete(o.queue, i, i+1)
	}
}

// empty removes all frames of a lane and returns them.
func (o *outbox) empty(l lane) []*pending {
	var frames []*pending
	o.queue = slices.DeleteFunc(o.queue, func(q queued) bool {
		if q.lane == l {
			frames = append(frames, q.pending)
		}
		return q.lane == l
	})
	return frames
}

// mergeSeats adds a seat delta to the one that waits, so that no seat is lost.
func (o *outbox) mergeSeats(p *pending, delta seatsFrame) {
	if waits, ok := o.get(laneSeats, p.key); ok {
		merged := waits.seats.merge(delta)
		p = &pending{event: p.event, topic: p.topic, key: p.key, stamp: p.stamp, seats: &merged}
	}
	o.put(laneSeats, p)
}

// next takes the frame that is to be sent now; nil when there is none.
func (o *outbox) next() *pending {
	if len(o.queue) == 0 {
		return nil
	}
	p := o.queue[0].pending
	o.queue = slices.Delete(o.queue, 0, 1)
	return p
}

// first is the lane that is to be sent from now; laneCount when nothing waits.
func (o *outbox) first() lane {
	if len(o.queue) == 0 {
		return laneCount
	}
	return o.queue[0].lane
}
