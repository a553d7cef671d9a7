package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"foyer/migrations"
)

// migrate uses connections of its own, without a limit on a statement's time: changing
// a large table may take long. A lock makes several processes take turns; the second
// finds nothing left to do.
func (p *postgres) migrate(ctx context.Context) error {
	config := p.pool.Config().ConnConfig
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, ours := config.RuntimeParams[limit]; ours {
			config.RuntimeParams[limit] = "0"
		}
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Postgres(), goose.WithSessionLocker(&migrationLock{db: db}))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// migrationLock is held by a transaction, and not by a session, so that it holds and ends
// also where a pooler gives each transaction another session.
type migrationLock struct {
	db *sql.DB
	tx *sql.Tx // nil while it is not held
}

// SessionLock waits for the lock, until ctx ends.
func (l *migrationLock) SessionLock(ctx context.Context, _ *sql.Conn) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("lock migrations: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", lock.DefaultLockID); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return fmt.Errorf("lock migrations: %w", err)
	}
	l.tx = tx
	return nil
}

// SessionUnlock gives the lock back.
func (l *migrationLock) SessionUnlock(context.Context, *sql.Conn) error {
	if l.tx == nil {
		return nil
	}
	defer func() { l.tx = nil }()
	return l.tx.Rollback()
}
