package lua

import (
	"context"
	"strings"
	"time"

	"foyer/domain"
)

// Explain tells all that is known of a place, for an operator who is asked about it. It
// fails with domain.ErrNotJoined when there never was one in this epoch.
func (s *Steps) Explain(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.PlaceFacts, error) {
	r, err := s.step(ctx, "place_explain", show, string(request), domain.DrawCeiling)
	if err != nil {
		return domain.PlaceFacts{}, err
	}
	stats, at := r.list(0).stats(show)
	place, ok := r.list(1).place(request, stats, at)
	if !ok {
		return domain.PlaceFacts{}, domain.ErrNotJoined
	}
	facts := domain.PlaceFacts{
		Place: place, Stats: stats,
		LastContact: known(r.int(2)), DropsFrom: instant(r.int(5)), JoinedAfter: known(r.int(6)), JoinedBefore: known(r.int(7)),
		Past: past(r.str(3) + r.str(4)),
		Turn: time.Duration(r.int(8)) * time.Millisecond, Grace: time.Duration(r.int(9)) * time.Millisecond,
		Allowance: r.int(10), Admissions: map[int64]int64{},
	}
	for buckets, i := r.list(11), 0; i+1 < len(buckets); i += 2 {
		facts.Admissions[buckets.int(i)] = buckets.int(i + 1)
	}
	return facts, nil
}

// known is an instant, or nil for -1.
func known(ms int64) *time.Time {
	if ms < 0 {
		return nil
	}
	at := instant(ms)
	return &at
}

// past reads entries of the form what:ms or STATUS:ms:why, with a semicolon between.
func past(trail string) []domain.PlaceEvent {
	var events []domain.PlaceEvent
	for entry := range strings.SplitSeq(trail, ";") {
		parts := strings.Split(entry, ":")
		if len(parts) < 2 {
			continue
		}
		what := domain.Describe(parts[0])
		if len(parts) > 2 {
			what = strings.ToLower(parts[0]) + ": " + domain.Describe(parts[2])
		}
		events = append(events, domain.PlaceEvent{At: instant(number(parts[1])), What: what})
	}
	return events
}
