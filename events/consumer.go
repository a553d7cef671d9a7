package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
)

// Roles of the clients that a Consumer asks for. Each call must make a client of
// its own: a blocked read holds its connection, and must not keep others from one.
const (
	RoleReader   = "reader"   // one per consumer; best with ContextTimeoutEnabled, MaxRetries -1 and a ReadTimeout longer than Block
	RoleCommands = "commands" // one per process, for all that does not block
)

// MaxConsumers bounds the readers per group of one process.
const MaxConsumers = 1024

// routerClose is how long the router waits for handlers when the drain is over:
// those left have ignored that their context ended.
const routerClose = time.Second

// ConsumerConfig configures a Consumer. Redis is needed, all else has a default.
type ConsumerConfig struct {
	Redis     func(role string) redis.UniversalClient // the Consumer closes what it was given
	Groups    []string                                // default: all
	Consumers int                                     // readers per group, default 1
	Log       *slog.Logger
	Metrics   prometheus.Registerer // nil: not registered
	Tracing   trace.TracerProvider  // nil: no spans; the caller's trace is carried all the same
	Limits    map[string]Limits     // by group
	Timing    Timing
}

// Consumer takes commands from streams and gives them to Handlers.
type Consumer struct {
	cfg      ConsumerConfig
	groups   []group
	handlers Handlers
	metrics  *metrics
	running  chan struct{}
	used     atomic.Bool
}

// NewConsumer checks everything and reports all problems at once. It does not
// reach for Redis; Run does.
func NewConsumer(cfg ConsumerConfig, handlers Handlers) (*Consumer, error) {
	var problems []error
	if cfg.Redis == nil {
		problems = append(problems, errors.New("consumer needs Redis clients"))
	}
	if cfg.Consumers == 0 {
		cfg.Consumers = 1
	}
	if cfg.Consumers < 1 || cfg.Consumers > MaxConsumers {
		problems = append(problems, fmt.Errorf("consumers must be between 1 and %d", MaxConsumers))
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Timing = cfg.Timing.withDefaults()
	groups, err := chooseGroups(cfg)
	problems = append(problems, err)
	for _, g := range groups {
		problems = append(problems, handlers.check(g.name))
	}
	m, err := newMetrics(cfg.Metrics)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg, groups: groups, handlers: handlers, metrics: m, running: make(chan struct{})}, nil
}

func chooseGroups(cfg ConsumerConfig) ([]group, error) {
	groups, names := allGroups(), []string{}
	for i, g := range groups {
		groups[i].limits = cfg.Limits[g.name].or(g.limits)
		names = append(names, g.name)
	}
	if len(cfg.Groups) == 0 {
		return groups, nil
	}
	var problems []error
	for _, name := range cfg.Groups {
		if !slices.Contains(names, name) {
			problems = append(problems, fmt.Errorf("there is no group %q; there are %v", name, names))
		}
	}
	chosen := slices.DeleteFunc(groups, func(g group) bool { return !slices.Contains(cfg.Groups, g.name) })
	return chosen, errors.Join(problems...)
}

// Running is closed when every subscription has begun.
func (c *Consumer) Running() <-chan struct{} { return c.running }

// Run consumes until ctx ends, then drains: running handlers finish, what is done
// is acknowledged, and the rest is handed back for others to take at once. It
// returns an error when consuming ended for another reason. It can run once.
func (c *Consumer) Run(ctx context.Context) error {
	if c.used.Swap(true) {
		return errors.New("consumer has run already")
	}
	clients := []redis.UniversalClient{c.cfg.Redis(RoleCommands)}
	defer func() {
		for _, client := range clients {
			_ = client.Close()
		}
	}()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: routerClose}, routerLog{c.cfg.Log})
	if err != nil {
		return fmt.Errorf("make router: %w", err)
	}
	var tidying sync.WaitGroup
	defer tidying.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, g := range c.groups {
		for n := range c.cfg.Consumers {
			readers := c.cfg.Redis(RoleReader)
			clients = append(clients, readers)
			s := &subscriber{
				group: g, timing: c.cfg.Timing, readers: readers, commands: clients[0],
				log: c.cfg.Log, metrics: c.metrics, prepare: c.prepare(g), dying: c.handlers.dying(g),
			}
			router.AddConsumerHandler(g.name+"-"+strconv.Itoa(n), g.stream, s, handle)
		}
		j := janitor{group: g, every: c.cfg.Timing.Janitor, rdb: clients[0], log: c.cfg.Log, metrics: c.metrics}
		tidying.Go(func() { j.run(ctx) })
	}
	tidying.Go(func() {
		select {
		case <-router.Running():
			close(c.running)
		case <-ctx.Done():
		}
	})
	if err := router.Run(ctx); err != nil {
		return fmt.Errorf("run router: %w", err)
	}
	if ctx.Err() == nil {
		return errors.New("consuming commands ended by itself")
	}
	return nil
}
