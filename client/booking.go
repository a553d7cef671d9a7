package client

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"foyer/domain"
)

// HoldSeats holds exactly these seats, all or none.
func (c *Client) HoldSeats(ctx context.Context, show domain.ShowID, seats []domain.SeatID) (domain.Hold, error) {
	return c.hold(ctx, show, map[string]any{"seats": seats})
}

// HoldBest holds the best count seats next to each other; section "" means any.
func (c *Client) HoldBest(ctx context.Context, show domain.ShowID, count int, section string) (domain.Hold, error) {
	best := map[string]any{"count": count}
	if section != "" {
		best["section"] = section
	}
	return c.hold(ctx, show, map[string]any{"best": best})
}

func (c *Client) hold(ctx context.Context, show domain.ShowID, wanted any) (h domain.Hold, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: path("shows", string(show), "holds"), body: wanted, answer: &h})
	return h, err
}

// Holds lists the person's live holds at a show.
func (c *Client) Holds(ctx context.Context, show domain.ShowID) ([]domain.Hold, error) {
	var answer struct {
		Holds []domain.Hold `json:"holds"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("shows", string(show), "holds"), answer: &answer})
	return answer.Holds, err
}

// SwapHold changes a hold's seats in one step; it keeps its deadline.
func (c *Client) SwapHold(ctx context.Context, show domain.ShowID, hold domain.HoldID, seats []domain.SeatID) (h domain.Hold, err error) {
	body := map[string]any{"seats": seats}
	_, err = c.do(ctx, call{method: http.MethodPut, path: path("shows", string(show), "holds", string(hold)), body: body, answer: &h})
	return h, err
}

// ExtendHold gives a hold its full time again, up to its ceiling.
func (c *Client) ExtendHold(ctx context.Context, show domain.ShowID, hold domain.HoldID) (h domain.Hold, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: path("shows", string(show), "holds", string(hold), "extend"), answer: &h})
	return h, err
}

// ReleaseHold gives a hold's seats back.
func (c *Client) ReleaseHold(ctx context.Context, show domain.ShowID, hold domain.HoldID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("shows", string(show), "holds", string(hold))})
	return err
}

// Book asks for the seats of a hold. The answer is PENDING; WaitBooking tells what
// became of it. key names the intent: with the same key a repeat is the same
// booking, so keep the key over retries. An empty key makes one that is used once.
func (c *Client) Book(ctx context.Context, show domain.ShowID, hold domain.HoldID, key string) (b domain.Booking, err error) {
	if key == "" {
		key = domain.NewID()
	}
	_, err = c.do(ctx, call{
		method: http.MethodPost,
		path:   path("shows", string(show), "bookings"),
		header: http.Header{"Idempotency-Key": {key}},
		body:   map[string]any{"holdId": hold},
		answer: &b,
	})
	return b, err
}

// Booking returns one booking of the person's; an operator may ask for any.
func (c *Client) Booking(ctx context.Context, booking domain.BookingID) (b domain.Booking, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("bookings", string(booking)), answer: &b})
	return b, err
}

// BookingPage is a page of bookings; Next, when not empty, is what to pass as
// before for the page after it.
type BookingPage struct {
	Bookings []domain.Booking `json:"bookings"`
	Next     domain.BookingID `json:"next,omitempty"`
}

// Bookings lists the person's bookings, newest first, from after the booking
// before; "" starts at the newest. limit 0 means the server's default.
func (c *Client) Bookings(ctx context.Context, before domain.BookingID, limit int) (page BookingPage, err error) {
	query := url.Values{}
	if before != "" {
		query.Set("before", string(before))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	_, err = c.do(ctx, call{method: http.MethodGet, path: path("bookings"), query: query, answer: &page})
	return page, err
}

// CancelBooking asks for a confirmed booking to be cancelled; WaitBooking with
// CONFIRMED as the unwanted state tells when that is done.
func (c *Client) CancelBooking(ctx context.Context, booking domain.BookingID) (b domain.Booking, err error) {
	_, err = c.do(ctx, call{method: http.MethodDelete, path: path("bookings", string(booking)), answer: &b})
	return b, err
}

// Pace of WaitBooking: it begins quickly, because most bookings are decided in a
// blink, and slows down by half each time.
const (
	bookingPollFirst = 100 * time.Millisecond
	bookingPollMost  = 3 * time.Second
)

// WaitBooking polls until a booking is no longer in any of the states unwanted,
// which default to PENDING, and returns it. A server that is away for less than a
// minute, as at a restart, does not end it; bound it with ctx.
func (c *Client) WaitBooking(ctx context.Context, booking domain.BookingID, unwanted ...domain.BookingStatus) (domain.Booking, error) {
	if len(unwanted) == 0 {
		unwanted = []domain.BookingStatus{domain.BookingPending}
	}
	for every := bookingPollFirst; ; every = min(every*3/2, bookingPollMost) {
		var b domain.Booking
		err := Retry(ctx, pollAttempts, func(ctx context.Context) (err error) {
			b, err = c.Booking(ctx, booking)
			return err
		})
		if err != nil || !slices.Contains(unwanted, b.Status) {
			return b, err
		}
		if err := pause(ctx, jitter(every/2, every)); err != nil {
			return b, err
		}
	}
}
