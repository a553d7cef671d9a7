package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/propagation"

	"foyer/domain"
)

// A command that could not be published is tried again this often, with the
// same id, so that a failover of Redis is not the caller's affair.
const (
	publishAttempts = 3
	publishBackoff  = 50 * time.Millisecond
)

// ErrClosed is returned when something is published after Close.
var ErrClosed = errors.New("commands are closed")

// Commands publishes commands. It is safe for concurrent use.
type Commands struct {
	publisher message.Publisher
	log       *slog.Logger
	closed    atomic.Bool
}

// NewCommands makes a publisher on a client, which stays the caller's to close.
// The client must not retry by itself (MaxRetries -1): a retry that nobody sees
// puts a command on the stream twice and reports the time of one.
func NewCommands(rdb redis.UniversalClient, log *slog.Logger) (*Commands, error) {
	if retries := clientRetries(rdb); retries > 0 {
		return nil, fmt.Errorf("redis client for commands retries %d times by itself: set MaxRetries to -1", retries)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	// The publisher is never closed: it would close the client it was given.
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: rdb, Marshaller: entryMarshaller{}}, watermill.NopLogger{})
	if err != nil {
		return nil, fmt.Errorf("make publisher of commands: %w", err)
	}
	return &Commands{publisher: publisher, log: log}, nil
}

func clientRetries(rdb redis.UniversalClient) int {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().MaxRetries
	case *redis.ClusterClient:
		return c.Options().MaxRetries
	}
	return 0
}

// Close makes later calls fail with ErrClosed. The client stays open.
func (c *Commands) Close() { c.closed.Store(true) }

// AdmitShow publishes a request for an admission step.
func (c *Commands) AdmitShow(ctx context.Context, command AdmitShow) error {
	return c.publish(ctx, StreamAdmission, typeAdmitShow, domain.CommandID(domain.NewID()), command)
}

// BookSeats publishes a booking to be written. When it returns nil the booking
// will be decided; after an error it may be on its way all the same, and
// publishing it again under the same id is right.
func (c *Commands) BookSeats(ctx context.Context, id domain.CommandID, command BookSeats) error {
	return c.publish(ctx, StreamBooking, typeBookSeats, id, command)
}

// CancelBooking publishes a cancellation, with the promises of BookSeats.
func (c *Commands) CancelBooking(ctx context.Context, id domain.CommandID, command CancelBooking) error {
	return c.publish(ctx, StreamBooking, typeCancelBooking, id, command)
}

// MarkRead publishes that a member has read up to a message.
func (c *Commands) MarkRead(ctx context.Context, command MarkRead) error {
	return c.publish(ctx, StreamChatRead, typeMarkRead, domain.CommandID(domain.NewID()), command.fields())
}

// publish tries a few times with one id. A try whose answer was lost may have
// put the command on the stream; handlers absorb the repeat by its id.
func (c *Commands) publish(ctx context.Context, stream, kind string, id domain.CommandID, command any) error {
	if c.closed.Load() {
		return ErrClosed
	}
	payload, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	msg := message.NewMessageWithContext(ctx, string(id), payload)
	msg.Metadata = message.Metadata{
		fieldType:    kind,
		fieldVersion: wireVersion,
		fieldAt:      time.Now().UTC().Format(time.RFC3339Nano),
	}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(msg.Metadata))
	for attempt := 1; ; attempt++ {
		err = c.publisher.Publish(stream, msg)
		if err == nil {
			return nil
		}
		if attempt == publishAttempts || pause(ctx, backoff(publishBackoff, attempt)) != nil {
			return fmt.Errorf("publish %s: %w", kind, err)
		}
		c.log.WarnContext(ctx, "publishing a command failed, trying again", "command_id", id, "attempt", attempt, "error", err)
	}
}

// maxBackoff is where a growing delay stops growing.
const maxBackoff = 30 * time.Second

// backoff is the delay before the next try after the nth: base times 2^(n-1),
// at most maxBackoff, with full jitter, so that what failed together does not
// come back together.
func backoff(base time.Duration, n int) time.Duration {
	ceiling := maxBackoff
	if shift := max(n-1, 0); shift < 20 { // beyond, the ceiling is reached and the shift might overflow
		ceiling = min(base<<shift, maxBackoff)
	}
	return rand.N(ceiling) + 1
}

// pause waits, or returns the context's error as soon as that ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
