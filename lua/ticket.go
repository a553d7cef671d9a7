package lua

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// IssueTicket keeps a payload under a ticket that can be redeemed once within ttl. The
// ticket must be unguessable; it belongs to no show.
func (s *Steps) IssueTicket(ctx context.Context, ticket string, payload []byte, ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("life of a ticket must be at least 1 ms, not %v", ttl)
	}
	_, err := s.once(ctx, call{script: "ticket_issue", tag: ticket, args: []any{ttl.Milliseconds(), payload}})
	return err
}

// RedeemTicket takes a ticket and answers its payload; false when it is unknown, was
// redeemed before or came too late.
func (s *Steps) RedeemTicket(ctx context.Context, ticket string) (payload []byte, ok bool, err error) {
	r, err := s.once(ctx, call{script: "ticket_redeem", tag: ticket})
	if errors.Is(err, errNoTicket) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return []byte(r.str(0)), true, nil
}
