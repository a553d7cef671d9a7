package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// engine is what differs between the databases. Statements are the same text
// with $1, $2, ... for both, but for the fragments that it gives.
type engine interface {
	session // reads outside a transaction

	// write runs do in one transaction and commits when it returns nil. When the
	// database asks for it, as after a deadlock, do runs again from the start, so
	// it must have no effect outside the transaction.
	write(ctx context.Context, do func(tx session) error) error

	// writeSingly is write for a do whose calls of run need not hold together: each may be
	// a transaction of its own, which is committed when the call returns. It saves
	// PostgreSQL the round trip of a COMMIT.
	writeSingly(ctx context.Context, do func(tx session) error) error

	// rows is a table r made of parameters, to read FROM: one argument for each
	// of the returned args, numbered from first.
	rows(first int, columns ...column) (from string, args []any)
	// now is the instant of the running statement or transaction.
	now() string
	// ago is the instant that many microseconds before now.
	ago(microseconds string) string
	// locked, at the end of a SELECT, keeps its rows of that table, so named in the
	// statement, from everybody else until the transaction ends.
	locked(table string) string
	// refused reports whether a statement failed for what it was asked to store,
	// so that the same statement without that value may succeed.
	refused(err error) bool

	name() string
	migrate(ctx context.Context) error
	ping(ctx context.Context) error
	close() error
}

// session runs statements one after the other; PostgreSQL is sent all of a call
// in one round trip. After an error the rest of them is not run.
type session interface {
	run(ctx context.Context, statements ...statement) error
}

// statement is a piece of SQL; row, unless nil, is called for each row it returns.
type statement struct {
	sql  string
	args []any
	row  func(scan scanner) error
}

// scanner copies the columns of the current row into dest.
type scanner func(dest ...any) error

// column is one column of engine.rows: its name and one value a row, as []string
// or []int64. Columns of one table are equally long.
type column struct {
	name   string
	values any
}

// query returns all rows of a statement; never nil without an error.
func query[T any](ctx context.Context, s session, read func(scanner) (T, error), sql string, args ...any) ([]T, error) {
	found := []T{}
	err := s.run(ctx, statement{sql: sql, args: args, row: func(scan scanner) error {
		value, err := read(scan)
		found = append(found, value)
		return err
	}})
	return found, err
}

// first returns the first row of a statement, and whether there was one.
func first[T any](ctx context.Context, s session, read func(scanner) (T, error), sql string, args ...any) (T, bool, error) {
	found, err := query(ctx, s, read, sql, args...)
	if err != nil || len(found) == 0 {
		var none T
		return none, false, err
	}
	return found[0], true, nil
}

// one reads a row of a single column.
func one[T any](scan scanner) (T, error) {
	var value T
	err := scan(&value)
	return value, err
}

// Limits of repeating a transaction that the database broke off to resolve a
// deadlock or a collision. The waits sum up to less than half a second.
const (
	maxAttempts  = 8
	firstBackoff = 2 * time.Millisecond
	maxBackoff   = 128 * time.Millisecond
)

// retry runs do until it succeeds, fails for good or has failed too often. The
// wait before each further attempt is random, so that two who collided part.
func retry(ctx context.Context, transient func(error) bool, do func() error) error {
	backoff := firstBackoff
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || !transient(err) {
			return err
		}
		if attempt == maxAttempts {
			return fmt.Errorf("given up after %d attempts: %w", attempt, err)
		}
		timer := time.NewTimer(rand.N(backoff) + time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}
