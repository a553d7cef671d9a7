package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"foyer/domain"
	"foyer/internal/app"
)

// codeCommand is what an operator does with join codes.
type codeCommand struct {
	Mint    mintCommand    `cmd:"" help:"Make codes with which people join a lane of a show; one a line."`
	Inspect inspectCommand `cmd:"" help:"Tell what a code says, and whether it was made with FOYER_SIGNING_KEY."`
}

type mintCommand struct {
	operatorArguments `embed:""`
	Lane              string    `required:"" placeholder:"NAME" help:"Lane of the show."`
	Count             int       `default:"1" help:"How many codes."`
	Person            string    `placeholder:"PERSON" help:"The only person who may use them; by default whoever has them."`
	Uses              int       `default:"0" help:"By how many people each may be used; 0 for any number."`
	Until             time.Time `placeholder:"TIME" help:"When they expire, such as 2027-03-01T12:00:00Z; by default never."`
}

func (c mintCommand) Run(ctx context.Context, out io.Writer) error {
	if c.Count < 1 || c.Count > domain.MaxCodesAtOnce {
		return usageError{fmt.Errorf("--count must be between 1 and %d", domain.MaxCodesAtOnce)}
	}
	order := app.CodeOrder{Count: c.Count, Code: domain.JoinCode{Lane: c.Lane, Person: domain.PersonID(c.Person), Uses: c.Uses}}
	if !c.Until.IsZero() {
		until := c.Until.UTC().Truncate(time.Second)
		order.Code.Until = &until
	}
	return c.act(ctx, func(tools *app.Tools, who domain.PersonID, show domain.ShowID) error {
		codes, err := tools.MintCodes(ctx, who, show, order)
		if err != nil {
			return err
		}
		for _, code := range codes {
			if _, err := fmt.Fprintln(out, code); err != nil {
				return err
			}
		}
		return nil
	})
}

// inspectCommand needs no server.
type inspectCommand struct {
	Code string `arg:"" help:"The code."`
	Key  string `name:"signing-key" env:"FOYER_SIGNING_KEY" placeholder:"HEX" help:"Key that codes are signed with; without it nobody can tell whether the code is genuine."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

var errNotGenuine = errors.New("the code is not genuine")

func (c inspectCommand) Run(out io.Writer) error {
	code, err := domain.ReadJoinCode(c.Code)
	if err != nil {
		return usageError{err}
	}
	genuine, err := c.genuine()
	if err != nil {
		return err
	}
	if c.JSON {
		err := json.NewEncoder(out).Encode(map[string]any{
			"id": code.ID, "showId": code.ShowID, "lane": code.Lane, "person": code.Person, "uses": code.Uses, "until": code.Until, "genuine": genuine,
		})
		if genuine != nil && !*genuine {
			err = errors.Join(err, errNotGenuine)
		}
		return err
	}
	fmt.Fprintf(out, "show   %s\nlane   %s\n", code.ShowID, code.Lane)
	if code.Person != "" {
		fmt.Fprintf(out, "person %s\n", code.Person)
	}
	if code.Uses > 0 {
		fmt.Fprintf(out, "uses   %d\n", code.Uses)
	}
	if code.Until != nil {
		fmt.Fprintf(out, "until  %s%s\n", code.Until.Format(time.RFC3339), map[bool]string{true: ", which is over"}[!time.Now().Before(*code.Until)])
	}
	verdict := "cannot be told without FOYER_SIGNING_KEY"
	if genuine != nil {
		verdict = map[bool]string{true: "yes", false: "no: made with another key, or altered"}[*genuine]
	}
	fmt.Fprintf(out, "genuine %s\n", verdict)
	if genuine != nil && !*genuine {
		return errNotGenuine
	}
	return nil
}

// genuine tells whether the key at hand signed the code; nil: there is none at hand.
func (c inspectCommand) genuine() (*bool, error) {
	if c.Key == "" {
		return nil, nil
	}
	key, err := hex.DecodeString(c.Key)
	if err != nil {
		return nil, usageError{errors.New("FOYER_SIGNING_KEY must be hex digits")}
	}
	_, err = domain.NewJoinCodes(key).Inspect(c.Code)
	genuine := err == nil
	return &genuine, nil
}
