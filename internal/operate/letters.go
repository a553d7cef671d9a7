package operate

import (
	"context"
	"errors"

	"foyer/domain"
	"foyer/events"
)

// Letters are the commands that were given up on. *events.DeadLetters has them.
type Letters interface {
	Get(ctx context.Context, stream, id string) (events.DeadLetter, error)
	Requeue(ctx context.Context, stream, id string) error
	Drop(ctx context.Context, stream, id string) error
}

// letterDetail says which dead letter it is: when it is gone, this is what is left of it.
type letterDetail struct {
	Stream    string           `json:"stream"`
	ID        string           `json:"id"`
	CommandID domain.CommandID `json:"commandId"`
	Type      string           `json:"type"`
	Reason    string           `json:"reason"` // of its death
}

// RequeueLetter puts a dead letter's command back on its stream, under its old command
// id, and writes down who did so. It fails with events.ErrDeadLetterNotFound.
func (d *Desk) RequeueLetter(ctx context.Context, who domain.PersonID, stream, id string) error {
	return d.onLetter(ctx, who, domain.ActionRequeueLetter, stream, id, d.Letters.Requeue)
}

// DropLetter removes a dead letter for good, and writes down who did so. It fails with
// events.ErrDeadLetterNotFound.
func (d *Desk) DropLetter(ctx context.Context, who domain.PersonID, stream, id string) error {
	return d.onLetter(ctx, who, domain.ActionDropLetter, stream, id, d.Letters.Drop)
}

// onLetter does one thing to a dead letter, which is entered before it is done, to the
// show that its command names. One that names none is entered to no show.
func (d *Desk) onLetter(ctx context.Context, who domain.PersonID, action, stream, id string, do func(ctx context.Context, stream, id string) error) error {
	letter, err := d.Letters.Get(ctx, stream, id)
	if err != nil {
		return err
	}
	show, _ := letter.About()
	if !show.Valid() { // a foreign hand may have written anything
		show = ""
	}
	entered := newAction(who, show, action, letterDetail{stream, letter.ID, letter.CommandID, letter.Type, letter.Reason})
	if err := d.Store.BeginAction(ctx, entered); err != nil {
		return err
	}
	err = do(ctx, stream, id)
	if err == nil || errors.Is(err, events.ErrDeadLetterNotFound) { // another operator may have been quicker; else nobody knows
		d.end(ctx, entered, map[string]bool{"done": err == nil})
	}
	return err
}
