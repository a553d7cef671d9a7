package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"foyer/domain"
	"foyer/internal/operate"
)

// desk is where operators act. Its parts may be opened after it is made, not after it
// is used.
func (a *App) desk() *operate.Desk {
	return &operate.Desk{Store: a.store, Steps: a.steps, Commands: a.sender, Notifier: a.bus, Letters: a.deadLetters, Log: a.log}
}

// Desk is where operators act on shows.
func (t *Tools) Desk() *operate.Desk { return t.app.desk() }

// Actions lists what operators did to a show, newest first; before is the id of the last
// of the page before, or empty.
func (t *Tools) Actions(ctx context.Context, show domain.ShowID, before string, limit int) ([]domain.OperatorAction, error) {
	if _, err := t.app.store.Show(ctx, show); err != nil {
		return nil, err
	}
	return t.app.store.Actions(ctx, show, before, limit)
}

// LetterActions lists what operators did to dead letters, newest first.
func (t *Tools) LetterActions(ctx context.Context, limit int) ([]domain.OperatorAction, error) {
	return t.app.store.ActionsOfKind(ctx, domain.LetterActions(), "", limit)
}

// Request finds a place by its request id, or by its person where the signing key is
// known. It fails with domain.ErrNotJoined.
func (t *Tools) Request(ctx context.Context, show domain.ShowID, named string) (domain.RequestID, error) {
	request := domain.RequestID(named)
	_, err := t.app.steps.Place(ctx, show, request)
	if !errors.Is(err, domain.ErrNotJoined) {
		return request, err
	}
	if t.app.config.SigningKey == nil {
		return "", fmt.Errorf("%w under the request id %q; to find a person's, FOYER_SIGNING_KEY is needed", err, named)
	}
	request = domain.NewRequestIDs(t.app.config.SigningKey).For(show, domain.PersonID(named))
	_, err = t.app.steps.Place(ctx, show, request)
	return request, err
}

// Explain tells what became of a place and what decides about it now.
func (t *Tools) Explain(ctx context.Context, show domain.ShowID, named string) (domain.PlaceFacts, error) {
	stored, err := t.app.store.Show(ctx, show)
	if err != nil {
		return domain.PlaceFacts{}, err
	}
	request, err := t.Request(ctx, show, named)
	if err != nil {
		return domain.PlaceFacts{}, err
	}
	facts, err := t.app.steps.Explain(ctx, show, request)
	facts.Queue = stored.Queue
	return facts, err
}

// Preview tells how long the person in the middle of the line waits now and after a
// change of limits, which it does not make.
func (t *Tools) Preview(ctx context.Context, id domain.ShowID, change func(*domain.QueueSettings)) (before, after time.Duration, waiting int64, err error) {
	show, err := t.app.store.Show(ctx, id)
	if err != nil {
		return 0, 0, 0, err
	}
	stats, err := t.app.steps.Stats(ctx, id)
	if err != nil {
		return 0, 0, 0, err
	}
	old := show.Queue
	change(&show.Queue)
	if err := errors.Join(show.Validate(), t.WithinLimits(show.Queue)); err != nil {
		return 0, 0, 0, err
	}
	seconds := func(q domain.QueueSettings) time.Duration {
		return time.Duration(domain.MedianWait(stats[0], q)) * time.Second
	}
	return seconds(old), seconds(show.Queue), stats[0].Waiting, nil
}

// WithinLimits refuses limits beyond what this deployment allows any show.
func (t *Tools) WithinLimits(q domain.QueueSettings) error {
	var problems []domain.Problem
	for _, limit := range []struct {
		field       string
		value, most int
	}{{"queue.maxActive", q.MaxActive, t.app.config.MaxActiveLimit}, {"queue.ratePerMinute", q.RatePerMinute, t.app.config.RateLimit}} {
		if limit.value > limit.most {
			problems = append(problems, domain.Problem{Field: limit.field, Detail: fmt.Sprintf("may be at most %d in this deployment", limit.most)})
		}
	}
	if len(problems) > 0 {
		return &domain.InvalidError{Problems: problems}
	}
	return nil
}

// CodeOrder says which join codes an operator wants.
type CodeOrder = operate.CodeOrder

// MintCodes makes join codes as an operator orders them. It needs the signing key of the
// api processes, which check them.
func (t *Tools) MintCodes(ctx context.Context, who domain.PersonID, show domain.ShowID, order CodeOrder) ([]string, error) {
	if t.app.config.SigningKey == nil {
		return nil, errors.New("to make codes, FOYER_SIGNING_KEY is needed")
	}
	return t.Desk().MintCodes(ctx, who, show, domain.NewJoinCodes(t.app.config.SigningKey), order)
}
