package app

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog takes what the Redis library says by itself, mostly that it could not
// connect. Whoever asked for the connection reports the failure too, so this is
// worth reading only when one looks closer.
type redisLog struct{ log *slog.Logger }

// Printf implements the library's logger.
func (r redisLog) Printf(ctx context.Context, format string, values ...any) {
	r.log.DebugContext(ctx, "redis client", "detail", fmt.Sprintf(format, values...))
}
