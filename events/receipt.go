package events

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// receipt is one attempt at an entry. It is the context of its message and of its
// handler, and travels in it, because the router knows of the message alone.
//
// As a context it ends when it is told to; it does not end with the one that it
// was made in, because stopping must leave handlers the time to finish. What such
// an end takes is made when somebody first asks for it: most handlers are done
// before, and thousands run at once.
type receipt struct {
	sub      *subscription
	entry    *entry
	msg      message.Message
	within   context.Context //nolint:containedctx // a context is made in another
	sent     time.Time       // when it was given to the router
	delivery Delivery
	run      func(context.Context) error // the handler, with its command

	mu     sync.Mutex
	cause  error           // why it has ended; nil while it has not
	ending context.Context //nolint:containedctx // likewise; nil until somebody asks
	cancel context.CancelCauseFunc
}

// newReceipt makes the message of an entry's next attempt. The message has no
// metadata: the fields of its entry are there already.
func (s *subscription) newReceipt(ctx context.Context, e *entry, now time.Time) *receipt {
	r := &receipt{sub: s, entry: e, within: ctx, sent: now, delivery: e.delivery()}
	r.msg.UUID = string(r.delivery.CommandID)
	if payload, ok := e.fields.find(fieldPayload); ok {
		r.msg.Payload = message.Payload(payload)
	}
	r.msg.SetContext(r)
	return r
}

type receiptKey struct{}

func receiptOf(ctx context.Context) *receipt {
	r, _ := ctx.Value(receiptKey{}).(*receipt)
	return r
}

// Value implements context.Context.
func (r *receipt) Value(key any) any {
	if key == (receiptKey{}) {
		return r
	}
	r.mu.Lock()
	ending := r.ending
	if r.cause != nil {
		ending = r.made()
	}
	r.mu.Unlock()
	if ending == nil {
		ending = context.WithoutCancel(r.within)
	}
	return ending.Value(key)
}

// Deadline implements context.Context, for clients that bound their waiting by it.
func (r *receipt) Deadline() (time.Time, bool) { return r.sent.Add(r.sub.limits.Timeout), true }

// Done implements context.Context.
func (r *receipt) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made().Done()
}

// Err implements context.Context.
func (r *receipt) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		return nil
	}
	return r.made().Err()
}

// made is what can end. The caller has the lock.
func (r *receipt) made() context.Context {
	if r.ending == nil {
		r.ending, r.cancel = context.WithCancelCause(context.WithoutCancel(r.within))
		if r.cause != nil {
			r.cancel(r.cause)
		}
	}
	return r.ending
}

// end ends the context, for the first cause that it is given.
func (r *receipt) end(cause error) {
	r.mu.Lock()
	cancel := r.cancel
	if r.cause == nil {
		r.cause = cause
	}
	cause = r.cause
	r.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// ended is why the context has ended, or nil.
func (r *receipt) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// Absorbed tells that the command which runs in a context had been done before, and
// that this delivery of it changed nothing. Handlers call it; in a context of
// anything else it does nothing.
func Absorbed(ctx context.Context) {
	if r := receiptOf(ctx); r != nil {
		r.sub.counts.absorbed.Inc()
	}
}
