package events

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// subscriber is a message.Subscriber for one stream and group. Each Subscribe is
// one consumer of the group, with a name of its own.
//
// Cancelling a subscription's context, or Close, begins a drain: nothing new is
// started, what runs is waited for with its context alive, acknowledgements are
// written, what is left is handed back, and only then is the channel closed. The
// clients stay their owner's to close.
type subscriber struct {
	group  group
	timing Timing
	// readers blocks in reads; commands is for everything else, so that no read
	// can keep an acknowledgement waiting for a connection.
	readers  redis.UniversalClient
	commands redis.UniversalClient
	log      *slog.Logger
	metrics  *metrics
	// prepare gives a receipt what runs its message's handler.
	prepare func(*receipt)
	// dying is called before an entry becomes a dead letter; nil for nothing.
	dying func(ctx context.Context, d Delivery, f fields, reason string) error

	mu     sync.Mutex
	closed bool
	cancel map[int]context.CancelFunc // by number of the subscription
	live   sync.WaitGroup
}

var errSubscriberClosed = errors.New("subscriber is closed")

// Subscribe implements message.Subscriber. A Redis that cannot be reached is no
// error: reading begins when it is back.
func (s *subscriber) Subscribe(ctx context.Context, stream string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errSubscriberClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	sub := newSubscription(s, stream)
	if err := sub.ensureGroup(ctx); err != nil {
		s.log.WarnContext(ctx, "consumer group cannot be made yet", "stream", stream, "error", err)
	}
	if s.cancel == nil {
		s.cancel = map[int]context.CancelFunc{}
	}
	number := len(s.cancel)
	s.cancel[number] = cancel
	s.live.Go(func() {
		defer cancel()
		sub.run(ctx)
	})
	return sub.out, nil
}

// Close implements message.Subscriber: it drains every subscription and returns
// when all are done. It is safe to call again.
func (s *subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	cancels := slices.Collect(maps.Values(s.cancel))
	s.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	s.live.Wait()
	return nil
}
