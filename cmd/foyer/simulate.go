package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"foyer/domain"
	"foyer/internal/simulate"
)

// simulateCommand plays a planned sale with a synthetic crowd. It needs no server.
type simulateCommand struct {
	MaxActive     int           `default:"1000" group:"Plan" help:"People inside at any instant."`
	RatePerMinute int           `default:"60000" group:"Plan" help:"Admissions in any 60 seconds."`
	Turn          time.Duration `default:"2m" group:"Plan" help:"Time to claim a turn."`
	Session       time.Duration `default:"15m" group:"Plan" help:"Time inside after the claim."`
	Grace         time.Duration `default:"1m" group:"Plan" help:"Silence after which a waiter is dropped."`
	LateJoin      time.Duration `default:"0s" group:"Plan" help:"How long after the opening people may still join the draw; admission begins then."`
	OverAdmit     int           `default:"0" group:"Plan" help:"Most turns beyond the rate, in percent, that make up for turns nobody claims."`
	Lanes         []string      `name:"lane" placeholder:"NAME:WEIGHT:SHARE" group:"Plan" help:"A lane, its weight, and the share of people with a code for it; once for each."`
	Ordinary      int           `name:"ordinary-weight" default:"1" group:"Plan" help:"Weight of the line without a lane."`
	Seats         int           `default:"20000" group:"Plan" help:"Seats on sale; 0 for a waiting room only."`
	Prequeue      time.Duration `default:"30m" group:"Plan" help:"How long before the opening people may enter the draw; 0 for no pre-queue."`
	Sale          time.Duration `default:"12h" group:"Plan" help:"When the sale ends, counted from the opening."`
	Tick          time.Duration `default:"1s" group:"Plan" help:"Time between regular admission steps."`

	People        int           `default:"100000" group:"Crowd" help:"People who come."`
	PrequeueShare float64       `default:"0.5" group:"Crowd" help:"Share of people who come before the opening, ever more towards it."`
	BurstShare    float64       `default:"0.3" group:"Crowd" help:"Share of people who come in the rush after the opening."`
	BurstDecay    time.Duration `default:"2m" group:"Crowd" help:"Time in which the rush falls to 37 %."`
	Trickle       time.Duration `default:"1h" group:"Crowd" help:"Time over which the rest comes evenly."`
	NoShow        float64       `default:"0.05" group:"Crowd" help:"Share of people who let their turn pass."`
	GiveUp        float64       `default:"0.2" group:"Crowd" help:"Share of people whose patience has an end while waiting."`
	Patience      time.Duration `default:"20m" group:"Crowd" help:"Mean patience of those."`
	Look          float64       `default:"0.2" group:"Crowd" help:"Share of people inside who leave without buying."`
	ClaimAfter    time.Duration `default:"5s" group:"Crowd" help:"Mean time from being let in to claiming the turn."`
	Inside        time.Duration `default:"3m" group:"Crowd" help:"Median time from the claim to paying or leaving."`
	SeatsPerBuyer []float64     `default:"25,50,10,15" group:"Crowd" help:"Weights of buying 1, 2, 3 and more seats."`

	Seed uint64 `default:"1" help:"The same seed gives the same sale."`
	SVG  string `name:"svg" placeholder:"FILE" help:"Draw the course of the sale into a file."`
	JSON bool   `name:"json" help:"Print the result as JSON instead of a table."`
}

func (c simulateCommand) Run(ctx context.Context, out io.Writer) error {
	plan, crowd, err := c.read()
	if err != nil {
		return usageError{err}
	}
	result, err := simulate.Run(ctx, plan, crowd, c.Seed)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return usageError{err}
	}
	if c.SVG != "" {
		if err := writeFile(c.SVG, result.WriteSVG); err != nil {
			return fmt.Errorf("draw the sale: %w", err)
		}
	}
	if c.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	return result.WriteTable(out)
}

// read turns flags into a plan and a crowd. A show's times are whole seconds.
func (c simulateCommand) read() (simulate.Plan, simulate.Crowd, error) {
	for name, d := range map[string]time.Duration{"turn": c.Turn, "session": c.Session, "grace": c.Grace, "late-join": c.LateJoin} {
		if d%time.Second != 0 {
			return simulate.Plan{}, simulate.Crowd{}, fmt.Errorf("--%s must be whole seconds", name)
		}
	}
	lanes, shares, err := readLanes(c.Lanes)
	if err != nil {
		return simulate.Plan{}, simulate.Crowd{}, err
	}
	plan := simulate.Plan{
		Queue: domain.QueueSettings{
			Lanes: lanes, OrdinaryWeight: c.Ordinary,
			MaxActive: c.MaxActive, RatePerMinute: c.RatePerMinute, TurnSeconds: int(c.Turn.Seconds()),
			SessionSeconds: int(c.Session.Seconds()), GraceSeconds: int(c.Grace.Seconds()),
			LateJoinSeconds: int(c.LateJoin.Seconds()), OverAdmitPercent: c.OverAdmit,
		},
		Seats: c.Seats, Prequeue: c.Prequeue, Sale: c.Sale, Tick: c.Tick,
	}
	crowd := simulate.Crowd{
		People: c.People, PrequeueShare: c.PrequeueShare, BurstShare: c.BurstShare, BurstDecay: c.BurstDecay, Trickle: c.Trickle,
		NoShowShare: c.NoShow, GiveUpShare: c.GiveUp, Patience: c.Patience, LookShare: c.Look,
		ClaimAfter: c.ClaimAfter, Inside: c.Inside, Seats: c.SeatsPerBuyer, LaneShares: shares,
	}
	return plan, crowd, nil
}

// readLanes reads lanes of the form NAME:WEIGHT:SHARE.
func readLanes(texts []string) (lanes []domain.Lane, shares []float64, err error) {
	for _, text := range texts {
		parts := strings.Split(text, ":")
		if len(parts) != 3 {
			return nil, nil, fmt.Errorf("--lane %q must be NAME:WEIGHT:SHARE", text)
		}
		weight, err := strconv.Atoi(parts[1])
		share, err2 := strconv.ParseFloat(parts[2], 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, nil, fmt.Errorf("--lane %q must be NAME:WEIGHT:SHARE: %w", text, err)
		}
		lanes, shares = append(lanes, domain.Lane{Name: parts[0], Weight: weight}), append(shares, share)
	}
	return lanes, shares, nil
}

// writeFile creates a file with what write writes, and reports a failing close.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
