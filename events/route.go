package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// check reports the handlers that a group needs and does not have.
func (h Handlers) check(group string) error {
	missing := func(absent bool, name string) error {
		if absent {
			return fmt.Errorf("group %s needs a handler of %s", group, name)
		}
		return nil
	}
	switch group {
	case GroupAdmission:
		return missing(h.AdmitShow == nil, typeAdmitShow)
	case GroupBooking:
		return errors.Join(missing(h.BookSeats == nil, typeBookSeats), missing(h.CancelBooking == nil, typeCancelBooking))
	case GroupChat:
		return missing(h.MarkRead == nil, typeMarkRead)
	}
	return nil
}

// prepare reads a group's messages and has their handlers run by the receipt. A
// type or version that is not known is refused, never silently acknowledged.
//
// It is apart from running because the router begins a goroutine for each message:
// reading JSON there would grow its stack each time.
func (h Handlers) prepare(g group) func(*receipt, *message.Message) {
	return func(r *receipt, msg *message.Message) {
		err := guard(func() error {
			var err error
			r.run, err = h.route(g, r.delivery, msg)
			return err
		})
		if err != nil {
			r.run = func(context.Context) error { return err }
		}
	}
}

// run is the router's handler of every message.
func run(msg *message.Message) error { return receiptOf(msg).run(msg.Context()) }

func (h Handlers) route(g group, d Delivery, msg *message.Message) (run func(context.Context) error, err error) {
	kind, version := msg.Metadata.Get(fieldType), msg.Metadata.Get(fieldVersion)
	if g.name == GroupChat && kind == "" {
		kind, version = typeMarkRead, wireVersion // a read event as others write it: flat, and nothing more
	}
	if version != wireVersion {
		return nil, refusedError{DeadUnknown, fmt.Errorf("version %q of a command is not known", version)}
	}
	switch {
	case g.name == GroupAdmission && kind == typeAdmitShow:
		return running(d, msg, h.AdmitShow)
	case g.name == GroupBooking && kind == typeBookSeats:
		return running(d, msg, h.BookSeats)
	case g.name == GroupBooking && kind == typeCancelBooking:
		return running(d, msg, h.CancelBooking)
	case g.name == GroupChat && kind == typeMarkRead:
		mark, err := readMark(msg.Metadata)
		if err = errors.Join(err, mark.check()); err != nil {
			return nil, refusedError{DeadUndecodable, err}
		}
		return func(ctx context.Context) error { return h.MarkRead(ctx, d, mark) }, nil
	}
	return nil, refusedError{DeadUnknown, fmt.Errorf("command type %q is not known on this stream", kind)}
}

func running[C interface{ check() error }](d Delivery, msg *message.Message, handler func(context.Context, Delivery, C) error) (func(context.Context) error, error) {
	command, err := decode[C](msg.Payload)
	if err != nil {
		return nil, refusedError{DeadUndecodable, err}
	}
	return func(ctx context.Context) error { return handler(ctx, d, command) }, nil
}

func delivery(msg *message.Message) Delivery {
	if r := receiptOf(msg); r != nil {
		return r.delivery
	}
	return Delivery{}
}

// dying calls BookingDead or CancelDead for the commands of bookings that are given up.
func (h Handlers) dying(g group) func(context.Context, *message.Message, string) error {
	if g.name != GroupBooking {
		return nil
	}
	return func(ctx context.Context, msg *message.Message, reason string) error {
		switch msg.Metadata.Get(fieldType) {
		case typeBookSeats:
			return lastRites(ctx, msg, reason, h.BookingDead)
		case typeCancelBooking:
			return lastRites(ctx, msg, reason, h.CancelDead)
		}
		return nil
	}
}

// lastRites tells of a command that is given up, where somebody wants to know.
func lastRites[C interface{ check() error }](ctx context.Context, msg *message.Message, reason string, tell func(context.Context, Delivery, C, string) error) error {
	command, err := decode[C](msg.Payload)
	if err != nil || tell == nil {
		return nil //nolint:nilerr // whose booking it was cannot be known; the dead letter says why
	}
	return tell(ctx, delivery(msg), command, reason)
}

// record keeps the handler's error for the subscription, to which the router
// passes on only that there was one.
func record(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) (_ []*message.Message, err error) {
		r := receiptOf(msg)
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			r.err = err
		}()
		return next(msg)
	}
}

// guard turns a panic into an error.
func guard(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return run()
}

func panicked(p any) error { return fmt.Errorf("handler panicked: %v\n%s", p, debug.Stack()) }

// traced runs a handler in a span of its command's trace: as a child at the first
// delivery, linked to it at a later one. Without spans the trace is passed on.
func (c *Consumer) traced(g group, next message.NoPublishHandlerFunc) message.NoPublishHandlerFunc {
	if c.cfg.Tracing == nil {
		return func(msg *message.Message) error {
			if msg.Metadata.Get(fieldTraceparent) != "" {
				msg.SetContext(callerTrace(msg))
			}
			return next(msg)
		}
	}
	tracer := c.cfg.Tracing.Tracer("foyer/events")
	return func(msg *message.Message) error {
		ctx := callerTrace(msg)
		d := delivery(msg)
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(
				attribute.String("messaging.destination.name", g.stream), attribute.String("messaging.message.id", d.EntryID),
				attribute.String("command_id", string(d.CommandID)), attribute.Int("attempt", d.Attempt)),
		}
		if d.Attempt > 1 {
			options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
		}
		ctx, span := tracer.Start(ctx, g.name, options...)
		defer span.End()
		msg.SetContext(ctx)
		err := next(msg)
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	}
}

func callerTrace(msg *message.Message) context.Context {
	return propagation.TraceContext{}.Extract(msg.Context(), propagation.MapCarrier(msg.Metadata))
}

// routerLog passes the router's lines on as details: what became of a command is
// said once, by the subscription.
type routerLog struct{ log *slog.Logger }

// Error implements watermill.LoggerAdapter.
func (l routerLog) Error(msg string, err error, _ watermill.LogFields) {
	l.log.Debug("message router", "detail", msg, "error", err)
}

// Info implements watermill.LoggerAdapter.
func (l routerLog) Info(msg string, _ watermill.LogFields) {
	l.log.Debug("message router", "detail", msg)
}

// Debug implements watermill.LoggerAdapter.
func (routerLog) Debug(string, watermill.LogFields) {}

// Trace implements watermill.LoggerAdapter.
func (routerLog) Trace(string, watermill.LogFields) {}

// With implements watermill.LoggerAdapter.
func (l routerLog) With(watermill.LogFields) watermill.LoggerAdapter { return l }
