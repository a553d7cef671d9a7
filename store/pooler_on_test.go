//go:build pooler

package store_test

import (
	"testing"

	"foyer/internal/testenv"
)

// addPooler has every promise kept behind PgBouncer too, in its mode of transactions.
func addPooler(addresses map[string]func(*testing.T) string) {
	addresses["pgbouncer"] = func(t *testing.T) string { return testenv.StartPgBouncer(t, testenv.DatabaseURL(t)) }
}
