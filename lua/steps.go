package lua

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"foyer/domain"
)

// Steps runs the atomic steps against one Redis: a single server, Sentinel or a
// cluster. It is safe for use by many goroutines. It starts none and owns nothing:
// who made the client closes it.
type Steps struct {
	rdb     redis.UniversalClient
	scripts map[string]*script
	load    func(ctx context.Context, show domain.ShowID) error
	loads   singleflight.Group
	joins   *gatherer[JoinRequest, joined]
	whole   int // longest line that is sampled from one read
	offset  atomic.Int64
}

// Option sets how Steps works.
type Option func(*Steps)

// WithLoader names who brings a show into Redis that is not there, by Restore. When
// a step finds no show, load runs once, also for all who wait for the same show, and
// the step is tried once more. Without a loader the step fails with domain.ErrNotLoaded.
func WithLoader(load func(ctx context.Context, show domain.ShowID) error) Option {
	return func(s *Steps) { s.load = load }
}

// WithEmbedded suits the steps to the embedded server, which sorts a line anew at
// every read: what samples a line reads it once, whatever its length.
func WithEmbedded() Option {
	return func(s *Steps) { s.whole = embeddedLine }
}

// Lines up to a length are read whole for a sample. On a real server a read per knot
// is faster beyond a few hundred, and holds it up less.
const (
	wholeLine    = 200
	embeddedLine = 1 << 30
)

// New returns steps on a client. Where the client repeats a command whose answer was
// lost, a step may run twice; see the package's promises.
func New(rdb redis.UniversalClient, opts ...Option) *Steps {
	s := &Steps{rdb: rdb, scripts: loadScripts(), whole: wholeLine}
	s.joins = newGatherer(maxBatch, s.joinAll)
	for _, opt := range opts {
		opt(s)
	}
	return s
}
