package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"foyer/domain"
)

// Show is a show as everybody sees it.
type Show struct {
	ID           domain.ShowID        `json:"id"`
	Title        string               `json:"title"`
	Venue        string               `json:"venue"`
	StartsAt     *time.Time           `json:"startsAt"`
	PrequeueAt   *time.Time           `json:"prequeueAt"`
	OpensAt      time.Time            `json:"opensAt"`
	ClosesAt     *time.Time           `json:"closesAt"`
	Phase        domain.Phase         `json:"phase"`
	Availability domain.Availability  `json:"availability"`
	Capacity     int64                `json:"capacity"`
	Sold         int64                `json:"sold"`
	Message      string               `json:"message"`
	Queue        domain.QueueSettings `json:"queue"`
	Seating      domain.Seating       `json:"seating"`
	Draw         Draw                 `json:"draw"`
	Epoch        int64                `json:"epoch"`
	Revision     int64                `json:"revision"` // grows with every change by an operator
}

// Draw lets anybody check the draw of a pre-queue; Seed is empty until it closes.
type Draw struct {
	SeedHash string `json:"seedHash"`
	Seed     string `json:"seed,omitempty"`
	// ClosesAt is when nobody is drawn any more and admission begins.
	ClosesAt time.Time `json:"closesAt"`
}

// NewShow is what an operator creates a show from. What is nil or empty gets the
// server's default; an empty ID one of the server's making.
type NewShow struct {
	ID         domain.ShowID         `json:"id,omitempty"`
	Title      string                `json:"title"`
	Venue      string                `json:"venue,omitempty"`
	StartsAt   *time.Time            `json:"startsAt,omitempty"`
	PrequeueAt *time.Time            `json:"prequeueAt,omitempty"`
	OpensAt    *time.Time            `json:"opensAt,omitempty"`
	ClosesAt   *time.Time            `json:"closesAt,omitempty"`
	Message    string                `json:"message,omitempty"`
	Queue      *domain.QueueSettings `json:"queue,omitempty"`
	Seating    *domain.Seating       `json:"seating,omitempty"`
}

// ShowChange names what an operator changes; what is nil stays as it is.
type ShowChange struct {
	Title      *string         `json:"title,omitempty"`
	Venue      *string         `json:"venue,omitempty"`
	StartsAt   *time.Time      `json:"startsAt,omitempty"`
	PrequeueAt *time.Time      `json:"prequeueAt,omitempty"`
	OpensAt    *time.Time      `json:"opensAt,omitempty"`
	ClosesAt   *time.Time      `json:"closesAt,omitempty"`
	Message    *string         `json:"message,omitempty"`
	Paused     *bool           `json:"paused,omitempty"`
	Closed     *bool           `json:"closed,omitempty"`
	Queue      *QueueChange    `json:"queue,omitempty"`
	Seating    *domain.Seating `json:"seating,omitempty"`
}

// QueueChange names the queue settings that an operator changes.
type QueueChange struct {
	MaxActive      *int `json:"maxActive,omitempty"`
	RatePerMinute  *int `json:"ratePerMinute,omitempty"`
	TurnSeconds    *int `json:"turnSeconds,omitempty"`
	SessionSeconds *int `json:"sessionSeconds,omitempty"`
	GraceSeconds   *int `json:"graceSeconds,omitempty"`

	LateJoinSeconds  *int `json:"lateJoinSeconds,omitempty"`
	OverAdmitPercent *int `json:"overAdmitPercent,omitempty"`

	// Lanes are all of them, beginning with those that are there; nil leaves them as they are.
	Lanes          []domain.Lane `json:"lanes,omitempty"`
	OrdinaryWeight *int          `json:"ordinaryWeight,omitempty"`
}

// Shows lists the shows, newest first.
func (c *Client) Shows(ctx context.Context) ([]Show, error) {
	var answer struct {
		Shows []Show `json:"shows"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("shows"), answer: &answer})
	return answer.Shows, err
}

// Show returns one show.
func (c *Client) Show(ctx context.Context, show domain.ShowID) (s Show, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("shows", string(show)), answer: &s})
	return s, err
}

// CreateShow creates a show; it needs the operator role.
func (c *Client) CreateShow(ctx context.Context, show NewShow) (s Show, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: path("shows"), body: show, answer: &s})
	return s, err
}

// ChangeShow changes a show; it needs the operator role.
func (c *Client) ChangeShow(ctx context.Context, show domain.ShowID, change ShowChange) (s Show, err error) {
	_, err = c.do(ctx, call{method: http.MethodPatch, path: path("shows", string(show)), body: change, answer: &s})
	return s, err
}

// SeatMap is a show's seats as of Version.
type SeatMap struct {
	ShowID   domain.ShowID    `json:"showId"`
	Epoch    int64            `json:"epoch"`
	Version  int64            `json:"version"`
	Full     bool             `json:"full"` // Seats are all of them, not only those that changed
	Sections []domain.Section `json:"sections"`
	Seats    []domain.Seat    `json:"seats"`
}

// Seats returns the seat map; since 0 means all of it, an earlier version only what
// changed after that. The server answers with the full map where it cannot tell.
func (c *Client) Seats(ctx context.Context, show domain.ShowID, since int64) (m SeatMap, err error) {
	query := url.Values{}
	if since > 0 {
		query.Set("since", strconv.FormatInt(since, 10))
	}
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("shows", string(show), "seats"), query: query, answer: &m})
	return m, err
}
