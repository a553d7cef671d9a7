package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
	"foyer/store"
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
	sales    *group[domain.Booking, store.BookingOutcome]
	slots    *group[domain.ShowID, struct{}] // that were freed
	log      *slog.Logger
}

// sell is the group's call: one SQL round trip for many commands. An error of
// the call is the database's and no command's fault, so it counts for none.
func (b *booking) sell(ctx context.Context, bookings []domain.Booking) ([]result[store.BookingOutcome], error) {
	outcomes, err := b.store.Book(ctx, bookings)
	if err != nil {
		return nil, events.Unavailable(fmt.Errorf("book: %w", err))
	}
	results := make([]result[store.BookingOutcome], len(outcomes))
	for i, outcome := range outcomes {
		results[i] = result[store.BookingOutcome]{value: outcome, err: outcome.Err}
	}
	return results, nil
}

// bookSeats decides a booking in SQL, settles it in Redis and tells its person.
func (b *booking) bookSeats(ctx context.Context, d events.Delivery, command events.BookSeats) error {
	outcome, err := b.sales.do(ctx, command.Booking)
	if err != nil {
		return fmt.Errorf("booking %s: %w", command.Booking.BookingID, err)
	}
	return b.settle(ctx, outcome.Booking, outcome.SoldBy, d.Attempt > 1 || outcome.Repeated)
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
	return b.settle(ctx, cancelled, nil, true)
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
	return b.settle(ctx, failed, nil, true)
}

// settle brings Redis to what SQL decided, then tells it. again says that an
// earlier run may have died between the step and what follows from it, so that
// all of it is said once more. Once SQL has decided there is no giving up: what
// fails here is tried again for as long as it takes.
func (b *booking) settle(ctx context.Context, booking domain.Booking, soldBy []domain.SoldSeat, again bool) error {
	return events.Unavailable(b.trySettle(ctx, booking, soldBy, again))
}

func (b *booking) trySettle(ctx context.Context, booking domain.Booking, soldBy []domain.SoldSeat, again bool) error {
	var settled lua.Settlement
	var err error
	switch booking.Status {
	case domain.BookingConfirmed:
		settled, err = b.steps.CompleteBooking(ctx, booking)
	case domain.BookingRejected:
		settled, err = b.steps.RejectBooking(ctx, booking, soldBy)
	case domain.BookingCancelled:
		settled, err = b.steps.CancelBooking(ctx, booking)
	default:
		return fmt.Errorf("booking %s is %s after it was decided", booking.BookingID, booking.Status)
	}
	if err != nil {
		return fmt.Errorf("settle booking %s: %w", booking.BookingID, err)
	}
	if err := publish(ctx, b.notify, bookingFacts(booking, settled)); err != nil {
		return err
	}
	if settled.FreedSlot || settled.SoldOutChanged || again {
		_, err := b.slots.do(ctx, booking.ShowID)
		return err
	}
	return nil
}

// admit is the group's call: one admission step of a show fills all of its slots that
// were freed meanwhile.
func (b *booking) admit(ctx context.Context, shows []domain.ShowID) ([]result[struct{}], error) {
	asked := map[domain.ShowID]error{}
	results := make([]result[struct{}], len(shows))
	for i, show := range shows {
		err, done := asked[show]
		if !done {
			err = b.commands.AdmitShow(ctx, events.AdmitShow{ShowID: show, Reason: events.ReasonFreed})
			asked[show] = err
		}
		results[i].err = err
	}
	return results, nil
}

func bookingFacts(booking domain.Booking, settled lua.Settlement) []events.Notification {
	stats := settled.Stats
	fact := events.Notification{ShowID: booking.ShowID, Epoch: stats.Epoch, Version: stats.Version}
	told := fact
	told.Event = events.EventBooking
	told.Booking = &events.BookingFact{Booking: booking, RequestID: booking.RequestID}
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
