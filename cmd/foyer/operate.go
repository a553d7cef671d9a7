package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"text/tabwriter"
	"time"

	"foyer/domain"
	"foyer/internal/app"
	"foyer/internal/config"
)

// showCommand is what an operator does to one show; every action is written down.
type showCommand struct {
	Pause   pauseCommand   `cmd:"" help:"Pause: nobody is let in but by an operator, and nobody loses a place."`
	Resume  resumeCommand  `cmd:"" help:"End a pause."`
	Close   closeCommand   `cmd:"" help:"End the sale."`
	Reopen  reopenCommand  `cmd:"" help:"Take the end of the sale back."`
	Message messageCommand `cmd:"" help:"Show a message to everybody at the show; an empty one takes it away."`
	Limits  limitsCommand  `cmd:"" help:"Change how many may be inside and come in; tells what that does to the median wait."`
	Admit   admitCommand   `cmd:"" help:"Let people in now, within the limits, also while paused."`
	Remove  removeCommand  `cmd:"" help:"End one person's place, waiting or inside."`
	Reset   resetCommand   `cmd:"" help:"End all places and begin a new epoch. Seats sold stay sold."`
	Audit   auditCommand   `cmd:"" help:"List what operators did to the show, newest first."`
}

// operatorArguments are those of every action.
type operatorArguments struct {
	config.Flags `embed:""`
	Show         string `arg:"" help:"Id of the show."`
	Operator     string `env:"FOYER_OPERATOR" placeholder:"NAME" help:"Who does this, for the record; by default the user of the operating system."`
}

// act opens the tools and does one thing to the show as somebody.
func (a operatorArguments) act(ctx context.Context, do func(tools *app.Tools, who domain.PersonID, show domain.ShowID) error) error {
	who, err := nameOperator(a.Operator)
	if err != nil {
		return usageError{err}
	}
	tools, err := openTools(ctx, a.Flags, config.RoleTool)
	if err != nil {
		return err
	}
	defer tools.Close()
	return do(tools, domain.PersonID(who), domain.ShowID(a.Show))
}

// nameOperator is who answers for what is done.
func nameOperator(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name, nil
	}
	current, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("say who you are with --operator: %w", err)
	}
	return current.Username, nil
}

// change changes the show and says so.
func (a operatorArguments) change(ctx context.Context, out io.Writer, action, done string, detail any, change func(*domain.Show)) error {
	return a.act(ctx, func(tools *app.Tools, who domain.PersonID, show domain.ShowID) error {
		_, err := tools.Desk().Change(ctx, who, show, action, detail, func(s *domain.Show) error {
			change(s)
			return errors.Join(s.Validate(), tools.WithinLimits(s.Queue))
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s: %s\n", show, done)
		return err
	})
}

type pauseCommand struct {
	operatorArguments `embed:""`
}

func (c pauseCommand) Run(ctx context.Context, out io.Writer) error {
	return c.change(ctx, out, domain.ActionPause, "paused", struct{}{}, func(s *domain.Show) { s.Paused = true })
}

type resumeCommand struct {
	operatorArguments `embed:""`
}

func (c resumeCommand) Run(ctx context.Context, out io.Writer) error {
	return c.change(ctx, out, domain.ActionResume, "resumed", struct{}{}, func(s *domain.Show) { s.Paused = false })
}

type closeCommand struct {
	operatorArguments `embed:""`
}

func (c closeCommand) Run(ctx context.Context, out io.Writer) error {
	return c.change(ctx, out, domain.ActionClose, "closed", struct{}{}, func(s *domain.Show) { s.Closed = true })
}

type reopenCommand struct {
	operatorArguments `embed:""`
}

func (c reopenCommand) Run(ctx context.Context, out io.Writer) error {
	return c.change(ctx, out, domain.ActionReopen, "reopened, unless its closing time has passed", struct{}{}, func(s *domain.Show) { s.Closed = false })
}

type messageCommand struct {
	operatorArguments `embed:""`
	Message           string `arg:"" optional:"" help:"The message."`
}

func (c messageCommand) Run(ctx context.Context, out io.Writer) error {
	detail := map[string]string{"message": c.Message}
	return c.change(ctx, out, domain.ActionChange, "told", detail, func(s *domain.Show) { s.Message = c.Message })
}

type limitsCommand struct {
	operatorArguments `embed:""`
	MaxActive         int  `placeholder:"N" help:"People inside at any instant."`
	RatePerMinute     int  `placeholder:"N" help:"Admissions in any 60 seconds."`
	Preview           bool `help:"Only tell what it would do."`
}

func (c limitsCommand) Run(ctx context.Context, out io.Writer) error {
	set := func(q *domain.QueueSettings) {
		if c.MaxActive != 0 {
			q.MaxActive = c.MaxActive
		}
		if c.RatePerMinute != 0 {
			q.RatePerMinute = c.RatePerMinute
		}
	}
	if c.MaxActive == 0 && c.RatePerMinute == 0 {
		return usageError{errors.New("name --max-active or --rate-per-minute; to let nobody in, pause")}
	}
	return c.act(ctx, func(tools *app.Tools, who domain.PersonID, show domain.ShowID) error {
		before, after, waiting, err := tools.Preview(ctx, show, set)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d waiting; median wait %s before, %s after\n", show, waiting, before, after)
		if c.Preview {
			return nil
		}
		detail := map[string]int{"maxActive": c.MaxActive, "ratePerMinute": c.RatePerMinute}
		_, err = tools.Desk().Change(ctx, who, show, domain.ActionChange, detail, func(s *domain.Show) error {
			set(&s.Queue)
			return errors.Join(s.Validate(), tools.WithinLimits(s.Queue))
		})
		return err
	})
}

type admitCommand struct {
	operatorArguments `embed:""`
	Count             int `arg:"" help:"How many, up to 10000."`
}

func (c admitCommand) Run(ctx context.Context, out io.Writer) error {
	if c.Count < 1 || c.Count > domain.MaxAdmitNow {
		return usageError{fmt.Errorf("the number must be from 1 to %d", domain.MaxAdmitNow)}
	}
	return c.act(ctx, func(tools *app.Tools, who domain.PersonID, show domain.ShowID) error {
		done, err := tools.Desk().Admit(ctx, who, show, c.Count)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d of %d let in", show, done.Admitted, done.Asked)
		if done.LimitedBy != "" {
			fmt.Fprintf(out, "; stopped by %s", done.LimitedBy)
		}
		_, err = fmt.Fprintln(out)
		return err
	})
}

type removeCommand struct {
	operatorArguments `embed:""`
	Place             string `arg:"" name:"request" help:"Request id of the place, or its person (needs FOYER_SIGNING_KEY)."`
}

func (c removeCommand) Run(ctx context.Context, out io.Writer) error {
	return c.act(ctx, func(tools *app.Tools, who domain.PersonID, show domain.ShowID) error {
		request, err := tools.Request(ctx, show, c.Place)
		if err == nil {
			err = tools.Desk().Remove(ctx, who, show, request)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s: %s removed\n", show, request)
		return err
	})
}

type resetCommand struct {
	operatorArguments `embed:""`
	Yes               bool `help:"Say that all places shall end."`
}

func (c resetCommand) Run(ctx context.Context, out io.Writer) error {
	if !c.Yes {
		return usageError{errors.New("this ends everybody's place; say so with --yes")}
	}
	return c.act(ctx, func(tools *app.Tools, who domain.PersonID, id domain.ShowID) error {
		show, err := tools.Desk().Reset(ctx, who, id, struct{}{}, func(*domain.Show) error { return nil })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s: all places ended; epoch %d\n", id, show.Epoch)
		return err
	})
}

type auditCommand struct {
	config.Flags `embed:""`
	Show         string `arg:"" help:"Id of the show."`
	Limit        int    `default:"50" help:"At most so many, up to 200."`
	JSON         bool   `name:"json" help:"Print one JSON document a line."`
}

func (c auditCommand) Run(ctx context.Context, out io.Writer) error {
	return listActions(ctx, out, c.Flags, c.Limit, c.JSON, func(tools *app.Tools) ([]domain.OperatorAction, error) {
		return tools.Actions(ctx, domain.ShowID(c.Show), "", c.Limit)
	})
}

// listActions prints what operators did.
func listActions(ctx context.Context, out io.Writer, flags config.Flags, limit int, asJSON bool, list func(*app.Tools) ([]domain.OperatorAction, error)) error {
	if limit < 1 || limit > domain.MaxActionPage {
		return usageError{fmt.Errorf("--limit must be from 1 to %d", domain.MaxActionPage)}
	}
	tools, err := openTools(ctx, flags, config.RoleTool)
	if err != nil {
		return err
	}
	defer tools.Close()
	actions, err := list(tools)
	if err != nil {
		return err
	}
	if asJSON {
		for _, action := range actions {
			err = errors.Join(err, json.NewEncoder(out).Encode(action))
		}
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AT\tBY\tACTION\tASKED\tOUTCOME")
	for _, a := range actions {
		outcome := a.Outcome
		if a.DoneAt == nil {
			outcome = "not done"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", a.At.Format(time.RFC3339), printable(string(a.Operator)), a.Action, brief(a.Detail), brief(outcome))
	}
	return table.Flush()
}

// explainCommand tells why somebody stands where they stand.
type explainCommand struct {
	config.Flags `embed:""`
	Show         string `arg:"" help:"Id of the show."`
	Place        string `arg:"" name:"request" help:"Request id of the place, or its person (needs FOYER_SIGNING_KEY)."`
	JSON         bool   `name:"json" help:"Print one JSON document."`
}

func (c explainCommand) Run(ctx context.Context, out io.Writer) error {
	tools, err := openTools(ctx, c.Flags, config.RoleTool)
	if err != nil {
		return err
	}
	defer tools.Close()
	facts, err := tools.Explain(ctx, domain.ShowID(c.Show), c.Place)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(out).Encode(map[string]any{"status": facts.Place.Status, "rank": facts.Place.Rank, "history": facts.History(), "rules": facts.Rules()})
	}
	fmt.Fprintf(out, "%s at %s: %s", facts.Place.RequestID, c.Show, facts.Place.Status)
	if facts.Place.Rank > 0 {
		fmt.Fprintf(out, ", number %d of %d", facts.Place.Rank, facts.Place.Waiting)
	}
	fmt.Fprintln(out)
	for _, event := range facts.History() {
		fmt.Fprintf(out, "  %s  %s\n", event.At.Format("2006-01-02 15:04:05.000"), event.What)
	}
	for _, rule := range facts.Rules() {
		fmt.Fprintf(out, "now: %s\n", rule.Text)
	}
	return nil
}
