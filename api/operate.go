package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/internal/operate"
)

// switchShow makes a handler of a change that an operator makes in a hurry: it has a
// route of its own, and no body to get wrong.
func (s *Server) switchShow(action string, set func(*domain.Show)) func(echo.Context, Identity) error {
	return func(c echo.Context, who Identity) error {
		if err := noBody(c); err != nil {
			return err
		}
		return s.operateOn(c, who, action, struct{}{}, func(show *domain.Show) error {
			set(show)
			return nil
		})
	}
}

// operateOn changes a show as an operator asks and answers with it.
func (s *Server) operateOn(c echo.Context, who Identity, action string, detail any, change func(*domain.Show) error) error {
	id := showParam(c)
	if !id.Valid() {
		return domain.ErrShowNotFound
	}
	show, err := s.desk.Change(c.Request().Context(), who.Person, id, action, detail, change)
	if show.ID != "" { // changed, whatever failed after it
		s.shows.put(show)
	}
	if err != nil {
		return err
	}
	return s.answerShow(c, http.StatusOK, show)
}

// admitNow lets people in by an operator's hand, within the limits.
func (s *Server) admitNow(c echo.Context, who Identity) error {
	var body struct {
		Count int `json:"count"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	if body.Count < 1 || body.Count > domain.MaxAdmitNow {
		return invalid("count", fmt.Sprintf("must be between 1 and %d", domain.MaxAdmitNow))
	}
	id := showParam(c)
	if !id.Valid() {
		return domain.ErrShowNotFound
	}
	done, err := s.desk.Admit(c.Request().Context(), who.Person, id, body.Count)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, done)
}

// removePerson ends somebody's place, named by request or by person.
func (s *Server) removePerson(c echo.Context, who Identity) error {
	var body struct {
		RequestID domain.RequestID `json:"requestId"`
		Person    domain.PersonID  `json:"person"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	if (body.RequestID == "") == (body.Person == "") || len(body.RequestID) > maxIDBytes || body.Person != "" && !body.Person.Valid() {
		return invalid("requestId", "name a request id or a person, and not both")
	}
	id := showParam(c)
	if !id.Valid() {
		return domain.ErrShowNotFound
	}
	if body.RequestID == "" {
		body.RequestID = s.admissions.request(id, body.Person)
	}
	if err := s.desk.Remove(c.Request().Context(), who.Person, id, body.RequestID); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// resetShow ends all places and begins a new epoch; it may say when the show opens.
func (s *Server) resetShow(c echo.Context, who Identity) error {
	var body struct {
		PrequeueAt field[time.Time] `json:"prequeueAt"`
		OpensAt    field[time.Time] `json:"opensAt"`
		ClosesAt   field[time.Time] `json:"closesAt"`
	}
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(raw)) > 0 { // nothing but space is no body, as everywhere
		if err := decodeObject(raw, &body); err != nil {
			return err
		}
	} else {
		raw = []byte("{}")
	}
	id := showParam(c)
	if !id.Valid() {
		return domain.ErrShowNotFound
	}
	times := showFields{PrequeueAt: body.PrequeueAt, OpensAt: body.OpensAt, ClosesAt: body.ClosesAt}
	show, err := s.desk.Reset(c.Request().Context(), who.Person, id, json.RawMessage(raw), times.apply)
	if show.ID != "" {
		s.shows.put(show)
	}
	if err != nil {
		return err
	}
	return s.answerShow(c, http.StatusOK, show)
}

// previewView says what a change of settings does to those who wait, before it is made.
type previewView struct {
	Waiting int64                `json:"waiting"`
	Before  int64                `json:"medianSecondsBefore"`
	After   int64                `json:"medianSecondsAfter"`
	Queue   domain.QueueSettings `json:"queue"` // as it would be
}

func (s *Server) previewShow(c echo.Context, _ Identity) error {
	var body struct {
		Queue queueFields `json:"queue"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	before := show.Queue
	change := showFields{Queue: field[queueFields]{set: true, value: &body.Queue}}
	if err := errors.Join(change.apply(&show), s.withinLimits(show), show.Queue.KeepsLanes(before)); err != nil {
		return err
	}
	stats, err := s.deps.Steps.Stats(ctx, show.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, previewView{
		Waiting: stats[0].Waiting, Queue: show.Queue,
		Before: domain.MedianWait(stats[0], before), After: domain.MedianWait(stats[0], show.Queue),
	})
}

// withinLimits refuses more than this deployment was set up for.
func (s *Server) withinLimits(show domain.Show) error {
	var problems []domain.Problem
	limit := func(field string, value, most int) {
		if most > 0 && value > most {
			problems = append(problems, domain.Problem{Field: field, Detail: fmt.Sprintf("may be at most %d in this deployment", most)})
		}
	}
	limit("queue.maxActive", show.Queue.MaxActive, s.config.MaxActiveLimit)
	limit("queue.ratePerMinute", show.Queue.RatePerMinute, s.config.RateLimit)
	if len(problems) > 0 {
		return &domain.InvalidError{Problems: problems}
	}
	return nil
}

// actionView is an action as operators see it.
type actionView struct {
	ID       string          `json:"id"`
	Operator domain.PersonID `json:"operator"`
	Action   string          `json:"action"`
	Detail   json.RawMessage `json:"detail"`
	Outcome  json.RawMessage `json:"outcome"` // null until it is done
	At       time.Time       `json:"at"`
	DoneAt   *time.Time      `json:"doneAt"`
}

// actionPage reads which page of actions is asked for.
func actionPage(c echo.Context) (before string, limit int, err error) {
	var q query
	n := q.number(c, "limit", domain.DefaultActionPage, 1, domain.MaxActionPage)
	before = q.one(c, "before")
	if len(before) > maxIDBytes {
		q.add("before", "is no id of an action")
	}
	return before, int(n), q.err()
}

func (s *Server) listActions(c echo.Context, _ Identity) error {
	before, limit, err := actionPage(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	actions, err := s.deps.Store.Actions(ctx, show.ID, before, limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewActions(actions))
}

func viewActions(actions []domain.OperatorAction) map[string][]actionView {
	views := make([]actionView, len(actions))
	for i, a := range actions {
		views[i] = actionView{ID: a.ID, Operator: a.Operator, Action: a.Action, Detail: json.RawMessage(a.Detail), Outcome: json.RawMessage("null"), At: a.At, DoneAt: utc(a.DoneAt)}
		if a.Outcome != "" {
			views[i].Outcome = json.RawMessage(a.Outcome)
		}
	}
	return map[string][]actionView{"actions": views}
}

// explanation is one place with its history and the rules that decide about it now.
type explanation struct {
	Place   placeView           `json:"place"`
	History []domain.PlaceEvent `json:"history"`
	Rules   []domain.Rule       `json:"rules"`
}

// explainPlace tells what became of a place, named by its request id or by its person.
func (s *Server) explainPlace(c echo.Context, _ Identity) error {
	ctx, named := c.Request().Context(), c.Param("request")
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	facts, err := s.explain(ctx, show.ID, domain.RequestID(named))
	if errors.Is(err, domain.ErrNotJoined) && domain.PersonID(named).Valid() {
		facts, err = s.explain(ctx, show.ID, s.admissions.request(show.ID, domain.PersonID(named)))
	}
	if errors.Is(err, domain.ErrNotJoined) {
		return newProblem(http.StatusNotFound, codeNotJoined, "No place", "Nobody of this name has had a place at this show in its present epoch.").because(err)
	}
	if err != nil {
		return err
	}
	facts.Queue = show.Queue
	return c.JSON(http.StatusOK, explanation{
		Place: viewPlace(facts.Place, show.Queue, ""), History: orEmpty(facts.History()), Rules: orEmpty(facts.Rules()),
	})
}

func (s *Server) explain(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.PlaceFacts, error) {
	if len(request) > maxIDBytes {
		return domain.PlaceFacts{}, domain.ErrNotJoined
	}
	return s.deps.Steps.Explain(ctx, show, request)
}

// newDesk gives operators what they act on.
func (s *Server) newDesk() *operate.Desk {
	return &operate.Desk{Store: s.deps.Store, Steps: s.deps.Steps, Commands: s.deps.Commands, Notifier: s.deps.Bus, Letters: s.deps.DeadLetters, Log: s.log}
}

// mountOperating mounts what operators do to a show.
func (s *Server) mountOperating(api *echo.Group) {
	const show = "/operator/shows/:show"
	api.POST(show+"/pause", s.operator(s.switchShow(domain.ActionPause, func(show *domain.Show) { show.Paused = true })))
	api.POST(show+"/resume", s.operator(s.switchShow(domain.ActionResume, func(show *domain.Show) { show.Paused = false })))
	api.POST(show+"/close", s.operator(s.switchShow(domain.ActionClose, func(show *domain.Show) { show.Closed = true })))
	api.POST(show+"/reopen", s.operator(s.switchShow(domain.ActionReopen, func(show *domain.Show) { show.Closed = false })))
	api.POST(show+"/admit", s.operator(s.admitNow))
	api.POST(show+"/remove", s.operator(s.removePerson))
	api.POST(show+"/reset", s.operator(s.resetShow))
	api.POST(show+"/preview", s.operator(s.previewShow))
	api.POST(show+"/codes", s.operator(s.mintCodes))
	get(api, show+"/audit", s.operator(s.listActions))
	get(api, show+"/places/:request/explain", s.operator(s.explainPlace))
}
