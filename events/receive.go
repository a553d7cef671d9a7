package events

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sink is told what the bus receives. Its methods must return soon: Redis cuts
// off who reads slowly. They may be called by several goroutines at once when
// Redis is a Cluster, and by one otherwise.
type Sink interface {
	// Notify is given each notification, once; heartbeats are kept by the bus.
	Notify(Notification)
	// Gap says that notifications may have been missed: whatever is built from
	// them must be read again. It comes once when receiving begins, too, because
	// what happened before is missed like any other.
	Gap(reason string)
}

// Reasons of a Gap.
const (
	GapSubscribed  = "subscribed"  // receiving has begun
	GapReconnected = "reconnected" // the connection was lost and is back
	GapSequence    = "sequence"    // a publisher's numbers have a hole
)

const (
	// receiveTimeout bounds one wait for a message, and so how late silence is noticed.
	receiveTimeout = 250 * time.Millisecond
	redialBackoff  = 50 * time.Millisecond
	maxRedial      = 2 * time.Second
	// publisherMemory is how long a silent publisher's last number is remembered.
	publisherMemory = 10 * time.Minute
)

var errSilent = errors.New("own heartbeats do not come back")

// receivers are the connections of one Run.
type receivers struct {
	mu  sync.Mutex
	all []*receiver
}

// receiver is one connection and the channels that it carries.
type receiver struct {
	bus        *Bus
	partitions []int
	sink       Sink
	heard      atomic.Int64 // when the own heartbeats had last come back on all, unix nanoseconds
	numbers    map[source]*lastNumber
	beats      map[int]time.Time // partition to when its own heartbeat last came back
}

type source struct {
	publisher string
	channel   string
}

type lastNumber struct {
	seq uint64
	at  time.Time
}

// Run receives until ctx ends, and sends the heartbeats that it recognises a
// broken way by. It dials anew whenever the connection fails or falls silent;
// only ctx ends it. rdb is used for receiving alone and stays the caller's.
func (b *Bus) Run(ctx context.Context, rdb redis.UniversalClient, sink Sink) error {
	all := b.newReceivers(sink)
	b.receivers.mu.Lock()
	if b.receivers.all != nil {
		b.receivers.mu.Unlock()
		return errors.New("bus is receiving already")
	}
	b.receivers.all = all
	b.receivers.mu.Unlock()
	defer func() {
		b.receivers.mu.Lock()
		b.receivers.all = nil
		b.receivers.mu.Unlock()
	}()
	var running sync.WaitGroup
	running.Go(func() { b.beat(ctx) })
	for _, r := range all {
		running.Go(func() { r.run(ctx, rdb) })
	}
	running.Wait()
	return nil
}

// newReceivers makes one receiver for all channels, or one for each on a Cluster, where
// every channel lives on its own node.
func (b *Bus) newReceivers(sink Sink) []*receiver {
	if !b.sharded {
		partitions := make([]int, len(b.channels))
		for i := range partitions {
			partitions[i] = i
		}
		return []*receiver{{bus: b, partitions: partitions, sink: sink}}
	}
	all := make([]*receiver, len(b.channels))
	for i := range all {
		all[i] = &receiver{bus: b, partitions: []int{i}, sink: sink}
	}
	return all
}

// Healthy reports whether Run is receiving: on every channel an own heartbeat
// has made its way through Redis within the last five intervals.
func (b *Bus) Healthy() bool {
	b.receivers.mu.Lock()
	all := b.receivers.all
	b.receivers.mu.Unlock()
	for _, r := range all {
		if time.Since(time.Unix(0, r.heard.Load())) > b.silence() {
			return false
		}
	}
	return len(all) > 0
}

func (b *Bus) silence() time.Duration { return missedHeartbeats * b.heartbeat }

// beat sends a heartbeat on each channel at each interval.
func (b *Bus) beat(ctx context.Context) {
	items := make([]outgoing, len(b.channels))
	for i := range items {
		items[i] = outgoing{i, Notification{Event: EventHeartbeat}}
	}
	tick := time.NewTicker(b.heartbeat)
	defer tick.Stop()
	for failing := false; ; {
		err := b.send(ctx, items)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			b.log.WarnContext(ctx, "publishing heartbeats fails", "error", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-b.beatNow:
		case <-ctx.Done():
			return
		}
	}
}

// run keeps a connection until ctx ends.
func (r *receiver) run(ctx context.Context, rdb redis.UniversalClient) {
	reason := GapSubscribed
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		subscribed, err := r.connection(ctx, rdb, reason)
		if ctx.Err() != nil {
			return
		}
		if subscribed {
			reason = GapReconnected
		}
		if failures++; subscribed && time.Since(began) > r.bus.silence() {
			failures = 1
		}
		if failures == 1 {
			r.bus.log.WarnContext(ctx, "receiving notifications failed, dialling again", "error", err)
		}
		_ = pause(ctx, min(backoff(redialBackoff, failures), maxRedial))
	}
}

// connection subscribes and receives until that fails. It says whether it got
// as far as receiving.
func (r *receiver) connection(ctx context.Context, rdb redis.UniversalClient, reason string) (subscribed bool, err error) {
	pubsub := rdb.Subscribe(ctx) // no channel yet: nothing is sent
	if r.bus.sharded {
		_ = pubsub.Close()
		pubsub = rdb.SSubscribe(ctx)
	}
	defer pubsub.Close()
	// Ending the context must end a blocked read too, which go-redis does not do.
	defer context.AfterFunc(ctx, func() { _ = pubsub.Close() })()
	if err := r.subscribe(ctx, pubsub); err != nil {
		return false, fmt.Errorf("subscribe: %w", err)
	}
	r.numbers, r.beats = map[source]*lastNumber{}, map[int]time.Time{}
	began := time.Now()
	r.sink.Gap(reason)
	select {
	case r.bus.beatNow <- struct{}{}: // so that it is healthy at once
	default:
	}
	forget := time.NewTicker(publisherMemory)
	defer forget.Stop()
	for {
		message, err := pubsub.ReceiveTimeout(ctx, receiveTimeout)
		var timeout net.Error
		switch {
		case err == nil:
			r.receive(ctx, message)
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return true, fmt.Errorf("receive: %w", err)
		}
		if time.Since(r.oldestBeat(began)) > r.bus.silence() {
			return true, errSilent
		}
		select {
		case <-forget.C:
			r.forget()
		default:
		}
	}
}

// subscribe returns when Redis has confirmed every channel.
func (r *receiver) subscribe(ctx context.Context, pubsub *redis.PubSub) error {
	subscribe := pubsub.Subscribe
	if r.bus.sharded {
		subscribe = pubsub.SSubscribe
	}
	channels := make([]string, len(r.partitions))
	for i, p := range r.partitions {
		channels[i] = r.bus.channels[p]
	}
	if err := subscribe(ctx, channels...); err != nil {
		return err
	}
	for deadline := time.Now().Add(r.bus.silence()); len(channels) > 0; {
		message, err := pubsub.ReceiveTimeout(ctx, max(time.Until(deadline), time.Millisecond)) // 0 would wait for ever
		if err != nil {
			return err
		}
		if s, ok := message.(*redis.Subscription); ok {
			channels = slices.DeleteFunc(channels, func(c string) bool { return c == s.Channel })
		}
	}
	return nil
}

func (r *receiver) receive(ctx context.Context, received any) {
	m, ok := received.(*redis.Message)
	if !ok {
		return
	}
	n, err := parseNotification(m.Payload)
	if err != nil {
		r.bus.log.WarnContext(ctx, "a notification cannot be read", "error", err)
		return
	}
	fresh, hole := r.note(source{n.Publisher, m.Channel}, n.Seq)
	if !fresh {
		return // sent twice by a retry
	}
	if hole {
		r.bus.log.WarnContext(ctx, "notifications were lost", "publisher", n.Publisher, "seq", n.Seq)
		r.sink.Gap(GapSequence)
	}
	if n.Event != EventHeartbeat {
		r.sink.Notify(n)
		return
	}
	if n.Publisher == r.bus.publisher {
		r.beats[slices.Index(r.bus.channels, m.Channel)] = time.Now()
		if len(r.beats) == len(r.partitions) {
			r.heard.Store(r.oldestBeat(time.Now()).UnixNano())
		}
	}
}

// note compares a publisher's number with its last one on the channel.
func (r *receiver) note(from source, seq uint64) (fresh, hole bool) {
	last, known := r.numbers[from]
	if !known {
		r.numbers[from] = &lastNumber{seq, time.Now()}
		return true, false
	}
	if seq <= last.seq {
		return false, false
	}
	hole = seq != last.seq+1
	last.seq, last.at = seq, time.Now()
	return true, hole
}

// oldestBeat is when the channel that has been silent longest was last heard;
// a channel not heard yet counts from since.
func (r *receiver) oldestBeat(since time.Time) time.Time {
	oldest := time.Now()
	for _, p := range r.partitions {
		at, ok := r.beats[p]
		if !ok {
			at = since
		}
		if at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// forget drops publishers that have ended.
func (r *receiver) forget() {
	for from, last := range r.numbers {
		if time.Since(last.at) > publisherMemory {
			delete(r.numbers, from)
		}
	}
}
