package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// maxTicketBytes bounds what is looked up in Redis for somebody unknown.
const maxTicketBytes = 64

// ticketPayload is the identity that a ticket stands for. The token's end goes
// with it, so that a socket opened with a ticket does not outlive the token.
type ticketPayload struct {
	Person  domain.PersonID `json:"person"`
	Name    string          `json:"name"`
	Roles   []string        `json:"roles,omitempty"`
	Expires time.Time       `json:"expires"`
}

type ticketView struct {
	Ticket           string `json:"ticket"`
	ExpiresInSeconds int    `json:"expiresInSeconds"`
}

// issueTicket answers POST /api/socket-tickets. A browser cannot send a header
// with a socket's handshake, and a token must not stand in a URL; a ticket is
// good once and for seconds, so that its trace in a log is worth nothing.
func (h *Hub) issueTicket(c echo.Context) error {
	who, err := h.deps.identify(c.Request())
	if err != nil {
		return err
	}
	payload, err := json.Marshal(ticketPayload(who))
	if err != nil {
		return fmt.Errorf("encode ticket: %w", err)
	}
	ticket := domain.NewID()
	if err := h.deps.steps.IssueTicket(c.Request().Context(), ticket, payload, h.config.ticketLife); err != nil {
		return fmt.Errorf("issue ticket: %w", err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, ticketView{Ticket: ticket, ExpiresInSeconds: int(h.config.ticketLife / time.Second)})
}

// redeem gives back the identity of a ticket and ends it.
func (h *Hub) redeem(ctx context.Context, ticket string) (Identity, error) {
	refused := newProblem(http.StatusUnauthorized, codeUnauthorized, "Ticket not valid",
		"The ticket is unknown, used or over; get a new one from /api/socket-tickets.")
	if ticket == "" || len(ticket) > maxTicketBytes {
		return Identity{}, refused
	}
	payload, found, err := h.deps.steps.RedeemTicket(ctx, ticket)
	if err != nil {
		return Identity{}, fmt.Errorf("redeem ticket: %w", err)
	}
	if !found {
		return Identity{}, refused
	}
	var who ticketPayload
	if err := json.Unmarshal(payload, &who); err != nil {
		return Identity{}, fmt.Errorf("decode ticket: %w", err)
	}
	return Identity(who), nil
}
