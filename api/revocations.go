package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/lua"
	"foyer/pass"
)

// passRevocations tells a shop's servers which passes count no more, after a cursor.
// It needs no identity: a shop's server has none, and without a pass nothing can be
// done with the id of a place that has ended.
func (s *Server) passRevocations(c echo.Context) error {
	var q query
	show := domain.ShowID(q.one(c, "show"))
	since, ok := parseRevocationCursor(q.one(c, "since"))
	if !ok {
		q.add("since", "must be a cursor that was answered before")
	}
	if err := q.err(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.shows.get(ctx, show); err != nil {
		return err
	}
	ended, next, more, err := s.deps.Steps.Revocations(ctx, show, since, 0)
	if err != nil {
		return err
	}
	page := pass.Revocations{
		Cursor: fmt.Sprintf("%d.%d", next.MinEpoch, next.Number), MinEpoch: next.MinEpoch,
		Revoked: make([]pass.Revocation, len(ended)), More: more,
	}
	for i, e := range ended {
		page.Revoked[i] = pass.Revocation{
			Request: string(e.RequestID), Epoch: e.Epoch, At: e.EndedAt, ExpiresAt: e.Deadline,
			ID: pass.SessionID(string(show), string(e.RequestID), e.Epoch, e.Deadline),
		}
	}
	return c.JSON(http.StatusOK, page)
}

// parseRevocationCursor reads what passRevocations has answered; empty is the beginning.
func parseRevocationCursor(text string) (lua.RevocationCursor, bool) {
	if text == "" {
		return lua.RevocationCursor{}, true
	}
	epoch, number, _ := strings.Cut(text, ".")
	minEpoch, err1 := strconv.ParseInt(epoch, 10, 64)
	last, err2 := strconv.ParseInt(number, 10, 64)
	ok := err1 == nil && err2 == nil && minEpoch >= 0 && last >= 0 && last <= maxRevocationNumber
	return lua.RevocationCursor{MinEpoch: minEpoch, Number: last}, ok
}

// maxRevocationNumber is the largest whole number that Redis keeps exactly.
const maxRevocationNumber = 1 << 53
