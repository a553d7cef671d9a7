package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// helpCommand prints the commands, and every setting with its default.
type helpCommand struct{}

func (helpCommand) Run(parser *kong.Kong) error {
	for _, args := range [][]string{{"--help"}, {"dev", "--help"}} {
		// Help is printed while parsing. Its exit only sets a status here, so
		// parsing goes on and complains of a missing command: that is not news.
		_, _ = parser.Parse(args)
	}
	return nil
}

// versionCommand prints what was built.
type versionCommand struct{}

func (versionCommand) Run(out io.Writer) error {
	_, err := fmt.Fprintln(out, "foyer", builtVersion())
	return err
}

// version is set when a release is built.
var version string

// builtVersion is the release, else the module's version, else the commit.
func builtVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return "commit " + setting.Value
		}
	}
	return "devel"
}
