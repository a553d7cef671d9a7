package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"

	"foyer/migrations"
)

// Settings of the embedded database. Writers take turns on one connection;
// readers see the last commit without waiting for them (WAL). FULL survives a
// power cut without losing what was answered.
const (
	sqliteReaders     = 4
	sqliteBusyTimeout = 5 * time.Second // waiting for another process
)

// sqlite is the engine on an embedded SQLite file.
type sqlite struct{ reader, writer *sql.DB }

func openSQLite(ctx context.Context, path string) (engine, error) {
	path = strings.TrimPrefix(path, "//") // sqlite:///PATH is written by habit
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("sqlite: needs the path of a file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("directory of the file: %w", err)
	}
	writer, err := openSQLitePool(ctx, path, 1, "_txlock", "immediate")
	if err != nil {
		return nil, err
	}
	reader, err := openSQLitePool(ctx, path, sqliteReaders, "_query_only", "1")
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	return &sqlite{reader: reader, writer: writer}, nil
}

func openSQLitePool(ctx context.Context, path string, size int, option, value string) (*sql.DB, error) {
	options := url.Values{
		"_busy_timeout": {strconv.FormatInt(sqliteBusyTimeout.Milliseconds(), 10)},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"1"},
		"_error_rc":     {"1"},
		option:          {value},
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}
	pool, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

func (l *sqlite) name() string                   { return "sqlite" }
func (l *sqlite) ping(ctx context.Context) error { return l.writer.PingContext(ctx) }
func (l *sqlite) close() error                   { return errors.Join(l.reader.Close(), l.writer.Close()) }
func (l *sqlite) locked(string) string           { return "" } // a writing transaction is alone

func (l *sqlite) now() string {
	return "CAST(round(unixepoch('now', 'subsec') * 1000000) AS INTEGER)"
}

func (l *sqlite) ago(microseconds string) string { return l.now() + " - " + microseconds }

// rows passes the whole table as one JSON array of rows.
func (l *sqlite) rows(first int, columns ...column) (string, []any) {
	var table [][]any
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = fmt.Sprintf("value ->> %d AS %s", i, c.name)
		switch values := c.values.(type) {
		case []string:
			table = fill(table, i, len(columns), values)
		case []int64:
			table = fill(table, i, len(columns), values)
		}
	}
	text, err := json.Marshal(table)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return fmt.Sprintf("(SELECT %s FROM json_each($%d)) AS r", strings.Join(fields, ", "), first), []any{string(text)}
}

func fill[T any](table [][]any, index, width int, values []T) [][]any {
	if table == nil {
		table = make([][]any, len(values))
	}
	for i, value := range values {
		if table[i] == nil {
			table[i] = make([]any, width)
		}
		table[i][index] = value
	}
	return table
}

// Primary result codes of SQLite; extended codes have more bits above.
const (
	sqlitePrimary    = 0xff
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteMismatch   = 20
)

func sqliteCode(err error) int {
	sqliteErr, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return 0
	}
	return sqliteErr.Code() & sqlitePrimary
}

func (l *sqlite) refused(err error) bool {
	code := sqliteCode(err)
	return code == sqliteTooBig || code == sqliteConstraint || code == sqliteMismatch
}

func (l *sqlite) transient(err error) bool {
	code := sqliteCode(err)
	return code == sqliteBusy || code == sqliteLocked
}

func (l *sqlite) run(ctx context.Context, statements ...statement) error {
	return runSQLite(ctx, l.reader, statements)
}

func (l *sqlite) write(ctx context.Context, do func(tx session) error) error {
	return retry(ctx, l.transient, func() error {
		tx, err := l.writer.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if err := do(sqliteTx{tx}); err != nil {
			_ = tx.Rollback() // the first error is the one to tell
			return err
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		return nil
	})
}

// writeSingly has nothing to save: there is no round trip, and only the writer may write.
func (l *sqlite) writeSingly(ctx context.Context, do func(tx session) error) error {
	return l.write(ctx, do)
}

type sqliteTx struct{ tx *sql.Tx }

func (t sqliteTx) run(ctx context.Context, statements ...statement) error {
	return runSQLite(ctx, t.tx, statements)
}

type sqliteQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func runSQLite(ctx context.Context, q sqliteQuerier, statements []statement) error {
	for _, s := range statements {
		if err := runSQLiteStatement(ctx, q, s); err != nil {
			return err
		}
	}
	return nil
}

func runSQLiteStatement(ctx context.Context, q sqliteQuerier, s statement) error {
	args, err := bind(s.args, func(at time.Time) any { return at.UnixMicro() })
	if err != nil {
		return err
	}
	rows, err := q.QueryContext(ctx, s.sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if s.row == nil {
			continue
		}
		if err := s.row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// migrate repeats when it failed, because SQLite has no lock that would make two
// processes take turns: the one that came second fails on tables that are there,
// and finds them recorded when it looks again.
func (l *sqlite) migrate(ctx context.Context) error {
	provider, err := goose.NewProvider(goose.DialectSQLite3, l.writer, migrations.SQLite())
	if err != nil {
		return err
	}
	return retry(ctx, func(error) bool { return ctx.Err() == nil }, func() error {
		_, err := provider.Up(ctx)
		return err
	})
}
