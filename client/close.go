package client

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

// ErrClosed is returned when a Live that has ended is used.
var ErrClosed = errors.New("live session is closed")

// CloseError is returned when the server ended the session for good.
type CloseError struct {
	Code   int // close code of RFC 6455, or 4500-4999 of Foyer
	Reason string
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("server closed the socket for good: %d %s", e.Code, e.Reason)
}

// Ranges of Foyer's own close codes; the range alone says whether to come back.
const (
	closeFinalFirst = 4500
	closeFinalLast  = 4999
)

// finalClose returns the error to end with when coming back is pointless.
func finalClose(err error) error {
	var c *websocket.CloseError
	if !errors.As(err, &c) {
		return nil
	}
	switch {
	case c.Code >= closeFinalFirst && c.Code <= closeFinalLast,
		c.Code == websocket.CloseNormalClosure,
		c.Code == websocket.CloseMessageTooBig:
		return &CloseError{Code: c.Code, Reason: c.Text}
	}
	return nil
}

// finalOpen reports whether a refused opening is pointless to repeat: the token is
// not accepted. Anything else may be a proxy that is in the way for a moment.
func finalOpen(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// window is when the server wants a client back after a 1012 or 1013.
type window struct{ low, high time.Duration }

var windowForm = regexp.MustCompile(`retryMs=(\d{1,9})-(\d{1,9})`)

// windowOf reads the range of milliseconds in a close reason such as "restart
// retryMs=500-2500".
func windowOf(err error) (window, bool) {
	var c *websocket.CloseError
	if !errors.As(err, &c) || c.Code != websocket.CloseServiceRestart && c.Code != websocket.CloseTryAgainLater {
		return window{}, false
	}
	m := windowForm.FindStringSubmatch(c.Text)
	if m == nil {
		return window{}, false
	}
	low, _ := strconv.Atoi(m[1])
	high, _ := strconv.Atoi(m[2])
	w := window{low: time.Duration(low) * time.Millisecond, high: time.Duration(high) * time.Millisecond}
	return w, w.high >= w.low && w.high <= retryWindowMost
}

// retryWindowMost bounds what window of the server's is believed.
const retryWindowMost = 5 * time.Minute

// backoff spreads a crowd that lost its sockets in the same instant: full jitter
// between least and a bound that doubles with each failure up to most.
type backoff struct {
	least, most time.Duration
	failures    int
}

// next returns how long to wait after losing or not getting a socket. What the
// server asks for comes first.
func (b *backoff) next(err error) time.Duration {
	if w, ok := windowOf(err); ok {
		return jitter(w.low, w.high)
	}
	b.failures++
	delay := jitter(b.least, min(b.least<<min(b.failures, 10), b.most))
	if asked, ok := RetryAfter(err); ok && asked > delay {
		return asked + jitter(0, b.least)
	}
	return delay
}

func (b *backoff) reset() { b.failures = 0 }
