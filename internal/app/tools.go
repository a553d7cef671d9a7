package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/config"
	"foyer/internal/recovery"
	"foyer/internal/verify"
	"foyer/lua"
	"foyer/store"
)

// Tools are what the operator's commands work with: the servers of a deployment that
// runs, and nothing that serves. Make them with OpenTools.
type Tools struct {
	app      *App
	verifier verify.Verifier
}

// OpenTools reaches for the servers that the role needs: config.RoleLetters for Redis,
// config.RoleTool for SQL too. It does not migrate.
func OpenTools(ctx context.Context, settings config.Config, log *slog.Logger) (_ *Tools, err error) {
	a := &App{config: settings, log: log, metrics: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	redis.SetLogger(redisLog{log}) // the library has one for the whole process
	if err := a.openRedis(ctx); err != nil {
		return nil, err
	}
	if settings.Role != config.RoleLetters {
		db, err := store.Open(ctx, settings.DatabaseURL)
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		a.store = db
		a.onClose(func() { _ = db.Close() })
	}
	a.openSteps()
	if err := a.openEvents(); err != nil {
		return nil, err
	}
	return &Tools{app: a, verifier: verify.Verifier{
		// Without a loader: looking must not change what is looked at.
		Redis: lua.New(a.commands), SQL: a.store, Streams: events.NewBacklog(a.commands), Letters: a.deadLetters,
	}}, nil
}

// CommandStreams are the streams that commands travel on, and may die on.
func CommandStreams() []string { return events.Streams() }

// Close releases everything.
func (t *Tools) Close() { t.app.Close() }

// Shows lists every show, newest first.
func (t *Tools) Shows(ctx context.Context) ([]domain.ShowID, error) {
	shows, err := t.app.store.Shows(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]domain.ShowID, len(shows))
	for i, show := range shows {
		ids[i] = show.ID
	}
	return ids, nil
}

// Verify holds a show against what Foyer promises; it changes nothing.
func (t *Tools) Verify(ctx context.Context, show domain.ShowID) (verify.Report, error) {
	return t.verifier.Verify(ctx, show)
}

// Rebuild brings a show in Redis to what SQL has sold.
func (t *Tools) Rebuild(ctx context.Context, show domain.ShowID) (recovery.Result, error) {
	return t.app.rebuilder().Rebuild(ctx, show)
}

// DeadLetters are the commands that were given up on.
func (t *Tools) DeadLetters() *events.DeadLetters { return t.app.deadLetters }

// rebuilder restores shows that Redis lost. Its parts may be opened after it is made,
// not after it is used.
func (a *App) rebuilder() *recovery.Rebuilder {
	return &recovery.Rebuilder{Store: a.store, Steps: a.steps, Commands: a.sender, Notifier: a.bus, Log: a.log}
}

// openSteps makes the steps in Redis, which restore a show that they miss.
func (a *App) openSteps() {
	options := []lua.Option{lua.WithLoader(func(ctx context.Context, show domain.ShowID) error {
		return a.rebuilder().Load(ctx, show)
	})}
	if a.embeddedRedis {
		options = append(options, lua.WithEmbedded())
	}
	a.steps = lua.New(a.commands, options...)
}
