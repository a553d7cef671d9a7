package client

import (
	"context"
	"fmt"
	"time"

	"foyer/domain"
)

// LiveOptions are the times of a Live. What is zero gets its default.
type LiveOptions struct {
	// BackoffLeast and BackoffMost bound the wait before another connection;
	// defaults 1 s and 30 s.
	BackoffLeast, BackoffMost time.Duration
	// Stable is how long a connection must have lasted for the backoff to start
	// anew; default 30 s.
	Stable time.Duration
	// Silence is how long nothing may come, not even a ping or a HEARTBEAT, before
	// the connection is taken for dead; default 45 s.
	Silence time.Duration
}

func (o LiveOptions) withDefaults() LiveOptions {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.BackoffLeast, time.Second}, {&o.BackoffMost, 30 * time.Second},
		{&o.Stable, 30 * time.Second}, {&o.Silence, 45 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return o
}

// frameBuffer is how many frames wait for a slow reader before the socket is no
// longer read, which the server answers by sending the newest state only.
const frameBuffer = 32

// Live is one person's socket session over any number of connections. Its methods
// are safe for concurrent use. Frames must be read: a Live whose frames are left
// lying stands still.
type Live struct {
	frames chan Frame
	orders chan order
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
}

// Live starts a socket session that ends with ctx or Close; one of them must come.
func (c *Client) Live(ctx context.Context, opts LiveOptions) *Live {
	ctx, cancel := context.WithCancel(ctx)
	l := &Live{
		frames: make(chan Frame, frameBuffer), orders: make(chan order),
		cancel: cancel, done: make(chan struct{}),
	}
	s := newSession(c, opts.withDefaults(), l.frames, l.orders)
	go func() {
		defer cancel()
		defer close(l.done)
		defer close(l.frames)
		l.err = s.run(ctx)
	}()
	return l
}

// Frames yields what the server tells; it is closed when the session has ended.
func (l *Live) Frames() <-chan Frame { return l.frames }

// Done is closed when the session has ended and all that it used is given back.
func (l *Live) Done() <-chan struct{} { return l.done }

// Err tells why the session ended: nil while it lives or after Close or the end of
// its context, *CloseError when the server closed for good, *Error when it refused
// to open.
func (l *Live) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Close ends the session and waits until all that it used is given back. Places
// are kept: a closed socket is no departure. Safe twice.
func (l *Live) Close() {
	l.cancel()
	<-l.done
}

// Join takes a place at a show; ADMISSION frames tell the rest.
func (l *Live) Join(ctx context.Context, show domain.ShowID) error {
	return l.give(ctx, order{kind: orderJoin, show: show})
}

// Follow polls an existing place of the person's while no socket is open, as Join
// does for one that it took.
func (l *Live) Follow(ctx context.Context, show domain.ShowID) error {
	return l.give(ctx, order{kind: orderFollow, show: show})
}

// Claim takes the person's turn.
func (l *Live) Claim(ctx context.Context, show domain.ShowID) error {
	return l.give(ctx, order{kind: orderClaim, show: show})
}

// Leave gives the place up.
func (l *Live) Leave(ctx context.Context, show domain.ShowID) error {
	return l.give(ctx, order{kind: orderLeave, show: show})
}

// Subscribe asks for a topic on this connection and every later one.
func (l *Live) Subscribe(ctx context.Context, topic string) error {
	return l.give(ctx, order{kind: orderSubscribe, topic: topic})
}

// Unsubscribe ends a subscription.
func (l *Live) Unsubscribe(ctx context.Context, topic string) error {
	return l.give(ctx, order{kind: orderUnsubscribe, topic: topic})
}

// Read says that the person has read a chat room up to a sequence. While no socket
// is open the highest of each chat room is kept for the next.
func (l *Live) Read(ctx context.Context, room domain.RoomID, upTo int64) error {
	return l.give(ctx, order{kind: orderRead, room: room, upTo: upTo})
}

// orderKind is the type of a client frame.
type orderKind string

const (
	orderJoin        orderKind = "join"
	orderLeave       orderKind = "leave"
	orderClaim       orderKind = "claim"
	orderSubscribe   orderKind = "subscribe"
	orderUnsubscribe orderKind = "unsubscribe"
	orderRead        orderKind = "read"
	orderFollow      orderKind = "follow" // never sent
)

// order is what a caller wants of the session; taken answers whether it was accepted.
type order struct {
	kind  orderKind
	show  domain.ShowID
	topic string
	room  domain.RoomID
	upTo  int64
	ref   string // repeated by the server in a refusal; given by the session
	taken chan error
}

// give hands an order to the session's loop and waits until it has taken it.
func (l *Live) give(ctx context.Context, o order) error {
	o.taken = make(chan error, 1)
	select {
	case l.orders <- o:
	case <-l.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.taken:
		if err != nil {
			return fmt.Errorf("%s: %w", o.kind, err)
		}
		return nil
	case <-l.done:
		return ErrClosed
	}
}

// frame is the order as a client frame.
func (o order) frame() map[string]any {
	frame := map[string]any{"type": o.kind, "ref": o.ref}
	switch o.kind {
	case orderSubscribe, orderUnsubscribe:
		frame["topic"] = o.topic
	case orderRead:
		frame["roomId"], frame["upTo"] = o.room, o.upTo
	default:
		frame["showId"] = o.show
	}
	return frame
}
