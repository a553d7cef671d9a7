package workers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"foyer/events"
)

// How far handlers share round trips. No more than runners of them are under way at
// the same time; a stream's Limits.InFlight are about twice what fills these.
var (
	bookingGroup = groupConfig{most: 128, wait: 2 * time.Millisecond, runners: 4, timeout: 10 * time.Second}
	chatGroup    = groupConfig{most: 512, wait: 2 * time.Millisecond, runners: 2, timeout: 5 * time.Second}
)

// Deps is what workers work on. All of it belongs to the caller.
type Deps struct {
	Steps    Steps
	Store    Store
	Commands Commands
	Notifier Notifier
	Log      *slog.Logger
	// Retention is how long it is remembered that a command has had its effect; 0: for ever.
	Retention time.Duration
	Metrics   prometheus.Registerer // nil: not registered
}

// Workers are the handlers of all commands with what runs beside them.
type Workers struct {
	admission admission
	booking   *booking
	chatRead  chatRead
	ticker    ticker
	sweeper   sweeper
	pruner    pruner
}

// New makes workers that tick at the interval given. Nothing runs before Run.
func New(tick time.Duration, deps Deps) *Workers {
	w := &Workers{
		admission: admission{steps: deps.Steps, notify: deps.Notifier, log: deps.Log},
		booking:   &booking{steps: deps.Steps, store: deps.Store, commands: deps.Commands, notify: deps.Notifier, log: deps.Log},
		chatRead:  chatRead{store: deps.Store, notify: deps.Notifier},
		ticker:    ticker{every: tick, steps: deps.Steps, store: deps.Store, commands: deps.Commands, notify: deps.Notifier, log: deps.Log},
	}
	sizes := groupSizes(deps.Metrics)
	w.booking.sales = newGroup(bookingGroup, sizes.WithLabelValues(events.StreamBooking), w.booking.sell)
	w.chatRead.marks = newGroup(chatGroup, sizes.WithLabelValues(events.StreamChatRead), w.chatRead.move)
	w.sweeper = sweeper{steps: deps.Steps, store: deps.Store, commands: deps.Commands, bookings: w.booking, log: deps.Log}
	w.pruner = pruner{keep: deps.Retention, store: deps.Store, log: deps.Log}
	return w
}

// Handlers are the workers' answers to commands, for an events.Consumer. They
// need Serve to be running.
func (w *Workers) Handlers() events.Handlers {
	return events.Handlers{
		AdmitShow:     w.admission.admitShow,
		BookSeats:     w.booking.bookSeats,
		CancelBooking: w.booking.cancelBooking,
		BookingDead:   w.booking.bookingDead,
		CancelDead:    w.booking.cancelDead,
		MarkRead:      w.chatRead.markRead,
	}
}

// Serve shares round trips among handlers until ctx ends. It must outlive
// the consumer, whose last handlers finish while it drains.
func (w *Workers) Serve(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { w.booking.sales.serve(ctx) })
	parts.Go(func() { w.chatRead.marks.serve(ctx) })
	parts.Wait()
}

// Tick asks for the ticks of all shows until ctx ends.
func (w *Workers) Tick(ctx context.Context) { w.ticker.run(ctx) }

// Sweep takes up stuck bookings until ctx ends.
func (w *Workers) Sweep(ctx context.Context) { w.sweeper.run(ctx) }

// Prune forgets what is old enough until ctx ends.
func (w *Workers) Prune(ctx context.Context) { w.pruner.run(ctx) }
