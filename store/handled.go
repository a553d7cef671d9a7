package store

import (
	"context"
	"fmt"
	"time"
)

// ForgetHandled forgets up to limit commands that had their effect at least olderThan
// ago, and returns how many. A command that comes back later still changes nothing: what
// it is about is decided, and says so itself. What is forgotten is only the proof that no
// command had two effects, and the means to see one that was used for two bookings.
func (db *DB) ForgetHandled(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	forgotten := 0
	err := db.engine.write(ctx, func(tx session) error {
		forgotten = 0
		return tx.run(ctx, statement{
			sql: `DELETE FROM handled_commands WHERE id IN (
				SELECT id FROM handled_commands WHERE handled_at <= ` + db.engine.ago("$1") + ` LIMIT $2) RETURNING id`,
			args: []any{olderThan.Microseconds(), limit},
			row: func(scanner) error {
				forgotten++
				return nil
			},
		})
	})
	if err != nil {
		return 0, fmt.Errorf("forget handled commands: %w", err)
	}
	return forgotten, nil
}
