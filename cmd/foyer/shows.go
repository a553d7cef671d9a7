package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"foyer/domain"
	"foyer/internal/app"
	"foyer/internal/config"
)

// showsArguments name the shows that a command is about.
type showsArguments struct {
	config.Flags `embed:""`
	Shows        []string `arg:"" optional:"" name:"show" help:"Ids of shows."`
	All          bool     `help:"Every show."`
	JSON         bool     `name:"json" help:"Print one JSON document a line, one for each show."`
}

// each opens the tools and runs a step for every show named. It goes on after a
// failure, so that one show's trouble does not hide another's.
func (a showsArguments) each(ctx context.Context, step func(*app.Tools, domain.ShowID) error) error {
	if (len(a.Shows) > 0) == a.All {
		return usageError{errors.New("name shows, or --all")}
	}
	tools, err := openTools(ctx, a.Flags, config.RoleTool)
	if err != nil {
		return err
	}
	defer tools.Close()
	var shows []domain.ShowID
	for _, id := range a.Shows {
		shows = append(shows, domain.ShowID(id))
	}
	if a.All {
		if shows, err = tools.Shows(ctx); err != nil {
			return err
		}
	}
	var failed []error
	for _, show := range shows {
		failed = append(failed, step(tools, show))
	}
	return errors.Join(failed...)
}

func openTools(ctx context.Context, flags config.Flags, role config.Role) (*app.Tools, error) {
	settings, err := flags.Load(role)
	if err != nil {
		return nil, usageError{err}
	}
	return app.OpenTools(ctx, settings, newLogger(settings))
}

// verifyCommand verifies shows; it fails when anything is wrong.
type verifyCommand struct {
	showsArguments `embed:""`
}

func (c verifyCommand) Run(ctx context.Context, out io.Writer) error {
	return c.each(ctx, func(tools *app.Tools, show domain.ShowID) error {
		report, err := tools.Verify(ctx, show)
		if err != nil {
			return err
		}
		if c.JSON {
			err = json.NewEncoder(out).Encode(report)
		} else {
			n := report.Numbers
			_, err = fmt.Fprintf(out, "%s: %d waiting, %d active, %d holds, %d seats sold, %d bookings (%d pending), %d commands unfinished, %d dead letters\n",
				show, n.Waiting, n.Active, n.Holds, n.Sold, n.Bookings, n.Pending, n.Unfinished, n.DeadLetters)
			for _, note := range report.Notes {
				fmt.Fprintf(out, "%s: note: %s\n", show, note)
			}
			for _, finding := range report.Findings {
				fmt.Fprintf(out, "%s: wrong: %s\n", show, finding)
			}
			if report.Clean() {
				fmt.Fprintf(out, "%s: clean\n", show)
			}
		}
		if err == nil && !report.Clean() {
			err = fmt.Errorf("show %s: wrong in %d ways", show, len(report.Findings))
		}
		return err
	})
}

// rebuildCommand rebuilds shows.
type rebuildCommand struct {
	showsArguments `embed:""`
}

func (c rebuildCommand) Run(ctx context.Context, out io.Writer) error {
	return c.each(ctx, func(tools *app.Tools, show domain.ShowID) error {
		result, err := tools.Rebuild(ctx, show)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(out).Encode(result)
		}
		done := "nothing was wrong"
		switch {
		case result.Restored:
			done = "restored from SQL"
		case result.Changed():
			done = fmt.Sprintf("%d bookings settled, %d corrections", result.Settled, result.Corrected)
		}
		_, err = fmt.Fprintf(out, "%s: %s; epoch %d, %d commands sent again\n", show, done, result.Epoch, result.Republished)
		return err
	})
}
