package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// maxAdmitRounds bounds the calls that one command makes to the admit step, at
// up to 625 people a call. What is left is done by the next tick.
const maxAdmitRounds = 400

// admission lets people in. Running it twice is harmless: the step in Redis
// admits only into free slots and within the rate, whoever calls it.
type admission struct {
	steps  Steps
	notify Notifier
	log    *slog.Logger
}

// admitShow does one admission command. A step that fails is not tried again,
// since the next tick is: after an outage nothing old stands in its way.
func (a *admission) admitShow(ctx context.Context, d events.Delivery, command events.AdmitShow) error {
	if err := a.admit(ctx, d, command); err != nil {
		a.log.WarnContext(ctx, "admission failed, left to the next tick", "show_id", command.ShowID, "command_id", d.CommandID, "error", err)
	}
	return nil
}

// admit runs the admit step until it has nothing more to do, telling the
// admitted after each call, and the whole line at the end.
func (a *admission) admit(ctx context.Context, d events.Delivery, command events.AdmitShow) error {
	options := lua.AdmitOptions{Tick: command.Tick}
	moved := false
	for range maxAdmitRounds {
		result, err := a.steps.Admit(ctx, command.ShowID, options)
		switch {
		case errors.Is(err, domain.ErrShowNotFound):
			a.log.InfoContext(ctx, "command for an unknown show", "show_id", command.ShowID, "command_id", d.CommandID)
			return nil
		case err != nil:
			return fmt.Errorf("admit to show %s: %w", command.ShowID, err)
		case result.Skipped:
			return nil
		}
		if err := a.announce(ctx, command.ShowID, result); err != nil {
			return err
		}
		moved = moved || len(result.Admitted)+len(result.Expired) > 0
		if !result.More {
			break
		}
		options.Tick = 0 // the tick is taken; the rest belongs to it
	}
	return a.announceLine(ctx, command, moved)
}

// announce tells who got in and whose place ended, many ids in one message.
func (a *admission) announce(ctx context.Context, show domain.ShowID, result lua.AdmitResult) error {
	var facts []events.Notification
	fact := events.Notification{ShowID: show, Epoch: result.Stats.Epoch, Version: result.Stats.Version}
	if len(result.Admitted)+len(result.Expired) > 0 {
		admission := fact
		admission.Event, admission.Admitted, admission.Ended = events.EventAdmission, result.Admitted, result.Expired
		facts = append(facts, admission)
	}
	if len(result.FreedSeats) > 0 {
		facts = append(facts, seatsFreed(result.Stats, result.FreedSeats))
	}
	return publish(ctx, a.notify, facts)
}

// announceLine tells the counts, and the ranks as knots. A tick always does; a
// freed slot does so only while the line is short, where every step is seen:
// a long line hears its ranks once a tick however many slots come free in it.
func (a *admission) announceLine(ctx context.Context, command events.AdmitShow, moved bool) error {
	if command.Tick == 0 && !moved {
		return nil
	}
	knots, stats, err := a.steps.Knots(ctx, command.ShowID)
	if err != nil {
		return fmt.Errorf("read ranks of show %s: %w", command.ShowID, err)
	}
	fact := events.Notification{ShowID: stats.ShowID, Epoch: stats.Epoch, Version: stats.Version, Stats: &stats}
	facts := []events.Notification{fact}
	facts[0].Event = events.EventStats
	if stats.Waiting > 0 && (command.Tick > 0 || stats.Waiting <= domain.RankDense) {
		fact.Event, fact.Knots = events.EventRank, &knots
		facts = append(facts, fact)
	}
	return publish(ctx, a.notify, facts)
}

func seatsFreed(stats domain.Stats, freed []domain.SeatID) events.Notification {
	seats := make([]domain.Seat, len(freed))
	for i, id := range freed {
		seats[i] = domain.Seat{ID: id, State: domain.SeatFree}
	}
	return seatsChanged(stats, seats)
}

func seatsChanged(stats domain.Stats, seats []domain.Seat) events.Notification {
	return events.Notification{
		Event: events.EventSeats, ShowID: stats.ShowID, Epoch: stats.Epoch, Version: stats.Version,
		SeatsChanged: seats, SeatVersion: stats.SeatVersion,
	}
}

func publish(ctx context.Context, notify Notifier, facts []events.Notification) error {
	if len(facts) == 0 {
		return nil
	}
	if err := notify.Publish(ctx, facts...); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}
