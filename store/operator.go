package store

import (
	"context"
	"fmt"
	"time"

	"foyer/domain"
)

const actionColumns = `id, show_id, operator, action, detail, outcome, at, done_at`

func scanAction(scan scanner) (domain.OperatorAction, error) {
	var a domain.OperatorAction
	var at, done instant
	err := scan(&a.ID, &a.ShowID, &a.Operator, &a.Action, &a.Detail, &a.Outcome, &at, &done)
	a.At, a.DoneAt = at.time(), done.at
	return a, err
}

// insertAction writes an action down; where it is done, as of now.
func (db *DB) insertAction(a domain.OperatorAction, done bool) statement {
	doneAt := "NULL"
	if done {
		doneAt = db.engine.now()
	}
	return statement{
		sql: `INSERT INTO operator_actions (` + actionColumns + `) VALUES ($1, $2, $3, $4, $5, $6, ` + db.engine.now() + `, ` + doneAt + `)
			ON CONFLICT (id) DO NOTHING`,
		args: []any{a.ID, a.ShowID, a.Operator, a.Action, a.Detail, a.Outcome},
	}
}

// BeginAction writes down what an operator is about to do, before it is done.
func (db *DB) BeginAction(ctx context.Context, a domain.OperatorAction) error {
	err := db.engine.write(ctx, func(tx session) error { return tx.run(ctx, db.insertAction(a, false)) })
	if err != nil {
		return fmt.Errorf("write down the action %s: %w", a.Action, err)
	}
	return nil
}

// EndAction writes down what came of an action. Its end is written once.
func (db *DB) EndAction(ctx context.Context, id, outcome string) error {
	err := db.engine.write(ctx, func(tx session) error {
		return tx.run(ctx, statement{
			sql:  `UPDATE operator_actions SET outcome = $2, done_at = ` + db.engine.now() + ` WHERE id = $1 AND done_at IS NULL`,
			args: []any{id, outcome},
		})
	})
	if err != nil {
		return fmt.Errorf("write down what came of action %s: %w", id, err)
	}
	return nil
}

// ChangeShow is UpdateShow that writes down, in the same transaction, who did it.
func (db *DB) ChangeShow(ctx context.Context, a domain.OperatorAction, change func(*domain.Show) error) (domain.Show, error) {
	return db.changeShow(ctx, a, true, false, change)
}

// ResetShow begins the show's next epoch as an operator wishes, with what change makes
// of the show. The action is not done by that, since places are in Redis; until it is,
// its outcome is {"epoch": the one that begins}.
func (db *DB) ResetShow(ctx context.Context, a domain.OperatorAction, change func(*domain.Show) error) (domain.Show, error) {
	return db.changeShow(ctx, a, false, true, change)
}

func (db *DB) changeShow(ctx context.Context, a domain.OperatorAction, done, nextEpoch bool, change func(*domain.Show) error) (domain.Show, error) {
	var updated domain.Show
	err := db.engine.write(ctx, func(tx session) error {
		s, err := findShow(ctx, tx, a.ShowID, db.engine.locked("shows"))
		if err != nil {
			return err
		}
		if err := change(&s); err != nil {
			return err
		}
		if err := checkShow(s); err != nil {
			return err
		}
		if nextEpoch {
			next := statement{sql: `UPDATE shows SET epoch = epoch + 1 WHERE id = $1`, args: []any{a.ShowID}}
			if err := tx.run(ctx, next); err != nil {
				return err
			}
		}
		if updated, err = saveShow(ctx, tx, a.ShowID, s); err != nil {
			return err
		}
		if nextEpoch {
			a.Outcome = encode(map[string]int64{"epoch": updated.Epoch})
		}
		return tx.run(ctx, db.insertAction(a, done))
	})
	if err != nil {
		return domain.Show{}, fmt.Errorf("change show %s: %w", a.ShowID, err)
	}
	return updated, nil
}

// Actions lists what operators did to a show, newest first; before is the id of the
// last of the page before, or empty.
func (db *DB) Actions(ctx context.Context, show domain.ShowID, before string, limit int) ([]domain.OperatorAction, error) {
	if checkText(field{"id", string(show)}, field{"before", before}) != nil {
		return []domain.OperatorAction{}, nil
	}
	actions, err := query(ctx, db.engine, scanAction, `SELECT `+actionColumns+` FROM operator_actions a
		WHERE show_id = $1 AND ($2 = '' OR (at, id) < (SELECT b.at, b.id FROM operator_actions b WHERE b.id = $2))
		ORDER BY at DESC, id DESC LIMIT $3`, show, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list what was done to show %s: %w", show, err)
	}
	return actions, nil
}

// ActionsOfKind lists actions of certain kinds, done to any show or to none, newest
// first; before is the id of the last of the page before, or empty.
func (db *DB) ActionsOfKind(ctx context.Context, kinds []string, before string, limit int) ([]domain.OperatorAction, error) {
	if checkText(field{"before", before}) != nil {
		return []domain.OperatorAction{}, nil
	}
	from, args := db.engine.rows(3, column{"kind", kinds})
	actions, err := query(ctx, db.engine, scanAction, `SELECT `+actionColumns+` FROM operator_actions a
		WHERE action IN (SELECT kind FROM `+from+`) AND ($1 = '' OR (at, id) < (SELECT b.at, b.id FROM operator_actions b WHERE b.id = $1))
		ORDER BY at DESC, id DESC LIMIT $2`, append([]any{before, limit}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	return actions, nil
}

// UndoneActions lists actions of a kind, of any show, that are not done although they
// are as old as that, oldest first.
func (db *DB) UndoneActions(ctx context.Context, action string, olderThan time.Duration, limit int) ([]domain.OperatorAction, error) {
	actions, err := query(ctx, db.engine, scanAction, `SELECT `+actionColumns+` FROM operator_actions
		WHERE done_at IS NULL AND action = $1 AND at <= `+db.engine.ago("$2")+` ORDER BY at, id LIMIT $3`,
		action, olderThan.Microseconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("list actions that are not done: %w", err)
	}
	return actions, nil
}
