package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"foyer/domain"
)

// answer is what polling found out about one show.
type answer struct {
	show  domain.ShowID
	asked orderKind
	ref   string
	place Place
	err   error
}

// startPoll asks about every followed show, and does what is wanted there, beside
// the loop.
func (s *session) startPoll(ctx context.Context) {
	if s.conn != nil || s.polling || len(s.shows) == 0 {
		return
	}
	if len(s.outbox) > 0 {
		s.pollAt.Reset(pollDefault) // nobody reads what the last poll found
		return
	}
	asks := make([]answer, 0, len(s.shows))
	for show, f := range s.shows {
		asks = append(asks, answer{show: show, asked: f.want, ref: f.ref})
	}
	s.polling = true
	s.helpers.Go(func() {
		for i := range asks {
			asks[i].ask(ctx, s.client)
		}
		select {
		case s.polled <- asks:
		case <-ctx.Done():
		}
	})
}

func (a *answer) ask(ctx context.Context, c *Client) {
	switch a.asked {
	case orderJoin:
		a.place, _, a.err = c.Join(ctx, a.show)
	case orderClaim:
		a.place, a.err = c.Claim(ctx, a.show)
	case orderLeave:
		if a.err = c.Leave(ctx, a.show); a.err == nil {
			a.place = Place{ShowID: a.show, Status: domain.StatusLeft}
		}
	default:
		a.place, a.err = c.Place(ctx, a.show)
	}
}

// pollDone passes answers on as frames and plans the next poll, if no socket has
// opened meanwhile.
func (s *session) pollDone(answers []answer) {
	s.polling = false
	next := pollMost
	for _, a := range answers {
		next = min(next, s.pollAnswer(a))
	}
	if s.conn == nil && len(s.shows) > 0 {
		s.pollAt.Reset(next)
	}
}

// pollAnswer handles one answer and returns when to ask again.
func (s *session) pollAnswer(a answer) time.Duration {
	f := s.shows[a.show]
	if f == nil {
		return pollMost
	}
	var refusal *Error
	switch {
	case a.err == nil:
		frame := placeFrame(a.place)
		frame.Polled = true
		s.deliver(frame)
		if f.want != a.asked && f.want != "" {
			return 0 // wanted while the poll was out
		}
		return a.place.PollAfter()
	case errors.As(a.err, &refusal) && !refusal.Temporary() && refusal.Status < http.StatusInternalServerError:
		if f.want == a.asked {
			if f.want == "" {
				delete(s.shows, a.show)
			} else {
				s.refused(a.show, f)
			}
		}
		s.outbox = append(s.outbox, Frame{
			Event: EventError, ShowID: a.show, At: time.Now(), Polled: true,
			Error: &FrameError{Code: refusal.Code, Detail: refusal.Detail, Ref: a.ref, Extra: refusal.Extra},
		})
		return pollDefault
	}
	if asked, ok := RetryAfter(a.err); ok {
		return asked
	}
	return jitter(pollDefault/2, pollDefault)
}
