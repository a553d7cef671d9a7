package store

import (
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// strictDoor is a way to a database that refuses what PgBouncer refuses by itself, and
// returns its address. Whole PgBouncers are for tests that are built with them.
func strictDoor(t *testing.T, database string) string {
	t.Helper()
	address, err := url.Parse(database)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var open sync.WaitGroup
	target := address.Host
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { letIn(client, target) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); open.Wait() })
	address.Host = listener.Addr().String()
	return address.String()
}

func letIn(client net.Conn, target string) {
	defer client.Close()
	door := pgproto3.NewBackend(client, client)
	message, err := door.ReceiveStartupMessage()
	asked, ok := message.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return
	}
	for name := range asked.Parameters {
		if !slices.Contains([]string{"user", "database", "application_name", "client_encoding"}, name) {
			door.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
			_ = door.Flush()
			return
		}
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	begin := pgproto3.NewFrontend(server, server)
	begin.Send(asked)
	if begin.Flush() != nil {
		return
	}
	go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
	_, _ = io.Copy(server, client)
}

// Behind a pooler a process could not start: it asked for settings of a session that is
// not its own. There it makes them in each transaction, and leaves none behind.
func TestAPoolerThatRefusesSettingsOfASession(t *testing.T) {
	t.Parallel()
	ctx, database := t.Context(), testenv.DatabaseURL(t)
	db, err := Open(ctx, strictDoor(t, database)+"&statement_timeout=7s")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, db.Migrate(ctx))
	p := db.engine.(*postgres)
	require.NotNil(t, p.each)
	shown := func(s session) (values []string) {
		for _, setting := range sessionSettings {
			value, _, err := first(ctx, s, one[string], `SELECT current_setting($1)`, setting.name)
			require.NoError(t, err)
			values = append(values, value)
		}
		return values
	}
	want := []string{"7s", idleInTransaction, planForValues, preferIndexes}
	require.Equal(t, want, shown(p), "where a reading stands alone")
	require.NoError(t, p.write(ctx, func(tx session) error {
		require.Equal(t, want, shown(tx), "in every statement of a transaction")
		return nil
	}))
	require.NoError(t, p.pool.QueryRow(ctx, `SELECT 1 WHERE current_setting('statement_timeout') = '0'`).Scan(new(int)), "the next user of the session has none of them")

	direct, err := Open(ctx, database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = direct.Close() })
	require.Nil(t, direct.engine.(*postgres).each, "a server takes them once for all")
	require.Equal(t, want[1:], shown(direct.engine)[1:])
	_, err = db.Show(ctx, "none")
	require.ErrorIs(t, err, domain.ErrShowNotFound)
	_, err = Open(ctx, strictDoor(t, database)+"&no_such_setting=1")
	_, other := pgx.ParseConfig(database)
	require.NoError(t, other)
	require.Error(t, err, "what somebody asked for and cannot have is told")
}
