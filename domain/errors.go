package domain

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Conditions that a caller can act on. Test for them with errors.Is; those that
// carry a detail are the struct types below.
var (
	// ErrShowNotFound is returned when no show has the id.
	ErrShowNotFound = errors.New("show not found")
	// ErrShowExists is returned when a show is created under a taken id.
	ErrShowExists = errors.New("show exists already")
	// ErrNotLoaded is returned by a step in Redis when the show's keys are not
	// there; the keys must be restored from SQL before the step can run.
	ErrNotLoaded = errors.New("show is not loaded in redis")
	// ErrDrawChanged is returned when a place was drawn by another seed than the show's:
	// the show has changed since it was read.
	ErrDrawChanged = errors.New("draw has another seed by now")
	// ErrNotJoined is returned when a person has no place at a show.
	ErrNotJoined = errors.New("no place at this show")
	// ErrSoldOut is returned when joining a show with no seats left.
	ErrSoldOut = errors.New("show is sold out")
	// ErrClosed is returned when the sale has ended.
	ErrClosed = errors.New("sale is closed")
	// ErrNotAdmitted is returned when a step needs a turn or an active session
	// that the person does not have.
	ErrNotAdmitted = errors.New("not admitted")
	// ErrHoldNotFound is returned when a hold does not exist or is another's.
	ErrHoldNotFound = errors.New("hold not found")
	// ErrHoldExpired is returned when a hold's deadline has passed.
	ErrHoldExpired = errors.New("hold expired")
	// ErrNoBlock is returned when no block of free seats is large enough.
	ErrNoBlock = errors.New("no block of that many seats together")
	// ErrBookingNotFound is returned when a booking does not exist or is another's.
	ErrBookingNotFound = errors.New("booking not found")
	// ErrIdempotencyMismatch is returned when a key comes back with another request.
	ErrIdempotencyMismatch = errors.New("idempotency key was used for another request")
	// ErrInProgress is returned when the same intent is being handled right now.
	ErrInProgress = errors.New("the same request is in progress")
	// ErrNotCancellable is returned when a booking is in a state that has nothing to cancel.
	ErrNotCancellable = errors.New("booking cannot be cancelled")
	// ErrRoomNotFound is returned when no chat room has the id.
	ErrRoomNotFound = errors.New("chat room not found")
	// ErrNotMember is returned when a chat room is used by somebody outside it.
	ErrNotMember = errors.New("not a member of this chat room")
	// ErrMessageNotFound is returned when a chat room has no message of that sequence.
	ErrMessageNotFound = errors.New("chat message not found")
)

// NotOpenError is returned when somebody joins before joining is possible.
type NotOpenError struct {
	// OpensAt is the instant from which joining works: the pre-queue's start
	// where there is one, else the opening.
	OpensAt time.Time
}

func (e *NotOpenError) Error() string {
	return "joining opens at " + e.OpensAt.UTC().Format(time.RFC3339)
}

// SeatsUnavailableError names every seat of a request that is not free.
type SeatsUnavailableError struct{ Conflicts []SeatID }

func (e *SeatsUnavailableError) Error() string {
	return fmt.Sprintf("seats not available: %v", e.Conflicts)
}

// LimitError is returned when a person would exceed the seats allowed to one.
type LimitError struct {
	Limit int // seats allowed to one person at this show
	Used  int // seats held or bought already, without this request
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("limit of %d seats reached, %d in use", e.Limit, e.Used)
}

// UnknownSeatsError names seats that the show does not have.
type UnknownSeatsError struct{ Seats []SeatID }

func (e *UnknownSeatsError) Error() string { return fmt.Sprintf("unknown seats: %v", e.Seats) }

// Problem is one thing wrong with one field of a request.
type Problem struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// InvalidError reports everything that is wrong with a request's values at once.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.Field + ": " + p.Detail
	}
	return strings.Join(parts, "; ")
}

// problems collects what is wrong; its error is nil while nothing is.
type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Detail: fmt.Sprintf(format, args...)})
}

func (p *problems) between(field string, value, low, high int) {
	if value < low || value > high {
		p.add(field, "must be between %d and %d", low, high)
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{Problems: p}
}
