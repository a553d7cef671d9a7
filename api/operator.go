package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
)

// operatorView is a show's live numbers beside what everybody sees of it.
type operatorView struct {
	domain.Stats
	Availability domain.Availability `json:"availability"`
	Closed       bool                `json:"closed"` // ended by hand
	Show         showView            `json:"show"`
}

func (s *Server) operatorShows(c echo.Context, _ Identity) error {
	ctx := c.Request().Context()
	shows, err := s.shows.all(ctx)
	if err != nil {
		return err
	}
	views, err := s.viewForOperator(ctx, shows)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]operatorView{"shows": views})
}

func (s *Server) operatorShow(c echo.Context, _ Identity) error {
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	views, err := s.viewForOperator(ctx, []domain.Show{show})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, views[0])
}

func (s *Server) viewForOperator(ctx context.Context, shows []domain.Show) ([]operatorView, error) {
	ids := make([]domain.ShowID, len(shows))
	for i, show := range shows {
		ids[i] = show.ID
	}
	stats, err := s.deps.Steps.Stats(ctx, ids...)
	if err != nil {
		return nil, err
	}
	views := make([]operatorView, len(shows))
	for i, show := range shows {
		views[i] = operatorView{Stats: stats[i], Availability: stats[i].Availability(), Closed: show.Closed, Show: viewShow(show, stats[i])}
	}
	return views, nil
}

// Limits of a list of dead letters, for each stream.
const (
	defaultDeadLetters = 100
	mostDeadLetters    = events.MaxDeadLetters
)

func (s *Server) listDeadLetters(c echo.Context, _ Identity) error {
	var q query
	limit := q.number(c, "limit", defaultDeadLetters, 1, mostDeadLetters)
	stream := q.one(c, "stream")
	if stream != "" && !slices.Contains(events.Streams(), stream) {
		q.add("stream", "is not a stream of commands")
	}
	if err := q.err(); err != nil {
		return err
	}
	letters, err := s.deps.DeadLetters.List(c.Request().Context(), stream, int(limit))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]events.DeadLetter{"deadLetters": orEmpty(letters)})
}

// letterName names a dead letter.
type letterName struct {
	Stream string `json:"stream"`
	ID     string `json:"id"`
}

// requeueDeadLetter puts the command back on its stream under its old id, so that
// its effect still happens once.
func (s *Server) requeueDeadLetter(c echo.Context, who Identity) error {
	return s.onDeadLetter(c, who, s.desk.RequeueLetter)
}

func (s *Server) dropDeadLetter(c echo.Context, who Identity) error {
	return s.onDeadLetter(c, who, s.desk.DropLetter)
}

// onDeadLetter does one thing to one dead letter.
func (s *Server) onDeadLetter(c echo.Context, who Identity, do func(ctx context.Context, who domain.PersonID, stream, id string) error) error {
	var body letterName
	if err := readBody(c, &body); err != nil {
		return err
	}
	if body.Stream == "" || body.ID == "" {
		return malformed("Name the dead letter by its stream and id.")
	}
	if err := do(c.Request().Context(), who.Person, body.Stream, body.ID); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// listLetterActions lists what operators did to dead letters.
func (s *Server) listLetterActions(c echo.Context, _ Identity) error {
	before, limit, err := actionPage(c)
	if err != nil {
		return err
	}
	actions, err := s.deps.Store.ActionsOfKind(c.Request().Context(), domain.LetterActions(), before, limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewActions(actions))
}
