package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/ThreeDotsLabs/watermill"
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

// prepare reads a group's commands and has their handlers run by the receipt. A
// type or version that is not known is refused, never silently acknowledged.
//
// It is apart from running because the router begins a goroutine for each message:
// reading JSON there would grow its stack each time.
func (c *Consumer) prepare(g group) func(*receipt) {
	return func(r *receipt) {
		err := guard(func() error {
			var err error
			r.run, err = c.handlers.route(g, r)
			return err
		})
		if err != nil {
			r.run = func(context.Context) error { return err }
		}
		c.traced(g, r)
	}
}

func (h Handlers) route(g group, r *receipt) (run func(context.Context) error, err error) {
	f := r.entry.fields
	kind, version := f.Get(fieldType), f.Get(fieldVersion)
	if g.name == GroupChat && kind == "" {
		kind, version = typeMarkRead, wireVersion // a read event as others write it: flat, and nothing more
	}
	if version != wireVersion {
		return nil, refusedError{DeadUnknown, fmt.Errorf("version %q of a command is not known", version)}
	}
	switch {
	case g.name == GroupAdmission && kind == typeAdmitShow:
		return running(r, h.AdmitShow)
	case g.name == GroupBooking && kind == typeBookSeats:
		return running(r, h.BookSeats)
	case g.name == GroupBooking && kind == typeCancelBooking:
		return running(r, h.CancelBooking)
	case g.name == GroupChat && kind == typeMarkRead:
		mark, err := readMark(f)
		if err == nil {
			err = mark.check()
		}
		if err != nil {
			return nil, refusedError{DeadUndecodable, err}
		}
		handler := h.MarkRead
		return func(ctx context.Context) error { return handler(ctx, r.delivery, mark) }, nil
	}
	return nil, refusedError{DeadUnknown, fmt.Errorf("command type %q is not known on this stream", kind)}
}

func running[C interface{ check() error }](r *receipt, handler func(context.Context, Delivery, C) error) (func(context.Context) error, error) {
	command, err := decode[C](r.msg.Payload)
	if err != nil {
		return nil, refusedError{DeadUndecodable, err}
	}
	return func(ctx context.Context) error { return handler(ctx, r.delivery, command) }, nil
}

// dying calls BookingDead or CancelDead for the commands of bookings that are given up.
func (h Handlers) dying(g group) func(context.Context, Delivery, fields, string) error {
	if g.name != GroupBooking {
		return nil
	}
	return func(ctx context.Context, d Delivery, f fields, reason string) error {
		switch f.Get(fieldType) {
		case typeBookSeats:
			return lastRites(ctx, d, f, reason, h.BookingDead)
		case typeCancelBooking:
			return lastRites(ctx, d, f, reason, h.CancelDead)
		}
		return nil
	}
}

// lastRites tells of a command that is given up, where somebody wants to know.
func lastRites[C interface{ check() error }](ctx context.Context, d Delivery, f fields, reason string, tell func(context.Context, Delivery, C, string) error) error {
	command, err := decode[C]([]byte(f.Get(fieldPayload)))
	if err != nil || tell == nil {
		return nil //nolint:nilerr // whose booking it was cannot be known; the dead letter says why
	}
	return tell(ctx, d, command, reason)
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

// panicked is the error of a handler that did not return. It has ended its
// goroutine where there is no panic, as a failed assertion of a test does.
func panicked(p any) error {
	if p == nil {
		return errEnded
	}
	return fmt.Errorf("handler panicked: %v\n%s", p, debug.Stack())
}

var errEnded = errors.New("handler ended its goroutine")

// traced has a handler run in a span of its command's trace: as a child at the first
// delivery, linked to it at a later one. Without spans the trace is passed on.
func (c *Consumer) traced(g group, r *receipt) {
	next := r.run
	if c.cfg.Tracing == nil {
		if r.entry.fields.Get(fieldTraceparent) != "" {
			r.run = func(ctx context.Context) error { return next(callerTrace(ctx, r)) }
		}
		return
	}
	tracer := c.cfg.Tracing.Tracer("foyer/events")
	r.run = func(ctx context.Context) error {
		ctx = callerTrace(ctx, r)
		d := r.delivery
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
		err := next(ctx)
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		return err
	}
}

func callerTrace(ctx context.Context, r *receipt) context.Context {
	return propagation.TraceContext{}.Extract(ctx, r.entry.fields)
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
