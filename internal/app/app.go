// Package app wires Foyer's parts into a process: what a role needs is opened
// by New, served by Run until its context ends, and closed by Close. The
// commands and the end-to-end tests share it, so that what is tested is what runs.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"foyer/events"
	"foyer/internal/config"
	"foyer/lua"
	"foyer/store"
)

// App is one process of Foyer. Make it with New.
type App struct {
	config        config.Config
	log           *slog.Logger
	redis         redisServer
	commands      redis.UniversalClient
	store         *store.DB
	steps         *lua.Steps
	bus           *events.Bus
	sender        *events.Commands
	deadLetters   *events.DeadLetters
	metrics       *prometheus.Registry
	embedded      []string // what runs inside this process, for people to be told
	embeddedRedis bool     // Redis is, which is slower in some ways than a server
	closers       []func()
}

// New opens what the role needs: Redis, SQL with its schema up to date, and in
// dev whatever is embedded. When it fails, all it had opened is closed.
func New(ctx context.Context, settings config.Config, log *slog.Logger) (_ *App, err error) {
	a := &App{config: settings, log: log, metrics: prometheus.NewRegistry()}
	a.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if settings.Role == config.RoleDev {
		if err := a.embed(); err != nil {
			return nil, err
		}
	}
	redis.SetLogger(redisLog{log}) // the library has one for the whole process
	stopTracing, err := startTracing(ctx, string(settings.Role))
	if err != nil {
		return nil, err
	}
	a.onClose(func() { _ = stopTracing(context.WithoutCancel(ctx)) })
	if err := a.openRedis(ctx); err != nil {
		return nil, err
	}
	if err := a.openStore(ctx); err != nil {
		return nil, err
	}
	a.openSteps()
	if err := a.openEvents(); err != nil {
		return nil, err
	}
	if settings.Role == config.RoleDev {
		return a, a.ensureDemo(ctx)
	}
	return a, nil
}

// embed makes up what dev was given no address or key for.
func (a *App) embed() error {
	dir, cleanup, err := devDirectory(a.config.DataDir)
	if err != nil {
		return err
	}
	a.onClose(cleanup)
	if a.config.RedisURL == "" {
		embedded, err := startEmbeddedRedis()
		if err != nil {
			return err
		}
		a.onClose(embedded.close)
		a.config.RedisURL, a.embeddedRedis = embedded.url(), true
		a.embedded = append(a.embedded, "Redis inside this process (for trying out, never for a sale; good for a few thousand people)")
	}
	if a.config.DatabaseURL == "" {
		file := filepath.Join(dir, "foyer.db")
		a.config.DatabaseURL = "sqlite:" + file
		kept := "removed at the end; --data-dir keeps one"
		if a.config.DataDir != "" {
			kept = "kept"
		}
		a.embedded = append(a.embedded, fmt.Sprintf("SQLite file %s (%s)", file, kept))
	}
	if len(a.config.JWTSecret) == 0 && a.config.JWKS == "" {
		if a.config.JWTSecret, err = devKey(dir, "jwt-secret"); err != nil {
			return err
		}
	}
	if a.config.SigningKey == nil {
		a.config.SigningKey, err = devKey(dir, "signing-key")
	}
	return err
}

func (a *App) openRedis(ctx context.Context) error {
	server, err := parseRedis(a.config.RedisURL)
	if err != nil {
		return fmt.Errorf("FOYER_REDIS_URL: %w", err)
	}
	a.redis = server
	a.commands = a.client(server.commands)
	if err := awaitLoaded(ctx, a.commands); err != nil {
		return fmt.Errorf("reach redis: %w", err)
	}
	return nil
}

// Limits of waiting for a Redis that has just started and reads its data.
const (
	loadingWithin = 5 * time.Minute
	loadingPause  = 250 * time.Millisecond
)

// awaitLoaded returns when Redis answers, and waits while it reads its data.
func awaitLoaded(ctx context.Context, rdb redis.UniversalClient) error {
	for deadline := time.Now().Add(loadingWithin); ; {
		err := rdb.Ping(ctx).Err()
		if !redis.HasErrorPrefix(err, "LOADING") || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(loadingPause):
		}
	}
}

// client opens a Redis client that Close closes.
func (a *App) client(open func() redis.UniversalClient) redis.UniversalClient {
	client := open()
	a.onClose(func() { _ = client.Close() })
	return client
}

func (a *App) openStore(ctx context.Context) error {
	db, err := store.Open(ctx, a.config.DatabaseURL)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	a.store = db
	a.onClose(func() { _ = db.Close() })
	if err := db.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	return nil
}

// Close releases everything in the reverse order of opening. Run must have returned.
func (a *App) Close() {
	for _, closer := range slices.Backward(a.closers) {
		closer()
	}
	a.closers = nil
}

func (a *App) onClose(closer func()) { a.closers = append(a.closers, closer) }

// Migrate brings a database's schema up to date. Several processes may do so at once.
func Migrate(ctx context.Context, databaseURL string) (err error) {
	db, err := store.Open(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Migrate(ctx)
}
