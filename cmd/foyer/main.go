// Command foyer is the whole of Foyer in one binary: dev runs everything in one
// process, api and worker are the processes of a deployment, the rest are tools
// for whoever runs it. Settings are read from the environment or from flags of
// the same name.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit statuses: a stop by signal is a success.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // what was asked for or configured is wrong
)

// commandLine is everything that can be asked of the binary.
type commandLine struct {
	Dev         devCommand         `cmd:"" help:"Run everything in one process, with embedded servers where none is named. For trying out, never for a sale."`
	API         apiCommand         `cmd:"" name:"api" help:"Serve HTTP and sockets."`
	Worker      workerCommand      `cmd:"" help:"Consume commands: admission, booking, chat."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database's schema up to date."`
	Verify      verifyCommand      `cmd:"" help:"Hold shows against what Foyer promises, across Redis, the streams and SQL."`
	Rebuild     rebuildCommand     `cmd:"" help:"Bring shows in Redis to what SQL has sold, and take up pending bookings."`
	Show        showCommand        `cmd:"" help:"Pause, close, reset a show, let people in or remove one, change limits, list what was done."`
	Explain     explainCommand     `cmd:"" help:"Tell the history of a place and the rule that decides about it now."`
	Code        codeCommand        `cmd:"" help:"Make join codes for the lanes of a show, or tell what one says."`
	Draw        drawCommand        `cmd:"" help:"Check a draw."`
	DeadLetters deadLettersCommand `cmd:"" name:"dead-letters" help:"List, show, requeue or drop commands that were given up on."`
	Simulate    simulateCommand    `cmd:"" help:"Play a planned sale with a synthetic crowd, and tell when it is sold out and how long people wait."`
	Token       tokenCommand       `cmd:"" help:"Mint an identity token with FOYER_JWT_SECRET."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
	Help        helpCommand        `cmd:"" help:"List all commands, settings and defaults."`
}

// usageError is what the caller can mend: exit status 2 and no more than its text.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run parses and carries out one command line; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var exited *int
	parser, err := kong.New(&commandLine{}, kong.Name("foyer"),
		kong.Description("A self-hosted waiting room and box office."),
		kong.Writers(stdout, stderr), kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Exit(func(status int) { exited = &status }), kong.UsageOnError())
	if err != nil {
		fmt.Fprintln(stderr, "foyer:", err)
		return exitFailure
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	asked, err := parser.Parse(args)
	switch {
	case exited != nil: // --help has answered
		return *exited
	case err != nil:
		fmt.Fprintln(stderr, "foyer:", err)
		return exitUsage
	}
	return report(asked.Run(parser), stderr)
}

// report prints an error, one line each where several were joined.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(stderr, "foyer:", line)
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
