package api

import (
	"context"
	"slices"
	"time"

	"foyer/domain"
)

// presenceShare is how many renewals of contact fit into a show's grace, so that
// one that fails drops nobody.
const presenceShare = 3

// presenceBatch bounds the people renewed in one step.
const presenceBatch = 500

// presenceLoop renews the contact of everybody here who waits. It is the whole of
// presence: a socket that closes is not told to anybody, and whoever has none for
// longer than the grace was not renewed in time. So two tabs are one person, a
// killed process loses nobody who comes back, and the late end of an old socket
// harms no new one.
func (h *Hub) presenceLoop(ctx context.Context) {
	due := map[domain.ShowID]time.Time{}
	every(ctx, h.config.presenceTick, func(now time.Time) {
		shows := h.registry.ids(interestShow)
		for _, id := range shows {
			show := domain.ShowID(id)
			if now.Before(due[show]) {
				continue
			}
			due[show] = now.Add(h.presenceInterval(show))
			h.renew(ctx, show, now)
		}
		for show := range due { // forget shows that nobody here follows any more
			if !slices.Contains(shows, string(show)) {
				delete(due, show)
			}
		}
	})
}

func (h *Hub) presenceInterval(show domain.ShowID) time.Duration {
	return min(h.config.presenceEvery, h.book.queue(show).Grace()/presenceShare)
}

// renew touches the waiting people of a show, and has places read again whose
// deadline has passed without a word: the word may have been lost.
func (h *Hub) renew(ctx context.Context, show domain.ShowID, now time.Time) {
	var waiting []domain.RequestID
	overdue := false
	for _, c := range h.registry.find(showInterest(show)) {
		request, waits, late := c.presence(show, now)
		if waits {
			waiting = append(waiting, request)
		}
		overdue = overdue || late
	}
	if overdue {
		h.chores.add(chore{chorePlaces, string(show)}, 0)
	}
	slices.Sort(waiting)
	for batch := range slices.Chunk(slices.Compact(waiting), presenceBatch) {
		h.touch(ctx, show, batch)
	}
}

func (h *Hub) touch(ctx context.Context, show domain.ShowID, requests []domain.RequestID) {
	ctx, cancel := context.WithTimeout(ctx, h.config.snapshotTime)
	defer cancel()
	if err := h.deps.steps.Touch(ctx, show, requests); err != nil && ctx.Err() == nil {
		h.metrics.unreadable("presence")
		h.deps.log.WarnContext(ctx, "contact was not renewed", "show_id", show, "error", err)
	}
}

// overdueAfter is how long after a deadline its end should have been told.
const overdueAfter = 2 * time.Second

// presence tells whether the person waits at the show, and whether a deadline of
// theirs passed without a word.
func (c *connection) presence(show domain.ShowID, now time.Time) (request domain.RequestID, waits, overdue bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.at(show)
	if f == nil || !f.joined {
		return "", false, false
	}
	switch f.place.Status {
	case domain.StatusPrequeue, domain.StatusWaiting:
		waits = true
	case domain.StatusAdmitted:
		overdue = past(f.place.ClaimBy, now)
	case domain.StatusActive:
		overdue = past(f.place.ExpiresAt, now)
	}
	f.doubt = f.doubt || overdue
	return f.request, waits, overdue
}

func past(deadline *time.Time, now time.Time) bool {
	return deadline != nil && now.After(deadline.Add(overdueAfter))
}
