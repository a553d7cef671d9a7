package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"foyer/domain"
)

// Everything here needs the operator role, and is written down with who did it.

// AdmittedNow is what came of letting people in by hand.
type AdmittedNow struct {
	Asked     int    `json:"asked"`
	Admitted  int    `json:"admitted"`
	LimitedBy string `json:"limitedBy"` // maxActive, ratePerMinute or waiting; empty: all came in
}

// AdmitNow lets up to count people in now, within the show's limits, also while paused.
func (c *Client) AdmitNow(ctx context.Context, show domain.ShowID, count int) (a AdmittedNow, err error) {
	err = c.operate(ctx, show, "admit", map[string]int{"count": count}, &a)
	return a, err
}

// Remove ends one person's place, waiting or inside.
func (c *Client) Remove(ctx context.Context, show domain.ShowID, request domain.RequestID) error {
	return c.operate(ctx, show, "remove", map[string]domain.RequestID{"requestId": request}, nil)
}

// Reset ends all places of a show and begins a new epoch; seats sold stay sold.
func (c *Client) Reset(ctx context.Context, show domain.ShowID) (s Show, err error) {
	err = c.operate(ctx, show, "reset", nil, &s)
	return s, err
}

// Preview is what a change of limits would do to those who wait.
type Preview struct {
	Waiting int64                `json:"waiting"`
	Before  int64                `json:"medianSecondsBefore"`
	After   int64                `json:"medianSecondsAfter"`
	Queue   domain.QueueSettings `json:"queue"` // as it would be
}

// Preview tells what a change would do; it changes nothing.
func (c *Client) Preview(ctx context.Context, show domain.ShowID, change QueueChange) (p Preview, err error) {
	err = c.operate(ctx, show, "preview", map[string]QueueChange{"queue": change}, &p)
	return p, err
}

// CodeOrder says which join codes an operator wants.
type CodeOrder struct {
	Lane   string          `json:"lane"`
	Count  int             `json:"count,omitempty"` // 0: one
	Person domain.PersonID `json:"person,omitempty"`
	Uses   int             `json:"uses,omitempty"` // by how many people each; 0: by any number
	Until  *time.Time      `json:"until,omitempty"`
}

// MintCodes makes codes with which people join a lane of a show.
func (c *Client) MintCodes(ctx context.Context, show domain.ShowID, order CodeOrder) ([]string, error) {
	var answer struct {
		Codes []string `json:"codes"`
	}
	err := c.operate(ctx, show, "codes", order, &answer)
	return answer.Codes, err
}

func (c *Client) operate(ctx context.Context, show domain.ShowID, action string, body, answer any) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: path("operator", "shows", string(show), action), body: body, answer: answer})
	return err
}

// Action is something that an operator did to a show, or to a dead letter.
type Action struct {
	ID       string          `json:"id"`
	Operator domain.PersonID `json:"operator"`
	Action   string          `json:"action"`
	Detail   json.RawMessage `json:"detail"`  // what was asked for
	Outcome  json.RawMessage `json:"outcome"` // null until it is done
	At       time.Time       `json:"at"`
	DoneAt   *time.Time      `json:"doneAt"`
}

// Actions lists what operators did to a show, newest first; before is the id of the last
// of the page before, or empty.
func (c *Client) Actions(ctx context.Context, show domain.ShowID, before string, limit int) ([]Action, error) {
	return c.actions(ctx, path("operator", "shows", string(show), "audit"), before, limit)
}

// LetterActions lists what operators did to dead letters, in the same way.
func (c *Client) LetterActions(ctx context.Context, before string, limit int) ([]Action, error) {
	return c.actions(ctx, path("operator", "dead-letters", "audit"), before, limit)
}

func (c *Client) actions(ctx context.Context, path, before string, limit int) ([]Action, error) {
	var answer struct {
		Actions []Action `json:"actions"`
	}
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if before != "" {
		query.Set("before", before)
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, answer: &answer})
	return answer.Actions, err
}

// Explanation is one place with its history and the rules that decide about it now.
type Explanation struct {
	Place   Place               `json:"place"`
	History []domain.PlaceEvent `json:"history"`
	Rules   []domain.Rule       `json:"rules"`
}

// Explain tells what became of a place, named by its request id or its person.
func (c *Client) Explain(ctx context.Context, show domain.ShowID, named string) (e Explanation, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("operator", "shows", string(show), "places", named, "explain"), answer: &e})
	return e, err
}
