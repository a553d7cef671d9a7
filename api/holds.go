package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// maxBestTries bounds how often the best seats are chosen anew because others took
// all that were proposed. Each try carries up to domain.MaxBlocks blocks, so a
// crowd that asks at one instant is through long before.
const maxBestTries = 8

// wantedSeats is one's own choice, or how many of the best.
type wantedSeats struct {
	Seats *[]domain.SeatID `json:"seats"`
	Best  *struct {
		Count   int    `json:"count"`
		Section string `json:"section"`
	} `json:"best"`
}

func (s *Server) holdSeats(c echo.Context, who Identity) error {
	var body wantedSeats
	if err := readBody(c, &body); err != nil {
		return err
	}
	if (body.Seats == nil) == (body.Best == nil) {
		return invalid("seats", "name either seats or best")
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	request := s.admissions.request(show.ID, who.Person)
	var hold domain.Hold
	if body.Best != nil {
		hold, err = s.holdBest(ctx, show, request, body.Best.Count, body.Best.Section)
	} else {
		hold, err = s.holdChosen(ctx, show, request, *body.Seats)
	}
	if err != nil {
		return err
	}
	s.tellSeatsOf(ctx, show.ID, hold.Version)
	return s.answerHold(c, http.StatusCreated, show, hold)
}

func (s *Server) holdChosen(ctx context.Context, show domain.Show, request domain.RequestID, wanted []domain.SeatID) (domain.Hold, error) {
	seats, err := show.Seating.CheckSelection(wanted)
	if seats, err = tooMany(seats, err); err != nil {
		return domain.Hold{}, err
	}
	return s.deps.Steps.Hold(ctx, lua.HoldRequest{
		ShowID: show.ID, RequestID: request, HoldID: domain.HoldID(domain.NewID()), Candidates: [][]domain.SeatID{seats},
	})
}

// tooMany makes of more seats than anybody may have a choice that the step refuses for
// their number: only there it is known how many the person has already.
func tooMany(seats []domain.SeatID, err error) ([]domain.SeatID, error) {
	var limit *domain.LimitError
	if errors.As(err, &limit) {
		return make([]domain.SeatID, limit.Limit+1), nil
	}
	return seats, err
}

// holdBest proposes what is free and lets the step choose. That others took every
// proposal says nothing about the rest of the hall, so it proposes anew; without
// any proposal the step still says why not, which may be that nobody admitted
// this person.
func (s *Server) holdBest(ctx context.Context, show domain.Show, request domain.RequestID, count int, section string) (domain.Hold, error) {
	id := domain.HoldID(domain.NewID())
	if refused, err := tooMany(nil, checkBest(show.Seating, count, section)); err != nil || refused != nil {
		if err == nil {
			_, err = s.deps.Steps.Hold(ctx, lua.HoldRequest{ShowID: show.ID, RequestID: request, HoldID: id, Candidates: [][]domain.SeatID{refused}})
		}
		return domain.Hold{}, err
	}
	for try := 1; ; try++ {
		blocks, err := s.mirrors.blocks(ctx, show, count, section)
		if err != nil {
			return domain.Hold{}, err
		}
		hold, err := s.deps.Steps.Hold(ctx, lua.HoldRequest{ShowID: show.ID, RequestID: request, HoldID: id, Candidates: blocks})
		if len(blocks) == 0 || try == maxBestTries || !lostToOthers(err) {
			return hold, noBlock(err)
		}
	}
}

func checkBest(plan domain.Seating, count int, section string) error {
	var q query
	if count < 1 {
		q.add("best.count", "must be at least 1")
	}
	known := section == ""
	for _, sec := range plan.Sections {
		known = known || sec.Name == section
	}
	if !known {
		q.add("best.section", "is not in the plan of this show")
	}
	if err := q.err(); err != nil {
		return err
	}
	if count > plan.SeatLimit {
		return &domain.LimitError{Limit: plan.SeatLimit}
	}
	return nil
}

func lostToOthers(err error) bool {
	var conflicts *domain.SeatsUnavailableError
	return errors.Is(err, domain.ErrNoBlock) || errors.As(err, &conflicts)
}

// noBlock hides which seats were proposed: the caller asked for none of them.
func noBlock(err error) error {
	if lostToOthers(err) {
		return domain.ErrNoBlock
	}
	return err
}

// listHolds answers with one's live holds, for a page that was loaded again.
func (s *Server) listHolds(c echo.Context, who Identity) error {
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	holds, err := s.deps.Steps.Holds(ctx, show.ID, s.admissions.request(show.ID, who.Person))
	if err != nil {
		return err
	}
	for i := range holds {
		if holds[i], err = viewHold(show, holds[i]); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, map[string][]domain.Hold{"holds": orEmpty(holds)})
}

func (s *Server) swapHold(c echo.Context, who Identity) error {
	var body struct {
		Seats []domain.SeatID `json:"seats"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	show, id, err := s.holdParam(c)
	if err != nil {
		return err
	}
	seats, err := show.Seating.CheckSelection(body.Seats)
	if seats, err = tooMany(seats, err); err != nil {
		return err
	}
	hold, err := s.deps.Steps.SwapHold(ctx, show.ID, s.admissions.request(show.ID, who.Person), id, seats)
	if err != nil {
		return err
	}
	s.tellSeatsOf(ctx, show.ID, hold.Version)
	return s.answerHold(c, http.StatusOK, show, hold)
}

// tellSeatsOf publishes what changed with one seat version, and whose seats they
// are to nobody. It is read again, since a swap takes seats and gives others back,
// and only Redis knows which, and in which epoch.
func (s *Server) tellSeatsOf(ctx context.Context, show domain.ShowID, version int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	changes, err := s.deps.Steps.Seats(ctx, show, version-1, "")
	if err != nil {
		s.log.WarnContext(ctx, "changed seats could not be read", "show_id", show, "error", err)
		return
	}
	s.admissions.tell(ctx, events.Notification{
		Event: events.EventSeats, ShowID: show, Epoch: changes.Epoch, SeatsChanged: changes.Seats, SeatVersion: changes.Version,
	})
}

func (s *Server) extendHold(c echo.Context, who Identity) error {
	if err := noBody(c); err != nil {
		return err
	}
	show, id, err := s.holdParam(c)
	if err != nil {
		return err
	}
	hold, err := s.deps.Steps.ExtendHold(c.Request().Context(), show.ID, s.admissions.request(show.ID, who.Person), id)
	if err != nil {
		return err
	}
	return s.answerHold(c, http.StatusOK, show, hold)
}

func (s *Server) releaseHold(c echo.Context, who Identity) error {
	ctx := c.Request().Context()
	show, id, err := s.holdParam(c)
	if err != nil {
		return err
	}
	released, version, err := s.deps.Steps.ReleaseHold(ctx, show.ID, s.admissions.request(show.ID, who.Person), id)
	if err != nil {
		return err
	}
	if len(released) > 0 {
		s.tellSeatsOf(ctx, show.ID, version)
	}
	return c.NoContent(http.StatusNoContent)
}

// holdParam reads the show and the hold of a path.
func (s *Server) holdParam(c echo.Context) (domain.Show, domain.HoldID, error) {
	show, err := s.shows.get(c.Request().Context(), showParam(c))
	if err != nil {
		return domain.Show{}, "", err
	}
	id := c.Param("hold")
	if !plain(id, maxIDBytes) {
		return domain.Show{}, "", domain.ErrHoldNotFound
	}
	return show, domain.HoldID(id), nil
}

func (s *Server) answerHold(c echo.Context, status int, show domain.Show, hold domain.Hold) error {
	view, err := viewHold(show, hold)
	if err != nil {
		return err
	}
	return c.JSON(status, view)
}

// viewHold adds the price, which is the plan's to know, and puts times in UTC.
func viewHold(show domain.Show, hold domain.Hold) (domain.Hold, error) {
	price, err := show.Seating.PriceOf(hold.Seats)
	if err != nil {
		return domain.Hold{}, err
	}
	hold.Price = price
	hold.ExpiresAt, hold.CeilingAt, hold.ServerTime = hold.ExpiresAt.UTC(), hold.CeilingAt.UTC(), hold.ServerTime.UTC()
	return hold, nil
}
