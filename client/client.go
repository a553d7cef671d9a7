package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits of one request.
const (
	// requestTimeout bounds a request whose context has no nearer deadline.
	requestTimeout = 30 * time.Second
	// maxAnswerBytes bounds an answer that is read; the largest is the seat map
	// of a show with 200,000 seats.
	maxAnswerBytes = 32 << 20
)

// TokenSource yields the identity token of the next request. It is asked before
// every request, so it should keep a token until shortly before that expires.
type TokenSource func(ctx context.Context) (string, error)

// Client calls one Foyer installation as one person.
type Client struct {
	base  *url.URL
	http  *http.Client
	token TokenSource
}

// Option changes how a Client works.
type Option func(*Client)

// WithHTTPClient uses the caller's http.Client, which stays the caller's to
// close. Its transport also says how sockets are dialled.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithToken sends this identity token with every request.
func WithToken(token string) Option {
	return WithTokenSource(func(context.Context) (string, error) { return token, nil })
}

// WithTokenSource asks the source for a token before every request.
func WithTokenSource(source TokenSource) Option { return func(c *Client) { c.token = source } }

// New returns a client of the installation at base, such as
// http://127.0.0.1:8080. Without a token it can do what needs none.
func New(base string, opts ...Option) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil {
		return nil, fmt.Errorf("base address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("base address %q must be http:// or https:// with a host and without a query", base)
	}
	c := &Client{base: u, http: http.DefaultClient}
	for _, opt := range opts {
		opt(c)
	}
	if c.http == nil {
		return nil, errors.New("http client must not be nil")
	}
	return c, nil
}

// As returns a client of the same installation for another identity token.
func (c *Client) As(token string) *Client {
	other := *c
	WithToken(token)(&other)
	return &other
}

// call is one request: what to send and where to put the answer.
type call struct {
	method string
	path   string // escaped
	query  url.Values
	header http.Header
	body   any // sent as JSON unless nil
	answer any // decoded from JSON unless nil
}

// do sends one request and decodes its answer; it returns the status of a success.
func (c *Client) do(ctx context.Context, k call) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := c.request(ctx, k)
	if err != nil {
		return 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() {
		// What is left is read so that the connection can be used again.
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		_ = resp.Body.Close()
	}()
	body := io.LimitReader(resp.Body, maxAnswerBytes)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return 0, problemOf(resp, body)
	}
	if k.answer == nil || resp.StatusCode == http.StatusNoContent {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(body).Decode(k.answer); err != nil {
		return 0, fmt.Errorf("answer of %s %s: %w", k.method, k.path, err)
	}
	return resp.StatusCode, nil
}

func (c *Client) request(ctx context.Context, k call) (*http.Request, error) {
	var body io.Reader
	if k.body != nil {
		encoded, err := json.Marshal(k.body)
		if err != nil {
			return nil, fmt.Errorf("body of %s %s: %w", k.method, k.path, err)
		}
		body = bytes.NewReader(encoded)
	}
	address := c.base.String() + k.path
	if len(k.query) > 0 {
		address += "?" + k.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, k.method, address, body)
	if err != nil {
		return nil, err
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token == nil {
		return req, nil
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, fmt.Errorf("identity token: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// path joins escaped segments under /api.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
