package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Settings of a connection that the address does not name itself.
const (
	poolSize          = 16 // per process; raise with ?pool_max_conns=
	connectWithin     = 5 * time.Second
	connectionLife    = time.Hour
	connectionJitter  = 5 * time.Minute
	statementWithin   = "15s" // statement_timeout
	idleInTransaction = "30s" // a process that froze must not keep its locks
	rollbackWithin    = 5 * time.Second
	// pingWithin bounds the question whether a connection that was idle for a second
	// still answers. A half-open one must not cost a statement's whole time.
	pingWithin = 2 * time.Second

	// A plan kept for any values takes a group for ten rows: reading marks of a
	// thousand members was 20 times slower with it. And it outlives the empty
	// tables that it was made for.
	planForValues = "force_custom_plan"
	// What a sale touches is in memory. The default, for turning disks, makes a
	// group of 64 bookings read a whole table of ten thousand.
	preferIndexes = "1.1"
)

// postgres is the engine on PostgreSQL.
type postgres struct {
	pool *pgxpool.Pool
	// each, where set, stands before the statements of each transaction. It makes the
	// settings that a pooler between us and the server keeps no session for.
	each *statement
}

func openPostgres(ctx context.Context, address string) (engine, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address is not a url") // err would repeat the password
	}
	if !u.Query().Has("pool_max_conns") {
		config.MaxConns = poolSize
	}
	if !u.Query().Has("connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectWithin
	}
	if !u.Query().Has("pool_ping_timeout") {
		config.PingTimeout = pingWithin
	}
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = connectionLife, connectionJitter
	parameters := config.ConnConfig.RuntimeParams
	if _, named := parameters["application_name"]; !named {
		parameters["application_name"] = "foyer"
	}
	for _, s := range sessionSettings {
		if _, named := parameters[s.name]; !named {
			parameters[s.name] = s.value
		}
	}
	p, err := connectPostgres(ctx, config)
	if !refusesSettings(err) {
		return p, err
	}
	each := withoutSession(config, u.Query().Has("default_query_exec_mode"))
	if p, err = connectPostgres(ctx, config); err != nil {
		return nil, err
	}
	p.each = each
	return p, nil
}

func connectPostgres(ctx context.Context, config *pgxpool.Config) (*postgres, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return &postgres{pool: pool}, nil
}

func (p *postgres) name() string                   { return "postgres" }
func (p *postgres) ping(ctx context.Context) error { return p.pool.Ping(ctx) }
func (p *postgres) now() string                    { return "now()" }
func (p *postgres) locked(table string) string     { return " FOR UPDATE OF " + table }

func (p *postgres) ago(microseconds string) string {
	return "now() - " + microseconds + "::bigint * interval '1 microsecond'"
}

func (p *postgres) close() error {
	p.pool.Close()
	return nil
}

// rows passes each column as an array.
func (p *postgres) rows(first int, columns ...column) (string, []any) {
	var arrays, names []string
	var args []any
	for i, c := range columns {
		kind := "text"
		if _, numbers := c.values.([]int64); numbers {
			kind = "bigint"
		}
		arrays = append(arrays, "$"+strconv.Itoa(first+i)+"::"+kind+"[]")
		names = append(names, c.name)
		args = append(args, c.values)
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS r(" + strings.Join(names, ", ") + ")", args
}

// refused is data exceptions (class 22) and integrity violations (class 23).
func (p *postgres) refused(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pgErr.Code, "22") || strings.HasPrefix(pgErr.Code, "23"))
}

// Codes with which PostgreSQL breaks off one of several colliding transactions.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// transient also repeats what never reached the server over a stale connection.
func (p *postgres) transient(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == serializationFailure || pgErr.Code == deadlockDetected) || pgconn.SafeToRetry(err)
}

func (p *postgres) run(ctx context.Context, statements ...statement) error {
	return retry(ctx, pgconn.SafeToRetry, func() error {
		batch := &pgx.Batch{}
		if err := queue(batch, p.prepended(statements)); err != nil {
			return err
		}
		return p.pool.SendBatch(ctx, batch).Close()
	})
}

func (p *postgres) write(ctx context.Context, do func(tx session) error) error {
	return retry(ctx, p.transient, func() error {
		return p.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			tx := &postgresTx{postgres: p, conn: conn}
			if err := do(tx); err != nil {
				tx.rollback(ctx)
				return err
			}
			return tx.commit(ctx)
		})
	})
}

// writeSingly relies on the server, which takes statements sent together for one transaction.
func (p *postgres) writeSingly(ctx context.Context, do func(tx session) error) error {
	return retry(ctx, p.transient, func() error { return do(p) })
}

// postgresTx begins its transaction with its first statements, in one round trip.
type postgresTx struct {
	*postgres
	conn *pgxpool.Conn
	tx   pgx.Tx // nil until begun
}

func (t *postgresTx) run(ctx context.Context, statements ...statement) error {
	batch := &pgx.Batch{}
	if t.tx == nil {
		batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		statements = t.prepended(statements)
	}
	if err := queue(batch, statements); err != nil {
		return err
	}
	results := t.conn.SendBatch(ctx, batch)
	if t.tx == nil {
		t.tx = results.Tx()
	}
	return results.Close()
}

func (t *postgresTx) commit(ctx context.Context) error {
	if t.tx == nil {
		return nil
	}
	if err := t.tx.Commit(ctx); err != nil {
		t.rollback(ctx)
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// rollback runs although ctx may be over, so that the connection can go on. One
// that cannot be rolled back is closed by its pool, and the server rolls back.
func (t *postgresTx) rollback(ctx context.Context) {
	if t.tx == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
	defer cancel()
	_ = t.tx.Rollback(ctx)
}

func queue(batch *pgx.Batch, statements []statement) error {
	for _, s := range statements {
		args, err := bind(s.args, func(at time.Time) any { return at.UTC() }) // cut to microseconds by the driver
		if err != nil {
			return err
		}
		batch.Queue(s.sql, args...).Query(func(rows pgx.Rows) error {
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
		})
	}
	return nil
}
