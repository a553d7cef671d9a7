package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"foyer/domain"
)

// ClosedDraw is a draw that has closed, with what is needed to recompute it.
type ClosedDraw struct {
	ShowID    domain.ShowID      `json:"showId"`
	Epoch     int64              `json:"epoch"`
	SeedHash  string             `json:"seedHash"`
	Seed      string             `json:"seed"`
	Algorithm string             `json:"algorithm"` // in words
	ClosedAt  time.Time          `json:"closedAt"`
	Total     int64              `json:"total"`
	Entries   []domain.DrawEntry `json:"entries"` // by place
}

const drawPage = 1000

// ClosedDraw returns a whole draw; the server refuses with DRAW_OPEN before it has
// closed. It needs no token.
func (c *Client) ClosedDraw(ctx context.Context, show domain.ShowID) (whole ClosedDraw, err error) {
	for {
		var page ClosedDraw
		query := url.Values{"after": {strconv.Itoa(len(whole.Entries))}, "limit": {strconv.Itoa(drawPage)}}
		k := call{method: http.MethodGet, path: path("shows", string(show), "draw"), query: query, answer: &page}
		if _, err := c.do(ctx, k); err != nil {
			return ClosedDraw{}, err
		}
		if whole.Entries != nil && (page.Epoch != whole.Epoch || page.Seed != whole.Seed) {
			return ClosedDraw{}, fmt.Errorf("the draw of show %s changed while it was read", show)
		}
		entries := append(whole.Entries, page.Entries...)
		whole = page
		whole.Entries = entries
		if len(page.Entries) == 0 || int64(len(whole.Entries)) >= page.Total {
			return whole, nil
		}
	}
}

// Differences recomputes the draw and lists what differs from what the server told;
// none means that every place follows from the seed, and the seed from its hash.
func (d ClosedDraw) Differences() []string {
	var differences []string
	if domain.SeedHash(d.Seed) != d.SeedHash {
		differences = append(differences, "the seed does not have the hash "+d.SeedHash)
	}
	if int64(len(d.Entries)) != d.Total {
		differences = append(differences, fmt.Sprintf("%d entries were told of %d", len(d.Entries), d.Total))
	}
	requests := make([]domain.RequestID, len(d.Entries))
	for i, entry := range d.Entries {
		requests[i] = entry.RequestID
	}
	right := domain.Draw(d.Seed, requests)
	for i, entry := range d.Entries {
		switch {
		case i >= len(right):
			differences = append(differences, fmt.Sprintf("place %d: an entry stands twice", entry.Place))
		case entry != right[i]:
			differences = append(differences, fmt.Sprintf("place %d: %s (score %d) was told, and the seed gives it to %s (score %d)",
				right[i].Place, entry.RequestID, entry.Score, right[i].RequestID, right[i].Score))
		}
	}
	return differences
}
