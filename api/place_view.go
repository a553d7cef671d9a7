package api

import (
	"time"

	"foyer/domain"
)

// viewOf is a place on the wire, without the pass that an active one has.
func viewOf(place domain.Place, grace time.Duration) placeView {
	view := placeView{
		RequestID: place.RequestID, ShowID: place.ShowID, Status: place.Status,
		Waiting: place.Waiting, Active: place.Active, ETA: place.ETA,
		ClaimBy: utc(place.ClaimBy), ExpiresAt: utc(place.ExpiresAt),
		PollAfter: pollAfter(place, grace).Milliseconds(),
		Epoch:     place.Epoch, Version: place.Version, ServerTime: place.ServerTime.UTC(),
	}
	if place.Rank > 0 {
		view.Rank = &place.Rank
	}
	return view
}
