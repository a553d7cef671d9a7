package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Codes of problem documents that callers act on. An Error may carry others.
const (
	CodeNotOpen             = "NOT_OPEN"
	CodeDrawOpen            = "DRAW_OPEN"
	CodeNotAdmitted         = "NOT_ADMITTED"
	CodeNotJoined           = "NOT_JOINED"
	CodeSoldOut             = "SOLD_OUT"
	CodeClosed              = "CLOSED"
	CodeSeatUnavailable     = "SEAT_UNAVAILABLE"
	CodeNoBlock             = "NO_BLOCK"
	CodeLimitReached        = "LIMIT_REACHED"
	CodeHoldExpired         = "HOLD_EXPIRED"
	CodeHoldNotFound        = "HOLD_NOT_FOUND"
	CodeUnknownSeat         = "UNKNOWN_SEAT"
	CodeIdempotencyMismatch = "IDEMPOTENCY_MISMATCH"
	CodeInProgress          = "IN_PROGRESS"
)

// Error is a problem document (RFC 9457) that the server answered with.
type Error struct {
	Status int    // HTTP status; 0 of a socket's ERROR frame
	Code   string // stable, such as SEAT_UNAVAILABLE; "HTTP_<status>" when the server gave none
	Title  string
	Detail string
	// Extra are the document's other members, such as conflicts or opensAt.
	Extra map[string]json.RawMessage
	// RetryAfter is how long the server asks to wait; 0 when it does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	text := fmt.Sprintf("foyer answered %d %s", e.Status, e.Code)
	if e.Status == 0 {
		text = "foyer refused: " + e.Code
	}
	if e.Detail != "" {
		return text + ": " + e.Detail
	}
	if e.Title != "" {
		return text + ": " + e.Title
	}
	return text
}

// Into decodes one of the extra members, and reports whether it was there and fitted.
func (e *Error) Into(member string, value any) bool {
	raw, ok := e.Extra[member]
	return ok && json.Unmarshal(raw, value) == nil
}

// Temporary reports whether the same request may well succeed later: the server
// is overloaded, restarting, or still at work on the same intent.
func (e *Error) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.Code == CodeInProgress
}

// HasCode reports whether err is an *Error with this code.
func HasCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// RetryAfter returns how long the server asked to wait before trying again.
func RetryAfter(err error) (time.Duration, bool) {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return e.RetryAfter, true
	}
	return 0, false
}

// Bounds of Retry.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 10 * time.Second
	// retryAfterMost bounds what a Retry-After is believed.
	retryAfterMost = 60 * time.Second
)

// Retry runs step up to attempts times, until it succeeds or fails for good: with
// an *Error that is not Temporary, or because ctx ended. Between attempts it waits
// as long as the server asked for, else a random time that doubles. Only calls
// that are safe to repeat belong here; a booking is, with a key of the caller's.
func Retry(ctx context.Context, attempts int, step func(ctx context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := step(ctx)
		var e *Error
		if err == nil || ctx.Err() != nil || attempt >= attempts || errors.As(err, &e) && !e.Temporary() {
			return err
		}
		delay, asked := RetryAfter(err)
		if !asked {
			delay = jitter(retryFirst, min(retryFirst<<min(attempt, 10), retryMost))
		}
		if pause(ctx, delay) != nil {
			return err
		}
	}
}

// jitter is a random duration between low and high.
func jitter(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + rand.N(high-low)
}

// pause waits; it returns the context's error when that ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// problemOf reads an answer that is not a success. A body that is no problem
// document, such as a proxy's page, still yields an *Error with the status.
func problemOf(resp *http.Response, body io.Reader) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	members := map[string]json.RawMessage{}
	_ = json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&members)
	for name, target := range map[string]*string{"code": &e.Code, "title": &e.Title, "detail": &e.Detail} {
		_ = json.Unmarshal(members[name], target)
		delete(members, name)
	}
	delete(members, "status")
	delete(members, "type")
	e.Extra = members
	if e.Code == "" {
		e.Code = "HTTP_" + strconv.Itoa(resp.StatusCode)
	}
	if e.Title == "" {
		e.Title = http.StatusText(resp.StatusCode)
	}
	return e
}

// retryAfter reads the header's seconds; its date form is not used by the server
// and would compare two machines' clocks.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, retryAfterMost)
}
