package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"foyer/domain"
	"foyer/internal/app"
	"foyer/internal/config"
)

// deadLettersCommand is about commands that were given up on.
type deadLettersCommand struct {
	List    listLettersCommand   `cmd:"" help:"List the latest, newest first."`
	Show    showLetterCommand    `cmd:"" help:"Print one whole."`
	Audit   auditLettersCommand  `cmd:"" help:"List what operators did to dead letters, newest first."`
	Requeue requeueLetterCommand `cmd:"" help:"Put commands back on their stream, under their old command ids: their effect still happens once."`
	Drop    dropLetterCommand    `cmd:"" help:"Remove dead letters for good."`
}

type listLettersCommand struct {
	config.Flags `embed:""`
	Stream       string `placeholder:"STREAM" help:"Only those of one stream."`
	Limit        int    `default:"100" help:"At most so many of each stream, up to 1000."`
	JSON         bool   `name:"json" help:"Print one JSON document a line."`
}

func (c listLettersCommand) Run(ctx context.Context, out io.Writer) error {
	if c.Limit < 1 || c.Limit > maxListedLetters {
		return usageError{fmt.Errorf("--limit must be from 1 to %d", maxListedLetters)}
	}
	if c.Stream != "" {
		if err := checkStream(c.Stream); err != nil {
			return err
		}
	}
	tools, err := openTools(ctx, c.Flags, config.RoleLetters)
	if err != nil {
		return err
	}
	defer tools.Close()
	letters, err := tools.DeadLetters().List(ctx, c.Stream, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, letter := range letters {
			err = errors.Join(err, json.NewEncoder(out).Encode(letter))
		}
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STREAM\tID\tDIED\tTYPE\tCOMMAND\tTRIES\tREASON\tLAST ERROR")
	for _, l := range letters {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			l.Stream, l.ID, l.At.Format(time.RFC3339), printable(l.Type), printable(string(l.CommandID)), l.Deliveries, l.Reason, brief(l.LastError))
	}
	return table.Flush()
}

// checkStream refuses a stream that there is not: it has no dead letters, whatever was meant.
func checkStream(name string) error {
	if streams := app.CommandStreams(); !slices.Contains(streams, name) {
		return usageError{fmt.Errorf("the stream must be one of %s", strings.Join(streams, ", "))}
	}
	return nil
}

// maxListedLetters bounds a list of dead letters, for each stream.
const maxListedLetters = 1000

// maxBrief is how much of an error a table shows, in characters.
const maxBrief = 80

func brief(text string) string {
	short := []rune(printable(text))
	if len(short) > maxBrief {
		return string(short[:maxBrief-1]) + "…"
	}
	return string(short)
}

// printable keeps what stands in an entry, which anybody may have written, from
// moving the cursor of the operator's terminal.
func printable(text string) string {
	safe := []rune(text)
	for i, r := range safe {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			safe[i] = ' '
		}
	}
	return string(safe)
}

// lettersArguments name dead letters of one stream.
type lettersArguments struct {
	config.Flags `embed:""`
	Stream       string   `arg:"" help:"Stream that the command was on, such as commands.booking."`
	IDs          []string `arg:"" name:"id" help:"Ids of dead letters."`
}

type showLetterCommand struct {
	lettersArguments `embed:""`
	JSON             bool `name:"json" help:"Print one JSON document a line."`
}

func (c showLetterCommand) Run(ctx context.Context, out io.Writer) error {
	if err := checkStream(c.Stream); err != nil {
		return err
	}
	tools, err := openTools(ctx, c.Flags, config.RoleLetters)
	if err != nil {
		return err
	}
	defer tools.Close()
	var failed []error
	for _, id := range c.IDs {
		letter, err := tools.DeadLetters().Get(ctx, c.Stream, id)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", c.Stream, id, err))
			continue
		}
		if c.JSON {
			failed = append(failed, json.NewEncoder(out).Encode(letter))
			continue
		}
		fmt.Fprintf(out, "stream       %s\nid           %s\ndied         %s\ncommand      %s\ntype         %s\nreason       %s\ntries        %d\nfirst error  %s\nlast error   %s\norigin       %s\n",
			letter.Stream, letter.ID, letter.At.Format(time.RFC3339Nano), printable(string(letter.CommandID)), printable(letter.Type), letter.Reason,
			letter.Deliveries, printable(letter.FirstError), printable(letter.LastError), letter.OriginID)
		for _, field := range slices.Sorted(maps.Keys(letter.Fields)) {
			fmt.Fprintf(out, "  %s = %s\n", printable(field), printable(letter.Fields[field]))
		}
	}
	return errors.Join(failed...)
}

// actArguments are those of a command that an operator answers for.
type actArguments struct {
	lettersArguments `embed:""`
	Operator         string `env:"FOYER_OPERATOR" placeholder:"NAME" help:"Who does this, for the record; by default the user of the operating system."`
}

type requeueLetterCommand struct {
	actArguments `embed:""`
}

func (c requeueLetterCommand) Run(ctx context.Context, out io.Writer) error {
	return c.act(ctx, out, "requeued", func(tools *app.Tools, who domain.PersonID, id string) error {
		return tools.Desk().RequeueLetter(ctx, who, c.Stream, id)
	})
}

type dropLetterCommand struct {
	actArguments `embed:""`
}

func (c dropLetterCommand) Run(ctx context.Context, out io.Writer) error {
	return c.act(ctx, out, "dropped", func(tools *app.Tools, who domain.PersonID, id string) error {
		return tools.Desk().DropLetter(ctx, who, c.Stream, id)
	})
}

// act does one thing to each dead letter, which is written down with who did it.
func (c actArguments) act(ctx context.Context, out io.Writer, done string, do func(tools *app.Tools, who domain.PersonID, id string) error) error {
	if err := checkStream(c.Stream); err != nil {
		return err
	}
	who, err := nameOperator(c.Operator)
	if err != nil {
		return usageError{err}
	}
	tools, err := openTools(ctx, c.Flags, config.RoleTool)
	if err != nil {
		return err
	}
	defer tools.Close()
	var failed []error
	for _, id := range c.IDs {
		if err := do(tools, domain.PersonID(who), id); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", c.Stream, id, err))
			continue
		}
		fmt.Fprintf(out, "%s %s: %s\n", c.Stream, id, done)
	}
	return errors.Join(failed...)
}

type auditLettersCommand struct {
	config.Flags `embed:""`
	Limit        int  `default:"50" help:"At most so many, up to 200."`
	JSON         bool `name:"json" help:"Print one JSON document a line."`
}

func (c auditLettersCommand) Run(ctx context.Context, out io.Writer) error {
	return listActions(ctx, out, c.Flags, c.Limit, c.JSON, func(tools *app.Tools) ([]domain.OperatorAction, error) {
		return tools.LetterActions(ctx, c.Limit)
	})
}
