package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// Seat maps are compressed from this size on, quickly rather than well: a full map
// of a large hall is megabytes of text that repeats itself.
const (
	seatsGzip     = 1
	seatsGzipFrom = 4 << 10
)

// seatsView is a seat map, whole or what changed after a version of it.
type seatsView struct {
	ShowID   domain.ShowID    `json:"showId"`
	Epoch    int64            `json:"epoch"`
	Version  int64            `json:"version"`
	Full     bool             `json:"full"`
	Sections []domain.Section `json:"sections"`
	Seats    []domain.Seat    `json:"seats"`
}

// listSeats answers with every seat, or with those changed after ?since=VERSION.
// A version that this show does not have yet, or of another ?epoch=, means that
// the caller's map is from another life of the show: the answer is whole then.
func (s *Server) listSeats(c echo.Context, who Identity) error {
	var q query
	since := q.number(c, "since", 0, 0, maxSeq)
	epoch := q.number(c, "epoch", 0, 0, maxSeq)
	if err := q.err(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	viewer := s.admissions.request(show.ID, who.Person)
	changes, err := s.deps.Steps.Seats(ctx, show.ID, since, viewer)
	if err != nil {
		return err
	}
	if since > 0 && (since > changes.Version || epoch > 0 && epoch != changes.Epoch) {
		since = 0
		if changes, err = s.deps.Steps.Seats(ctx, show.ID, 0, viewer); err != nil {
			return err
		}
	}
	view := seatsView{
		ShowID: show.ID, Epoch: changes.Epoch, Version: changes.Version, Full: since == 0,
		Sections: orEmpty(show.Seating.Sections), Seats: orEmpty(changes.Seats),
	}
	if view.Full {
		view.Seats = wholePlan(show.Seating, changes.Seats)
	}
	return c.JSON(http.StatusOK, view)
}

// wholePlan lists every seat of a plan in the plan's order, those not named as free.
func wholePlan(plan domain.Seating, taken []domain.Seat) []domain.Seat {
	known := make(map[domain.SeatID]domain.Seat, len(taken))
	for _, seat := range taken {
		known[seat.ID] = seat
	}
	ids := plan.AllSeats()
	seats := make([]domain.Seat, len(ids))
	for i, id := range ids {
		seat, ok := known[id]
		if !ok {
			seat = domain.Seat{ID: id, State: domain.SeatFree}
		}
		seats[i] = seat
	}
	return seats
}
