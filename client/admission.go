package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"foyer/domain"
)

// Place is one person's standing at a show as of Version.
type Place struct {
	RequestID   domain.RequestID `json:"requestId"`
	ShowID      domain.ShowID    `json:"showId"`
	Status      domain.Status    `json:"status"`
	Rank        *int64           `json:"rank"` // 1 is next; nil when there is none to tell
	Waiting     int64            `json:"waiting"`
	Active      int64            `json:"active"`
	ETA         *domain.ETA      `json:"eta"`
	ClaimBy     *time.Time       `json:"claimBy"`
	ExpiresAt   *time.Time       `json:"expiresAt"`
	Pass        string           `json:"pass,omitempty"` // signed, while ACTIVE
	PollAfterMs int64            `json:"pollAfterMs"`
	Epoch       int64            `json:"epoch"`
	Version     int64            `json:"version"`
	ServerTime  time.Time        `json:"serverTime"`
	Odds        *domain.Odds     `json:"odds"` // whether seats will be left; nil unless waiting for some
	Draw        *DrawProof       `json:"draw"` // what the draw gave, once it has closed
	Lane        string           `json:"lane"` // while waiting in one: Rank and Waiting are of it
}

// DrawProof is what the draw gave to a person; it follows from seed and request id.
type DrawProof struct {
	Score int64 `json:"score"`
	Place int64 `json:"place"` // among all who were drawn
}

// Bounds of what PollAfterMs is believed, and what holds when it is not there.
const (
	pollLeast   = 100 * time.Millisecond
	pollDefault = 5 * time.Second
	pollMost    = 2 * time.Minute
)

// PollAfter is how long the server asks to wait before asking again.
func (p Place) PollAfter() time.Duration {
	if p.PollAfterMs <= 0 {
		return pollDefault
	}
	return min(max(time.Duration(p.PollAfterMs)*time.Millisecond, pollLeast), pollMost)
}

// In reports whether the person may claim or is inside.
func (p Place) In() bool { return p.Status == domain.StatusAdmitted || p.Status == domain.StatusActive }

// Final reports whether the place is over.
func (p Place) Final() bool { return final(p.Status) }

func final(status domain.Status) bool {
	switch status {
	case domain.StatusExpired, domain.StatusLeft, domain.StatusSoldOut, domain.StatusClosed:
		return true
	}
	return false
}

// Join takes a place at a show, or answers with the place that the person has;
// created tells which. It is safe to repeat.
func (c *Client) Join(ctx context.Context, show domain.ShowID) (p Place, created bool, err error) {
	status, err := c.do(ctx, call{method: http.MethodPost, path: path("shows", string(show), "admission"), answer: &p})
	return p, status == http.StatusCreated, err
}

// JoinWithCode is Join into the lane that a code is for. A code that does not count fails
// with the code INVALID_CODE, and nothing is joined.
func (c *Client) JoinWithCode(ctx context.Context, show domain.ShowID, code string) (p Place, created bool, err error) {
	body := map[string]string{"code": code}
	status, err := c.do(ctx, call{method: http.MethodPost, path: path("shows", string(show), "admission"), body: body, answer: &p})
	return p, status == http.StatusCreated, err
}

// Place returns the person's place, and counts as a sign of life.
func (c *Client) Place(ctx context.Context, show domain.ShowID) (p Place, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("shows", string(show), "admission"), answer: &p})
	return p, err
}

// Claim takes the person's turn, which starts the session. It is safe to repeat.
func (c *Client) Claim(ctx context.Context, show domain.ShowID) (p Place, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: path("shows", string(show), "admission", "claim"), answer: &p})
	return p, err
}

// Extend has the time of the person's turn once more, for a page that nobody sees. A
// second time, and after the claim, it changes nothing. It is safe to repeat.
func (c *Client) Extend(ctx context.Context, show domain.ShowID) (p Place, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: path("shows", string(show), "admission", "extend"), answer: &p})
	return p, err
}

// Leave gives the place up, waiting or inside. It is safe to repeat.
func (c *Client) Leave(ctx context.Context, show domain.ShowID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("shows", string(show), "admission")})
	return err
}

// pollAttempts bounds the failures in a row after which a wait gives up: with the
// pauses of Retry, about a minute without a server.
const pollAttempts = 12

// WaitAdmission polls at the pace the server names until the person may claim, is
// inside, or the place is over; that place is returned. A server that is away for
// less than a minute, as at a restart, does not end it.
func (c *Client) WaitAdmission(ctx context.Context, show domain.ShowID) (Place, error) {
	for {
		var p Place
		err := Retry(ctx, pollAttempts, func(ctx context.Context) (err error) {
			p, err = c.Place(ctx, show)
			return err
		})
		if err != nil || p.In() || p.Final() {
			return p, err
		}
		if err := pause(ctx, p.PollAfter()); err != nil {
			return p, err
		}
	}
}

// NotOpenUntil returns the instant from which joining works, when err says that
// it does not yet.
func NotOpenUntil(err error) (time.Time, bool) {
	var e *Error
	var at time.Time
	ok := errors.As(err, &e) && e.Code == CodeNotOpen && e.Into("opensAt", &at)
	return at, ok
}
