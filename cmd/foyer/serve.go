package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"foyer/domain"
	"foyer/internal/app"
	"foyer/internal/config"
	"foyer/internal/crowd"
)

// devCommand runs everything in one process.
type devCommand struct {
	config.Flags `embed:""`
	Crowd        int    `placeholder:"N" help:"Simulate a crowd of N people at a show."`
	CrowdShow    string `default:"demo" placeholder:"SHOW" help:"The show that the simulated crowd comes for."`
}

// maxCrowd bounds the simulated crowd: the embedded Redis is for a few thousand.
const maxCrowd = 5000

func (c devCommand) Run(ctx context.Context, out io.Writer) error {
	if c.Crowd < 0 || c.Crowd > maxCrowd {
		return usageError{fmt.Errorf("--crowd must be from 0 to %d", maxCrowd)}
	}
	return serve(ctx, out, c.Flags, config.RoleDev, func(ctx context.Context, url string, log *slog.Logger) {
		if c.Crowd == 0 {
			return
		}
		settings := crowd.Config{BaseURL: url, Show: domain.ShowID(c.CrowdShow), People: c.Crowd, Log: log}
		summary, err := crowd.Run(ctx, settings)
		if err != nil {
			log.ErrorContext(ctx, "no crowd", "error", err)
			return
		}
		log.InfoContext(ctx, "crowd has gone home", "summary", summary.String())
	})
}

// apiCommand serves HTTP and sockets.
type apiCommand struct {
	config.Flags `embed:""`
}

func (c apiCommand) Run(ctx context.Context, out io.Writer) error {
	return serve(ctx, out, c.Flags, config.RoleAPI, nil)
}

// workerCommand consumes commands.
type workerCommand struct {
	config.Flags `embed:""`
}

// workerGarbage is how much a worker's heap may grow, in percent of what is alive,
// before it is collected. Little is alive in a worker and each command leaves some
// garbage: with the usual 100 it would collect dozens of times a second, which costs
// a third of its throughput. GOGC in the environment has precedence.
const workerGarbage = 400

func (c workerCommand) Run(ctx context.Context, out io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(workerGarbage)
	}
	return serve(ctx, out, c.Flags, config.RoleWorker, nil)
}

// migrateCommand brings the schema up to date.
type migrateCommand struct {
	config.Flags `embed:""`
}

func (c migrateCommand) Run(ctx context.Context, out io.Writer) error {
	settings, err := c.Load(config.RoleMigrate)
	if err != nil {
		return usageError{err}
	}
	if err := app.Migrate(ctx, settings.DatabaseURL); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "foyer: database is up to date")
	return err
}

// serve runs one role until ctx ends. beside, where given, runs next to it once
// it is ready and ends before it stops.
func serve(ctx context.Context, out io.Writer, flags config.Flags, role config.Role, beside func(context.Context, string, *slog.Logger)) error {
	settings, err := flags.Load(role)
	if err != nil {
		return usageError{err}
	}
	log := newLogger(settings)
	running, err := app.New(ctx, settings, log)
	if err != nil {
		return err
	}
	defer running.Close()
	besideDone := make(chan struct{})
	close(besideDone)
	err = running.Run(ctx, func(ready app.Ready) {
		for _, line := range ready.Lines() {
			fmt.Fprintln(out, line)
		}
		if beside != nil {
			besideDone = make(chan struct{})
			go func() {
				defer close(besideDone)
				beside(ctx, ready.URL, log)
			}()
		}
	})
	<-besideDone
	return err
}

func newLogger(settings config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.LogLevel}
	if settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
