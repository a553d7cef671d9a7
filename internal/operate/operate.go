package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// Store is the SQL that actions are written down in. *store.DB has it.
type Store interface {
	Show(ctx context.Context, id domain.ShowID) (domain.Show, error)
	ChangeShow(ctx context.Context, action domain.OperatorAction, change func(*domain.Show) error) (domain.Show, error)
	ResetShow(ctx context.Context, action domain.OperatorAction, change func(*domain.Show) error) (domain.Show, error)
	BeginAction(ctx context.Context, action domain.OperatorAction) error
	EndAction(ctx context.Context, id, outcome string) error
	UndoneActions(ctx context.Context, action string, olderThan time.Duration, limit int) ([]domain.OperatorAction, error)
}

// Steps are the atomic steps in Redis that actions take. *lua.Steps has them.
type Steps interface {
	Configure(ctx context.Context, show domain.Show) error
	Stats(ctx context.Context, shows ...domain.ShowID) ([]domain.Stats, error)
	Admit(ctx context.Context, show domain.ShowID, opts lua.AdmitOptions) (lua.AdmitResult, error)
	Remove(ctx context.Context, show domain.ShowID, request domain.RequestID) (lua.Departure, error)
	Reset(ctx context.Context, show domain.ShowID, epoch int64) (ended int64, done bool, err error)
}

// Commands asks the workers to let people in. *events.Commands does.
type Commands interface {
	AdmitShow(ctx context.Context, command events.AdmitShow) error
}

// Notifier tells every API process what happened. *events.Bus does.
type Notifier interface {
	Publish(ctx context.Context, notifications ...events.Notification) error
}

// Desk is where operators act. All of it belongs to the caller.
type Desk struct {
	Store    Store
	Steps    Steps
	Commands Commands
	Notifier Notifier
	Letters  Letters
	Log      *slog.Logger
}

// followUpTime bounds what is still done for others after an action that is done, even
// when the caller has gone. Losing it costs a tick or a re-read.
const followUpTime = 2 * time.Second

// newAction is an action with an id of its own; detail is what was asked for.
func newAction(who domain.PersonID, show domain.ShowID, action string, detail any) domain.OperatorAction {
	return domain.OperatorAction{ID: domain.NewID(), ShowID: show, Operator: who, Action: action, Detail: encode(detail)}
}

// encode writes a value as JSON; the types here always marshal.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// Change changes a show, has Redis and every process take it over, and lets people in
// whom it lets in. When what follows the change fails, making the same change again
// repeats it: settings carry their revision.
func (d *Desk) Change(ctx context.Context, who domain.PersonID, id domain.ShowID, action string, detail any, change func(*domain.Show) error) (domain.Show, error) {
	show, err := d.Store.ChangeShow(ctx, newAction(who, id, action, detail), change)
	if err != nil {
		return domain.Show{}, err
	}
	d.Log.InfoContext(ctx, "operator changed a show", "show_id", id, "action", action, "by", who, "revision", show.Revision)
	return show, d.publish(ctx, show)
}

// publish makes what SQL says of a show hold in Redis and everywhere.
func (d *Desk) publish(ctx context.Context, show domain.Show) error {
	if err := d.Steps.Configure(ctx, show); err != nil {
		return fmt.Errorf("configure show %s: %w", show.ID, err)
	}
	d.announce(ctx, show)
	return nil
}

// announce says that a show has changed, and lets people in whom that lets in.
func (d *Desk) announce(ctx context.Context, show domain.Show) {
	d.tell(ctx, events.Notification{Event: events.EventShow, ShowID: show.ID, Epoch: show.Epoch, Version: show.Revision})
	d.slotFreed(ctx, show.ID)
}

// tell publishes facts; readers find out by version what they missed.
func (d *Desk) tell(ctx context.Context, facts ...events.Notification) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	if err := d.Notifier.Publish(ctx, facts...); err != nil {
		d.Log.WarnContext(ctx, "notification was not published", "show_id", facts[0].ShowID, "error", err)
	}
}

// slotFreed asks the workers to let the next person in now and not at the tick.
func (d *Desk) slotFreed(ctx context.Context, show domain.ShowID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	if err := d.Commands.AdmitShow(ctx, events.AdmitShow{ShowID: show, Reason: events.ReasonFreed}); err != nil {
		d.Log.WarnContext(ctx, "freed slot waits for the tick", "show_id", show, "error", err)
	}
}

// end writes down what came of an action. The action has happened: that it could not be
// written is logged and no error of the action.
func (d *Desk) end(ctx context.Context, action domain.OperatorAction, outcome any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	d.Log.InfoContext(ctx, "operator acted", "show_id", action.ShowID, "action", action.Action, "by", action.Operator)
	if err := d.Store.EndAction(ctx, action.ID, encode(outcome)); err != nil {
		d.Log.WarnContext(ctx, "what came of an action was not written down", "show_id", action.ShowID, "action", action.Action, "error", err)
	}
}
