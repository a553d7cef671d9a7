package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
)

// sqlError is an error with a state of PostgreSQL's.
type sqlError string

func (e sqlError) Error() string    { return "sql state " + string(e) }
func (e sqlError) SQLState() string { return string(e) }

// answerError is an error that Redis itself answered with.
type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

var _ redis.Error = answerError("")

func TestEveryConditionHasItsStatusAndCode(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		{domain.ErrShowNotFound, 404, codeShowNotFound, false},
		{domain.ErrShowExists, 409, codeShowExists, false},
		{domain.ErrNotJoined, 404, codeNotJoined, false},
		{domain.ErrSoldOut, 409, codeSoldOut, false},
		{domain.ErrClosed, 409, codeClosed, false},
		{domain.ErrNotAdmitted, 403, codeNotAdmitted, false},
		{&domain.NotOpenError{OpensAt: time.Unix(0, 0)}, 409, codeNotOpen, false},
		{&domain.SeatsUnavailableError{}, 409, codeSeatUnavailable, false},
		{&domain.LimitError{Limit: 4, Used: 3}, 409, codeLimitReached, false},
		{&domain.UnknownSeatsError{}, 422, codeUnknownSeat, false},
		{&domain.InvalidError{Problems: []domain.Problem{{Field: "x", Detail: "is wrong"}}}, 422, codeInvalid, false},
		{domain.ErrNoBlock, 409, codeNoBlock, false},
		{domain.ErrHoldNotFound, 404, codeHoldNotFound, false},
		{domain.ErrHoldExpired, 409, codeHoldExpired, false},
		{domain.ErrBookingNotFound, 404, codeBookingNotFound, false},
		{domain.ErrNotCancellable, 409, codeNotCancellable, false},
		{domain.ErrIdempotencyMismatch, 422, codeIdempotencyMismatch, false},
		{domain.ErrInProgress, 409, codeInProgress, true},
		{domain.ErrRoomNotFound, 404, codeRoomNotFound, false},
		{domain.ErrNotMember, 403, codeNotMember, false},
		{domain.ErrMessageNotFound, 404, codeMessageNotFound, false},
		{events.ErrDeadLetterNotFound, 404, codeDeadLetterNotFound, false},
		{echo.ErrNotFound, 404, codeNotFound, false},
		{echo.ErrMethodNotAllowed, 405, codeMethodNotAllowed, false},
		{&http.MaxBytesError{Limit: 1}, 413, codeBodyTooLarge, false},
		{forbidden(), 403, codeForbidden, false},
		{context.DeadlineExceeded, 503, codeUnavailable, true},
		{context.Canceled, 503, codeUnavailable, true},
		{io.EOF, 503, codeUnavailable, true},
		{os.NewSyscallError("connect", syscall.ECONNREFUSED), 503, codeUnavailable, true},
		{&net.OpError{Op: "dial", Err: errors.New("unreachable")}, 503, codeUnavailable, true},
		{redis.ErrPoolTimeout, 503, codeUnavailable, true},
		{domain.ErrNotLoaded, 503, codeUnavailable, true},
		{answerError("LOADING Redis is loading the dataset in memory"), 503, codeUnavailable, true},
		{answerError("READONLY You can't write against a read only replica."), 503, codeUnavailable, true},
		{answerError("CLUSTERDOWN The cluster is down"), 503, codeUnavailable, true},
		{answerError("OOM command not allowed when used memory > 'maxmemory'."), 503, codeUnavailable, true},
		{sqlError("08006"), 503, codeUnavailable, true},
		{sqlError("57P01"), 503, codeUnavailable, true},
		{sqlError("53300"), 503, codeUnavailable, true},
		{sqlError("40001"), 503, codeUnavailable, true},
		{answerError("WRONGTYPE Operation against a key holding the wrong kind of value"), 500, codeInternal, false},
		{sqlError("42703"), 500, codeInternal, false},
		{errors.New("secret detail"), 500, codeInternal, false},
	}
	s := loadSpec(t)
	for _, c := range cases {
		p := problemFor(fmt.Errorf("do something for ada: %w", c.err))
		require.Equal(t, c.status, p.Status, "%v", c.err)
		require.Equal(t, c.code, p.Code, "%v", c.err)
		require.Equal(t, c.retry, p.RetryAfter > 0, "%v", c.err)
		if p.Code != codeForbidden { // which is made where it is found
			require.ErrorIs(t, &p, c.err, "the cause is kept for the log")
		}
		p.with("correlationId", "x")
		document, err := json.Marshal(&p)
		require.NoError(t, err)
		s.validate(t, "/components/schemas/Problem", document)
		require.NotContains(t, string(document), "ada", "what went wrong inside is nobody's business")
		require.NotContains(t, string(document), "secret")
	}
}

func TestAnInternalErrorSaysNothingAndIsLogged(t *testing.T) {
	t.Parallel()
	var log recordedLog
	e := newEdge(t, func(_ *Config, d *Deps) {
		d.Commands = brokenReads{Commands: d.Commands}
		d.Log = log.logger()
	})
	me := e.person()
	room := e.newRoom(me)
	e.says(me, room, "a very private text")
	broken := e.call(me, "POST", room+"/read", object{"upTo": 1}, headerCorrelation, "find-me").fails(http.StatusInternalServerError, codeInternal)
	require.NotContains(t, string(broken.body), "stream")
	require.Equal(t, "find-me", broken.text("correlationId"))
	require.Contains(t, log.String(), "find-me")
	require.Contains(t, log.String(), "the stream is away")
	require.NotContains(t, log.String(), "private")
	require.NotContains(t, log.String(), me, "tokens are never logged")
}

// panicking fails as no caller expects.
type panicking struct{ Commands }

func (panicking) MarkRead(context.Context, events.MarkRead) error { panic("a defect") }

func TestAPanicIsOneRequestsAffair(t *testing.T) {
	t.Parallel()
	e := newEdge(t, func(_ *Config, d *Deps) { d.Commands = panicking{d.Commands} })
	me := e.person()
	room := e.newRoom(me)
	e.says(me, room, "x")
	refused := e.call(me, "POST", room+"/read", object{"upTo": 1}).fails(http.StatusInternalServerError, codeInternal)
	require.NotContains(t, string(refused.body), "defect")
	e.call(me, "GET", "/api/chat/rooms", nil).is(http.StatusOK)
}
