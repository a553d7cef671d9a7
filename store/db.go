package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// DB is an open database. It is safe for concurrent use; who opened it closes it.
type DB struct{ engine engine }

// openWithin bounds how long Open waits for the database to answer.
const openWithin = 10 * time.Second

// Open connects to postgres://... (postgresql:// is the same) or opens the file
// of sqlite:PATH, creating the file but not its directory. It does not migrate.
func Open(ctx context.Context, url string) (*DB, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	scheme, path, _ := strings.Cut(url, ":")
	var e engine
	var err error
	switch scheme {
	case "postgres", "postgresql":
		e, err = openPostgres(ctx, url)
	case "sqlite":
		e, err = openSQLite(ctx, path)
	default:
		return nil, fmt.Errorf("database url must begin with postgres:// or sqlite:, not %q", scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s database: %w", scheme, err)
	}
	return &DB{engine: e}, nil
}

// Migrate brings the tables up to date. Any number of processes may do so at once.
func (db *DB) Migrate(ctx context.Context) error {
	if err := db.engine.migrate(ctx); err != nil {
		return fmt.Errorf("migrate %s database: %w", db.Dialect(), err)
	}
	return nil
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.engine.ping(ctx); err != nil {
		return fmt.Errorf("ping %s database: %w", db.Dialect(), err)
	}
	return nil
}

// Close gives all connections back; calls under way are waited for.
func (db *DB) Close() error { return db.engine.close() }

// Dialect names the database for logs: postgres or sqlite.
func (db *DB) Dialect() string { return db.engine.name() }
