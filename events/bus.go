package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

// NotificationChannel is the Pub/Sub channel; its partitions, where it has
// several, are NotificationChannel:{0} and so on.
const NotificationChannel = "queue:notifications"

const (
	// MaxNotifyPartitions bounds how many channels notifications may be split into.
	MaxNotifyPartitions = 64

	defaultHeartbeat = time.Second
	// missedHeartbeats is how many of one's own heartbeats must fail to come back
	// before the way through Redis counts as broken: five seconds by default.
	missedHeartbeats = 5
	notifyTimeout    = 5 * time.Second // for one round of publishing
)

// BusConfig configures a Bus; its zero value is one channel and a heartbeat
// each second.
type BusConfig struct {
	Partitions int           // 1 to MaxNotifyPartitions; the same in every process
	Heartbeat  time.Duration // between the heartbeats of Run
	Log        *slog.Logger
}

// Bus publishes notifications and, in an API process, receives those of every
// process, its own among them. It is safe for concurrent use.
type Bus struct {
	rdb       redis.UniversalClient
	sharded   bool // Cluster: a channel lives on one node only
	channels  []string
	publisher string
	heartbeat time.Duration
	log       *slog.Logger

	turn  chan struct{} // holds a token while somebody publishes
	seqs  []uint64      // last number used, per channel; owned by the turn
	mu    sync.Mutex
	queue *round // what the next turn will publish

	receivers receivers
	beatNow   chan struct{} // asks for a heartbeat before its time
}

// round is what one pipeline publishes, for many callers at once.
type round struct {
	items []outgoing
	done  chan struct{}
	err   error // valid once done is closed
}

type outgoing struct {
	partition    int
	notification Notification
}

// NewBus makes a bus that publishes on a client, which stays the caller's to close.
func NewBus(rdb redis.UniversalClient, cfg BusConfig) *Bus {
	_, sharded := rdb.(*redis.ClusterClient)
	b := &Bus{
		rdb:       rdb,
		sharded:   sharded,
		channels:  channelNames(min(max(cfg.Partitions, 1), MaxNotifyPartitions)),
		publisher: domain.NewID(),
		heartbeat: cfg.Heartbeat,
		log:       cfg.Log,
		turn:      make(chan struct{}, 1),
		beatNow:   make(chan struct{}, 1),
		queue:     &round{done: make(chan struct{})},
	}
	if b.heartbeat <= 0 {
		b.heartbeat = defaultHeartbeat
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.seqs = make([]uint64, len(b.channels))
	return b
}

func channelNames(partitions int) []string {
	if partitions == 1 {
		return []string{NotificationChannel}
	}
	names := make([]string, partitions)
	for i := range names {
		names[i] = NotificationChannel + ":{" + strconv.Itoa(i) + "}"
	}
	return names
}

// Publish sends notifications in their order. Those of one show, and those of
// one chat room without a show, stay in order among themselves. After an error
// some may have been sent; who did not get one learns of the gap.
func (b *Bus) Publish(ctx context.Context, notifications ...Notification) error {
	items := make([]outgoing, len(notifications))
	for i, n := range notifications {
		items[i] = outgoing{b.partition(n), n}
	}
	return b.send(ctx, items)
}

// partition keeps a show, or a chat room without one, on one channel.
func (b *Bus) partition(n Notification) int {
	key := string(n.ShowID)
	if key == "" {
		key = string(n.RoomID)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key)) // never fails
	return int(hash.Sum32() % uint32(len(b.channels)))
}

// send adds to the waiting round and waits until somebody has published it, or
// does so in its turn. So the order of numbers is the order of sending, and many
// callers share one round trip.
func (b *Bus) send(ctx context.Context, items []outgoing) error {
	if len(items) == 0 {
		return nil
	}
	b.mu.Lock()
	mine := b.queue
	mine.items = append(mine.items, items...)
	b.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx) // the next caller sends what was left in the round
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	}
	select {
	case <-mine.done: // by whoever had the turn before
		return mine.err
	default:
	}
	b.mu.Lock()
	b.queue = &round{done: make(chan struct{})}
	b.mu.Unlock()
	mine.err = b.publishRound(context.WithoutCancel(ctx), mine.items) // the round is others' too
	close(mine.done)
	return mine.err
}

// publishRound stamps and sends one round. Only who has the turn calls it.
func (b *Bus) publishRound(ctx context.Context, items []outgoing) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	var failed []error
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, item := range items {
			n := item.notification
			n.Publisher, n.Seq, n.At = b.publisher, b.seqs[item.partition]+1, time.Now().UTC()
			payload, err := json.Marshal(n)
			if err != nil {
				failed = append(failed, fmt.Errorf("encode notification %s: %w", n.Event, err))
				continue
			}
			b.seqs[item.partition] = n.Seq
			if b.sharded {
				pipe.SPublish(ctx, b.channels[item.partition], payload)
			} else {
				pipe.Publish(ctx, b.channels[item.partition], payload)
			}
		}
		return nil
	})
	if err != nil {
		failed = append(failed, fmt.Errorf("publish notifications: %w", err))
	}
	return errors.Join(failed...)
}
