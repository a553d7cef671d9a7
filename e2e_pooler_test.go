//go:build pooler

package foyer_test

import (
	"testing"

	"foyer/internal/testenv"
)

// Every process comes to PostgreSQL by way of PgBouncer, which gives each transaction
// another session: people buy as without it.
func TestE2EBehindPgBouncer(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t), dbURL: testenv.StartPgBouncer(t, testenv.DatabaseURL(t))}, 2, 2)
	c := d.openTo(t, 20)
	c.flows("sales by way of the pooler", 100)
	c.goHome()
}
