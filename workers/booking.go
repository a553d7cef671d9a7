package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// booking sells seats. SQL is the last word: its unique seats stop a double
// sale, whatever Redis believed. Running a command twice is harmless: SQL
// records the command id with the effect, the script in Redis records the
// booking id, and what is told is the booking as it stands.
type booking struct {
	steps    Steps
	store    Store
	commands Commands
	notify   Notifier
	sales    *group[sale, bool] // true: it had been done before
	log      *slog.Logger

	// What is settled first is told first, while the next is settled already.
	settling, telling sync.Mutex
}

// sale is a booking to be decided. again says that an earlier run may have died
// between a step and what follows from it, so that all of it is said once more.
type sale struct {
	booking domain.Booking
	again   bool
}

// bookSeats decides a booking in SQL, settles it in Redis and tells its person.
func (b *booking) bookSeats(ctx context.Context, d events.Delivery, command events.BookSeats) error {
	done, err := b.sales.do(ctx, sale{command.Booking, d.Attempt > 1})
	if err != nil {
		return fmt.Errorf("booking %s: %w", command.Booking.BookingID, err)
	}
	if done {
		events.Absorbed(ctx)
	}
	return nil
}

// sell is the group's call: one SQL round trip for many commands, then one to Redis
// for what was decided. An error of the call is the database's and no command's
// fault, so it counts for none.
func (b *booking) sell(ctx context.Context, sales []sale) ([]result[bool], error) {
	bookings := make([]domain.Booking, len(sales))
	for i, s := range sales {
		bookings[i] = s.booking
	}
	outcomes, err := b.store.Book(ctx, bookings)
	if err != nil {
		return nil, events.Unavailable(fmt.Errorf("book: %w", err))
	}
	results := make([]result[bool], len(sales))
	var endings []ending
	var at []int
	for i, o := range outcomes {
		if results[i].err = o.Err; o.Err == nil {
			endings = append(endings, ending{lua.Ending{Booking: o.Booking, SoldBy: o.SoldBy}, sales[i].again || o.Repeated})
			at = append(at, i)
		}
	}
	settled, errs := b.settleAll(ctx, endings)
	for n, i := range at {
		results[i] = result[bool]{value: !settled[n].Done, err: errs[n]}
	}
	return results, nil
}

// cancelBooking takes a confirmed booking back. A booking that cannot be
// cancelled any more is left as it is: the API had refused it in time.
func (b *booking) cancelBooking(ctx context.Context, d events.Delivery, command events.CancelBooking) error {
	cancelled, err := b.store.CancelBooking(ctx, d.CommandID, command.BookingID)
	switch {
	case errors.Is(err, domain.ErrNotCancellable), errors.Is(err, domain.ErrBookingNotFound):
		b.log.InfoContext(ctx, "nothing to cancel", "booking_id", command.BookingID, "error", err)
		return nil
	case err != nil:
		return events.Unavailable(fmt.Errorf("cancel booking %s: %w", command.BookingID, err))
	}
	done, err := b.settle(ctx, cancelled)
	if done {
		events.Absorbed(ctx)
	}
	return err
}

// cancelDead ends a cancellation that was given up on: the booking stays as it is, and
// its person is told so and may ask again. One that was cancelled after all, in an
// attempt that failed later, is settled as such.
func (b *booking) cancelDead(ctx context.Context, d events.Delivery, command events.CancelBooking, reason string) error {
	b.log.ErrorContext(ctx, "cancellation given up on", "booking_id", command.BookingID,
		"command_id", d.CommandID, "attempt", d.Attempt, "reason", reason)
	kept, err := b.store.WithdrawCancel(ctx, command.BookingID)
	switch {
	case errors.Is(err, domain.ErrBookingNotFound), err == nil && kept.Status == domain.BookingPending:
		return nil
	case err != nil:
		return fmt.Errorf("give up cancelling booking %s: %w", command.BookingID, err)
	}
	_, err = b.settle(ctx, kept)
	return err
}

// bookingDead ends a booking that was given up on: nothing is sold, its seats
// are free again, its person is told. One that got decided after all, in an
// attempt that failed later, is settled as it was decided.
func (b *booking) bookingDead(ctx context.Context, d events.Delivery, command events.BookSeats, reason string) error {
	b.log.ErrorContext(ctx, "booking given up on", "booking_id", command.Booking.BookingID,
		"command_id", d.CommandID, "attempt", d.Attempt, "reason", reason)
	failed, err := b.store.FailBooking(ctx, command.Booking.BookingID, domain.ReasonFailed)
	switch {
	case errors.Is(err, domain.ErrBookingNotFound): // its row was never written: only the hold is left
		failed = command.Booking
		failed.Status, failed.Reason = domain.BookingRejected, domain.ReasonFailed
	case err != nil:
		return fmt.Errorf("fail booking %s: %w", command.Booking.BookingID, err)
	}
	_, err = b.settle(ctx, failed)
	return err
}

// ending is a booking that SQL has decided; for again see sale.
type ending struct {
	lua.Ending
	again bool
}

// settle is settleAll for one; done says that it had been settled before.
func (b *booking) settle(ctx context.Context, booking domain.Booking) (done bool, err error) {
	settled, errs := b.settleAll(ctx, []ending{{lua.Ending{Booking: booking}, true}})
	return errs[0] == nil && !settled[0].Done, errs[0]
}

// settleAll brings Redis to what SQL decided, then tells it, each with its own
// outcome. Once SQL has decided there is no giving up: what fails here is tried again
// for as long as it takes.
func (b *booking) settleAll(ctx context.Context, endings []ending) ([]lua.Settlement, []error) {
	if len(endings) == 0 {
		return nil, nil
	}
	settled, errs := b.settleInOrder(ctx, endings)
	asked := map[domain.ShowID]error{}
	for i, e := range endings {
		if errs[i] == nil && (settled[i].FreedSlot || settled[i].SoldOutChanged || e.again) {
			errs[i] = b.admit(ctx, e.Booking.ShowID, asked)
		}
		if errs[i] != nil {
			errs[i] = events.Unavailable(fmt.Errorf("settle booking %s: %w", e.Booking.BookingID, errs[i]))
		}
	}
	return settled, errs
}

// settleInOrder settles bookings and tells of them, in the same order.
func (b *booking) settleInOrder(ctx context.Context, endings []ending) ([]lua.Settlement, []error) {
	plain := make([]lua.Ending, len(endings))
	for i, e := range endings {
		plain[i] = e.Ending
	}
	b.settling.Lock()
	settled, errs := b.steps.SettleBookings(ctx, plain)
	b.telling.Lock() // before the next may settle, so that nobody is overtaken
	b.settling.Unlock()
	defer b.telling.Unlock()
	if err := publish(ctx, b.notify, newestStats(bookingFacts(endings, settled, errs))); err != nil {
		for i := range errs {
			errs[i] = cmp.Or(errs[i], err)
		}
	}
	return settled, errs
}

// admit asks for an admission step of a show, once for all of its freed slots.
func (b *booking) admit(ctx context.Context, show domain.ShowID, asked map[domain.ShowID]error) error {
	err, done := asked[show]
	if !done {
		err = b.commands.AdmitShow(ctx, events.AdmitShow{ShowID: show, Reason: events.ReasonFreed})
		asked[show] = err
	}
	return err
}

// newestStats leaves out the numbers of a show that the next ones in the same breath
// replace.
func newestStats(facts []events.Notification) []events.Notification {
	newer := map[domain.ShowID]bool{}
	kept := make([]events.Notification, 0, len(facts))
	for _, fact := range slices.Backward(facts) {
		if fact.Event == events.EventStats {
			if newer[fact.ShowID] {
				continue
			}
			newer[fact.ShowID] = true
		}
		kept = append(kept, fact)
	}
	slices.Reverse(kept)
	return kept
}

// One notification tells of no more bookings than this, and of no more seats of theirs,
// which bounds it to about 100 KB.
const (
	maxToldBookings = 64
	maxToldSeats    = 1024
)

// bookingFacts is what there is to tell of settled bookings, in their order. Those that
// share one change share its notifications: the bookings are told first, then the
// seats, then the numbers.
func bookingFacts(endings []ending, settled []lua.Settlement, errs []error) []events.Notification {
	var facts []events.Notification
	told, seats := -1, 0 // the notification that more bookings may join, and the seats in it
	for i, e := range endings {
		if errs[i] != nil {
			continue
		}
		own := len(e.Booking.Seats) + len(e.Booking.Conflicts)
		if told < 0 || !sameChange(facts[told], settled[i]) || len(facts[told].Bookings) == maxToldBookings || seats+own > maxToldSeats {
			told, seats = len(facts), 0
			facts = append(facts, changeFacts(settled[i])...)
			facts[told].Bookings = make([]events.BookingFact, 0, min(len(endings)-i, maxToldBookings))
		}
		facts[told].Bookings = append(facts[told].Bookings, events.NewBookingFact(e.Booking))
		seats += own
	}
	return facts
}

// sameChange reports whether a settlement is of the change that was told, and has
// nothing of its own to tell.
func sameChange(told events.Notification, s lua.Settlement) bool {
	return told.ShowID == s.Stats.ShowID && told.Epoch == s.Stats.Epoch && told.Version == s.Stats.Version &&
		len(s.Seats) == 0 && !s.SoldOutChanged
}

// changeFacts are the notifications of a change, the first of them for its bookings.
func changeFacts(settled lua.Settlement) []events.Notification {
	stats := settled.Stats
	fact := events.Notification{ShowID: stats.ShowID, Epoch: stats.Epoch, Version: stats.Version}
	told := fact
	told.Event = events.EventBooking
	facts := []events.Notification{told}
	if len(settled.Seats) > 0 {
		facts = append(facts, seatsChanged(stats, settled.Seats))
	}
	counts := fact
	counts.Event, counts.Stats = events.EventStats, &stats
	facts = append(facts, counts)
	if settled.SoldOutChanged {
		changed := fact
		changed.Event, changed.Stats = events.EventShow, &stats
		if stats.Availability() == domain.AvailabilitySoldOut {
			changed.Event = events.EventSoldOut
		}
		facts = append(facts, changed)
	}
	return facts
}
