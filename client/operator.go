package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"foyer/domain"
)

// OperatorShow is a show with its live numbers.
type OperatorShow struct {
	domain.Stats
	Availability domain.Availability `json:"availability"`
	Closed       bool                `json:"closed"` // ended by hand
	Show         Show                `json:"show"`
}

// OperatorShow returns a show's live numbers; it needs the operator role.
func (c *Client) OperatorShow(ctx context.Context, show domain.ShowID) (s OperatorShow, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("operator", "shows", string(show)), answer: &s})
	return s, err
}

// OperatorShows returns the live numbers of every show; it needs the operator role.
func (c *Client) OperatorShows(ctx context.Context) ([]OperatorShow, error) {
	var answer struct {
		Shows []OperatorShow `json:"shows"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("operator", "shows"), answer: &answer})
	return answer.Shows, err
}

// DeadLetter is a command that was given up on.
type DeadLetter struct {
	Stream     string            `json:"stream"`
	ID         string            `json:"id"`
	At         time.Time         `json:"at"`
	CommandID  domain.CommandID  `json:"commandId"`
	Type       string            `json:"type"`
	Reason     string            `json:"reason"`
	Deliveries int               `json:"deliveries"`
	FirstError string            `json:"firstError"`
	LastError  string            `json:"lastError"`
	OriginID   string            `json:"originId"` // of the entry that it was
	Fields     map[string]string `json:"fields"`   // the entry as it was
}

// DeadLetters lists the commands that were given up on, of one stream or, with "",
// of all; it needs the operator role.
func (c *Client) DeadLetters(ctx context.Context, stream string) ([]DeadLetter, error) {
	var answer struct {
		DeadLetters []DeadLetter `json:"deadLetters"`
	}
	k := call{method: http.MethodGet, path: path("operator", "dead-letters"), query: streamQuery(stream), answer: &answer}
	_, err := c.do(ctx, k)
	return answer.DeadLetters, err
}

// RequeueDeadLetter puts a dead letter back on its stream.
func (c *Client) RequeueDeadLetter(ctx context.Context, stream, id string) error {
	return c.deadLetter(ctx, http.MethodPost, stream, id)
}

// DropDeadLetter deletes a dead letter for good.
func (c *Client) DropDeadLetter(ctx context.Context, stream, id string) error {
	return c.deadLetter(ctx, http.MethodDelete, stream, id)
}

func (c *Client) deadLetter(ctx context.Context, method, stream, id string) error {
	body := map[string]any{"stream": stream, "id": id}
	_, err := c.do(ctx, call{method: method, path: path("operator", "dead-letters"), body: body})
	return err
}

func streamQuery(stream string) url.Values {
	query := url.Values{}
	if stream != "" {
		query.Set("stream", stream)
	}
	return query
}

// DevToken asks a server in dev mode for an identity token; elsewhere the route
// does not exist and the answer is 404.
func (c *Client) DevToken(ctx context.Context, sub domain.PersonID, name string, roles ...string) (string, error) {
	body := map[string]any{"sub": sub}
	if name != "" {
		body["name"] = name
	}
	if len(roles) > 0 {
		body["roles"] = roles
	}
	var answer struct {
		Token string `json:"token"`
	}
	_, err := c.do(ctx, call{method: http.MethodPost, path: path("dev", "token"), body: body, answer: &answer})
	return answer.Token, err
}

// Ready reports whether the server says that it is ready for traffic.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/readyz"})
	return err
}
