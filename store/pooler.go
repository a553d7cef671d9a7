package store

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessionSettings are what every session on PostgreSQL works under, unless the address
// says otherwise.
var sessionSettings = []struct{ name, value string }{
	{"statement_timeout", statementWithin},
	{"idle_in_transaction_session_timeout", idleInTransaction},
	{"plan_cache_mode", planForValues},
	{"random_page_cost", preferIndexes},
}

// protocolViolation is the code with which a pooler refuses settings of a session.
const protocolViolation = "08P01"

// refusesSettings recognises a pooler, such as PgBouncer, which gives sessions to many in
// turn and so refuses what one would set for itself.
func refusesSettings(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == protocolViolation && strings.Contains(pgErr.Message, "unsupported startup parameter")
}

// withoutSession makes a configuration ask nothing of a session: no settings, and no
// prepared statements that another session would not have, unless the address names a way
// to send statements. It returns the statement that makes the settings in each transaction.
func withoutSession(config *pgxpool.Config, named bool) *statement {
	parameters := config.ConnConfig.RuntimeParams
	var set []string
	var args []any
	for _, s := range sessionSettings {
		args = append(args, parameters[s.name])
		set = append(set, "set_config('"+s.name+"', $"+strconv.Itoa(len(args))+", true)")
		delete(parameters, s.name)
	}
	if !named {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return &statement{sql: "SELECT " + strings.Join(set, ", "), args: args}
}

// prepended puts the settings, where there is no session to have them, before the first
// statements of a transaction. Statements sent together without a transaction are one.
func (p *postgres) prepended(statements []statement) []statement {
	if p.each == nil {
		return statements
	}
	return append([]statement{*p.each}, statements...)
}
