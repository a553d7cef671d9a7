package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/config"
)

// drawCommand is about the order in which a pre-queue is drawn.
type drawCommand struct {
	Verify verifyDrawCommand `cmd:"" help:"Recompute every place of a draw from its seed and the request ids; fail when anything differs."`
}

// verifyDrawCommand verifies a draw: from inside against the line in Redis, or, with a
// URL, as anybody can, from what the server tells everybody.
type verifyDrawCommand struct {
	config.Flags `embed:""`
	Show         string `arg:"" help:"Id of the show."`
	URL          string `name:"url" placeholder:"URL" help:"Address of the server: verify what it tells everybody. No other setting is needed."`
	SeedHash     string `placeholder:"HEX" help:"Hash of the seed, as it was noted down before the draw."`
	JSON         bool   `name:"json" help:"Print one JSON document."`
}

// drawVerdict is what verifying a draw came to.
type drawVerdict struct {
	ShowID      domain.ShowID `json:"showId"`
	SeedHash    string        `json:"seedHash"`
	Drawn       int           `json:"drawn"`
	Differences []string      `json:"differences"`
}

func (c verifyDrawCommand) Run(ctx context.Context, out io.Writer) error {
	judge := c.inside
	if c.URL != "" {
		judge = c.public
	}
	verdict, err := judge(ctx)
	if err != nil {
		return err
	}
	if c.SeedHash != "" && !strings.EqualFold(c.SeedHash, verdict.SeedHash) {
		verdict.Differences = append(verdict.Differences, "the hash of the seed is another than the one noted down")
	}
	if c.JSON {
		err = json.NewEncoder(out).Encode(verdict)
	} else {
		fmt.Fprintf(out, "%s: %d people were drawn; hash of the seed %s\n", c.Show, verdict.Drawn, verdict.SeedHash)
		for _, difference := range verdict.Differences {
			fmt.Fprintf(out, "%s: differs: %s\n", c.Show, printable(difference))
		}
		if len(verdict.Differences) == 0 {
			fmt.Fprintf(out, "%s: every place is as drawn\n", c.Show)
		}
	}
	if err == nil && len(verdict.Differences) > 0 {
		err = fmt.Errorf("draw of show %s: %d differences", c.Show, len(verdict.Differences))
	}
	return err
}

func (c verifyDrawCommand) inside(ctx context.Context) (drawVerdict, error) {
	tools, err := openTools(ctx, c.Flags, config.RoleTool)
	if err != nil {
		return drawVerdict{}, err
	}
	defer tools.Close()
	report, err := tools.VerifyDraw(ctx, domain.ShowID(c.Show))
	return drawVerdict{ShowID: report.ShowID, SeedHash: report.SeedHash, Drawn: report.Drawn, Differences: report.Differences}, err
}

func (c verifyDrawCommand) public(ctx context.Context) (drawVerdict, error) {
	server, err := client.New(c.URL)
	if err != nil {
		return drawVerdict{}, usageError{err}
	}
	draw, err := server.ClosedDraw(ctx, domain.ShowID(c.Show))
	return drawVerdict{ShowID: draw.ShowID, SeedHash: draw.SeedHash, Drawn: len(draw.Entries), Differences: draw.Differences()}, err
}
