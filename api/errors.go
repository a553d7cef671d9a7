package api

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"foyer/domain"
	"foyer/events"
)

// Codes of problems. A code is part of the contract and never changes; titles
// and details are for people and may.
const (
	codeMalformedBody       = "MALFORMED_BODY"
	codeUnknownField        = "UNKNOWN_FIELD"
	codeBodyTooLarge        = "BODY_TOO_LARGE"
	codeUnsupportedMedia    = "UNSUPPORTED_MEDIA_TYPE"
	codeInvalid             = "INVALID"
	codeInvalidCode         = "INVALID_CODE"
	codeNotFound            = "NOT_FOUND"
	codeMethodNotAllowed    = "METHOD_NOT_ALLOWED"
	codeUnauthorized        = "UNAUTHORIZED"
	codeTokenExpired        = "TOKEN_EXPIRED"
	codeForbidden           = "FORBIDDEN"
	codeShowNotFound        = "SHOW_NOT_FOUND"
	codeShowExists          = "SHOW_EXISTS"
	codeNotJoined           = "NOT_JOINED"
	codeNotOpen             = "NOT_OPEN"
	codeDrawOpen            = "DRAW_OPEN"
	codeSoldOut             = "SOLD_OUT"
	codeClosed              = "CLOSED"
	codeNotAdmitted         = "NOT_ADMITTED"
	codeSeatUnavailable     = "SEAT_UNAVAILABLE"
	codeNoBlock             = "NO_BLOCK"
	codeLimitReached        = "LIMIT_REACHED"
	codeUnknownSeat         = "UNKNOWN_SEAT"
	codeHoldNotFound        = "HOLD_NOT_FOUND"
	codeHoldExpired         = "HOLD_EXPIRED"
	codeBookingNotFound     = "BOOKING_NOT_FOUND"
	codeNotCancellable      = "NOT_CANCELLABLE"
	codeKeyRequired         = "IDEMPOTENCY_KEY_REQUIRED"
	codeKeyRepeated         = "IDEMPOTENCY_KEY_REPEATED"
	codeIdempotencyMismatch = "IDEMPOTENCY_MISMATCH"
	codeInProgress          = "IN_PROGRESS"
	codeRoomNotFound        = "ROOM_NOT_FOUND"
	codeNotMember           = "NOT_MEMBER"
	codeMessageNotFound     = "MESSAGE_NOT_FOUND"
	codeDeadLetterNotFound  = "DEAD_LETTER_NOT_FOUND"
	codeUnavailable         = "UNAVAILABLE"
	codeInternal            = "INTERNAL"
)

// Retry-After of the answers that ask for patience.
const (
	retryInProgress  = time.Second
	retryUnavailable = 2 * time.Second
)

// problem is an error as the caller sees it: RFC 9457 with a stable code. As an
// error it may carry its cause, which is logged and never shown.
type problem struct {
	Status     int
	Code       string
	Title      string
	Detail     string
	Extra      map[string]any // further members of the document, such as conflicts
	RetryAfter time.Duration  // sent as a header when positive
	cause      error
}

func newProblem(status int, code, title, detail string) *problem {
	return &problem{Status: status, Code: code, Title: title, Detail: detail}
}

func (p *problem) Error() string {
	if p.cause != nil {
		return p.Code + ": " + p.cause.Error()
	}
	return p.Code + ": " + p.Detail
}

func (p *problem) Unwrap() error { return p.cause }

// with adds one further member to the document.
func (p *problem) with(name string, value any) *problem {
	if p.Extra == nil {
		p.Extra = map[string]any{}
	}
	p.Extra[name] = value
	return p
}

func (p *problem) because(err error) *problem {
	p.cause = err
	return p
}

func (p *problem) retry(after time.Duration) *problem {
	p.RetryAfter = after
	return p
}

// MarshalJSON writes the RFC 9457 document with its further members beside the
// standard ones.
func (p *problem) MarshalJSON() ([]byte, error) {
	document := maps.Clone(p.Extra)
	if document == nil {
		document = map[string]any{}
	}
	document["type"] = "urn:foyer:problem:" + strings.ReplaceAll(strings.ToLower(p.Code), "_", "-")
	document["title"] = p.Title
	document["status"] = p.Status
	document["detail"] = p.Detail
	document["code"] = p.Code
	return json.Marshal(document)
}

// problemFor turns any error into what the caller is told. An error that nobody
// foresaw becomes INTERNAL and says nothing about itself.
func problemFor(err error) problem {
	var own *problem
	if errors.As(err, &own) {
		return *own
	}
	for _, look := range []func(error) *problem{detailedProblem, admissionProblem, sellingProblem, chatProblem, httpProblem} {
		if p := look(err); p != nil {
			return *p.because(err)
		}
	}
	if unavailable(err) {
		p := newProblem(http.StatusServiceUnavailable, codeUnavailable, "Temporarily unavailable",
			"A part that this request needs does not answer. Try again shortly.")
		return *p.retry(retryUnavailable).because(err)
	}
	p := newProblem(http.StatusInternalServerError, codeInternal, "Internal error",
		"Something went wrong here. The correlation id finds it in the log.")
	return *p.because(err)
}

// detailedProblem covers the domain errors that carry data.
func detailedProblem(err error) *problem {
	var (
		notOpen     *domain.NotOpenError
		conflicts   *domain.SeatsUnavailableError
		limit       *domain.LimitError
		unknownSeat *domain.UnknownSeatsError
		invalid     *domain.InvalidError
		code        *domain.InvalidCodeError
	)
	switch {
	case errors.As(err, &notOpen):
		return newProblem(http.StatusConflict, codeNotOpen, "Not open yet", notOpen.Error()).with("opensAt", notOpen.OpensAt.UTC())
	case errors.As(err, &conflicts):
		return newProblem(http.StatusConflict, codeSeatUnavailable, "Seats not available",
			"Some of these seats are held or sold.").with("conflicts", orEmpty(conflicts.Conflicts))
	case errors.As(err, &limit):
		return newProblem(http.StatusConflict, codeLimitReached, "Seat limit reached", limit.Error()).
			with("limit", limit.Limit).with("used", limit.Used)
	case errors.As(err, &unknownSeat):
		return newProblem(http.StatusUnprocessableEntity, codeUnknownSeat, "Unknown seats",
			"The plan of this show does not have these seats.").with("seats", orEmpty(unknownSeat.Seats))
	case errors.As(err, &code):
		return newProblem(http.StatusUnprocessableEntity, codeInvalidCode, "Code not valid", code.Reason)
	case errors.As(err, &invalid):
		return newProblem(http.StatusUnprocessableEntity, codeInvalid, "Invalid values", invalid.Error()).
			with("problems", orEmpty(invalid.Problems))
	}
	return nil
}

func admissionProblem(err error) *problem {
	switch {
	case errors.Is(err, domain.ErrShowNotFound):
		return newProblem(http.StatusNotFound, codeShowNotFound, "Show not found", "No show has this id.")
	case errors.Is(err, domain.ErrShowExists):
		return newProblem(http.StatusConflict, codeShowExists, "Show exists", "A show has this id already.")
	case errors.Is(err, domain.ErrNotJoined):
		return newProblem(http.StatusNotFound, codeNotJoined, "No place", "You have no place at this show; join first.")
	case errors.Is(err, domain.ErrSoldOut):
		return newProblem(http.StatusConflict, codeSoldOut, "Sold out", "Every seat of this show is sold.")
	case errors.Is(err, domain.ErrClosed):
		return newProblem(http.StatusConflict, codeClosed, "Sale closed", "The sale of this show has ended.")
	case errors.Is(err, domain.ErrNotAdmitted):
		return newProblem(http.StatusForbidden, codeNotAdmitted, "Not admitted", "This needs an active session; wait for your turn and claim it.")
	}
	return nil
}

func sellingProblem(err error) *problem {
	switch {
	case errors.Is(err, domain.ErrNoBlock):
		return newProblem(http.StatusConflict, codeNoBlock, "No block of seats", "So many seats together are not free.")
	case errors.Is(err, domain.ErrHoldNotFound):
		return newProblem(http.StatusNotFound, codeHoldNotFound, "Hold not found", "You have no hold of this id at this show.")
	case errors.Is(err, domain.ErrHoldExpired):
		return newProblem(http.StatusConflict, codeHoldExpired, "Hold expired", "The time of this hold is over; its seats may be taken again.")
	case errors.Is(err, domain.ErrBookingNotFound):
		return newProblem(http.StatusNotFound, codeBookingNotFound, "Booking not found", "You have no booking of this id.")
	case errors.Is(err, domain.ErrNotCancellable):
		return newProblem(http.StatusConflict, codeNotCancellable, "Nothing to cancel", "Only a confirmed booking can be cancelled.")
	case errors.Is(err, domain.ErrIdempotencyMismatch):
		return newProblem(http.StatusUnprocessableEntity, codeIdempotencyMismatch, "Key used before", "This Idempotency-Key came with another request before; use a new one.")
	case errors.Is(err, domain.ErrInProgress):
		return newProblem(http.StatusConflict, codeInProgress, "In progress", "The same request is being handled right now.").retry(retryInProgress)
	}
	return nil
}

func chatProblem(err error) *problem {
	switch {
	case errors.Is(err, domain.ErrRoomNotFound):
		return newProblem(http.StatusNotFound, codeRoomNotFound, "Chat room not found", "No chat room has this id.")
	case errors.Is(err, domain.ErrNotMember):
		return newProblem(http.StatusForbidden, codeNotMember, "Not a member", "Only members read and write a chat room; join it first.")
	case errors.Is(err, domain.ErrMessageNotFound):
		return newProblem(http.StatusNotFound, codeMessageNotFound, "Message not found", "The chat room has no message of this number.")
	}
	return nil
}

// httpProblem covers what the router itself refuses, and the operator's routes.
func httpProblem(err error) *problem {
	if errors.Is(err, events.ErrDeadLetterNotFound) {
		return newProblem(http.StatusNotFound, codeDeadLetterNotFound, "Dead letter not found", "No dead letter of this stream has this id.")
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return newProblem(http.StatusRequestEntityTooLarge, codeBodyTooLarge, "Body too large",
			"A request body may have at most "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes.")
	}
	var refused *echo.HTTPError
	if !errors.As(err, &refused) {
		return nil
	}
	switch refused.Code {
	case http.StatusNotFound:
		return newProblem(http.StatusNotFound, codeNotFound, "Not found", "Nothing is at this path.")
	case http.StatusMethodNotAllowed:
		return newProblem(http.StatusMethodNotAllowed, codeMethodNotAllowed, "Method not allowed", "This path does not take this method; see Allow.")
	}
	return nil
}

// unavailable reports whether an error means that Redis or SQL cannot be reached
// or does not serve at the moment, so that asking again later may well succeed.
func unavailable(err error) bool {
	for _, known := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, sql.ErrConnDone,
		redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted, domain.ErrNotLoaded, domain.ErrDrawChanged,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var network net.Error
	if errors.As(err, &network) {
		return true
	}
	var unsent interface{ SafeToRetry() bool } // a connection that closed before anything was sent on it
	if errors.As(err, &unsent) && unsent.SafeToRetry() {
		return true
	}
	var fromSQL interface{ SQLState() string }
	if errors.As(err, &fromSQL) {
		return sqlStateIsPassing(fromSQL.SQLState())
	}
	var fromRedis redis.Error
	if errors.As(err, &fromRedis) {
		return redisStateIsPassing(fromRedis.Error())
	}
	return false
}

// sqlStateIsPassing knows the classes of PostgreSQL's states that pass by
// themselves: connection lost, too many connections, shutting down or starting,
// a transaction that lost a race.
func sqlStateIsPassing(state string) bool {
	for _, class := range []string{"08", "53", "57P", "40"} {
		if strings.HasPrefix(state, class) {
			return true
		}
	}
	return false
}

// redisStateIsPassing knows the answers of a Redis that is up but not serving.
func redisStateIsPassing(answer string) bool {
	for _, prefix := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY ", "OOM", "MISCONF", "NOREPLICAS"} {
		if strings.HasPrefix(answer, prefix) {
			return true
		}
	}
	return false
}

// orEmpty makes an absent list an empty one on the wire.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
