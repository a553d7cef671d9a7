package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// followUpTime bounds what is still done for others after a step that is done,
// even when the caller has gone: the command that gives a freed slot on, and the
// notification. Losing either costs a tick or a re-read, never a seat or a place.
const followUpTime = 2 * time.Second

// admissions joins, claims and leaves for people, whichever way they ask.
type admissions struct {
	steps    Steps
	shows    *showCache
	commands Commands
	bus      Bus
	ids      domain.RequestIDs
	codes    domain.JoinCodes
	log      *slog.Logger

	newcomers newcomers
}

// request returns the id of a person's place at a show.
func (a *admissions) request(show domain.ShowID, person domain.PersonID) domain.RequestID {
	return a.ids.For(show, person)
}

// joinTries bounds how often joining is tried anew because the draw got another seed.
const joinTries = 3

// join gives the person a place at the show, the same one when asked again; created tells
// whether it is new. Whoever has read the show before its draw got another seed reads it
// again: a place drawn by the seed of before would be one that everybody could foretell.
func (a *admissions) join(ctx context.Context, who Identity, show domain.ShowID, code string) (place domain.Place, created bool, err error) {
	for range joinTries {
		place, created, err = a.joinOnce(ctx, who, show, code)
		if !errors.Is(err, domain.ErrDrawChanged) {
			break
		}
		a.shows.forget(show)
	}
	return place, created, err
}

// joinOnce joins by what is known of the show now. With a code it is in the code's lane;
// a code that does not count fails the whole, so that nobody finds out at the end of the
// wait.
func (a *admissions) joinOnce(ctx context.Context, who Identity, show domain.ShowID, code string) (place domain.Place, created bool, err error) {
	s, err := a.shows.get(ctx, show)
	if err != nil {
		return domain.Place{}, false, err
	}
	request := a.request(show, who.Person)
	join := lua.JoinRequest{ShowID: show, RequestID: request, DrawScore: domain.DrawScore(s.DrawSeed, request), DrawMark: domain.DrawMark(s.DrawSeed)}
	if code != "" {
		opened, lane, err := a.codes.Open(code, &s, who.Person, time.Now())
		if err != nil {
			if place, errPlace := a.place(ctx, who, show); errPlace == nil && !ended(place.Status) {
				return place, false, nil // whoever has a place keeps it, whatever the code: asking again is no mistake
			}
			return domain.Place{}, false, err
		}
		join.Lane, join.CodeID, join.CodeUses = lane, opened.ID, opened.Uses
	}
	place, created, err = a.steps.Join(ctx, join)
	switch {
	case err != nil || !created:
	case place.Status != domain.StatusAdmitted || place.ClaimBy == nil:
		a.newcomers.add(ctx, show, request)
	default:
		a.tell(ctx, events.Notification{
			Event: events.EventAdmission, ShowID: show, Epoch: place.Epoch, Version: place.Version,
			Admitted: []domain.Admitted{{RequestID: request, ClaimBy: *place.ClaimBy}},
		})
	}
	return place, created, err
}

// ended tells whether a place is over, so that joining again gives a new one.
func ended(s domain.Status) bool { return s == domain.StatusLeft || s == domain.StatusExpired }

// place returns where the person stands and counts as contact.
func (a *admissions) place(ctx context.Context, who Identity, show domain.ShowID) (domain.Place, error) {
	if _, err := a.shows.get(ctx, show); err != nil {
		return domain.Place{}, err
	}
	request := a.request(show, who.Person)
	if err := a.steps.Touch(ctx, show, []domain.RequestID{request}); err != nil {
		return domain.Place{}, err
	}
	return a.steps.Place(ctx, show, request)
}

// claim takes the person's turn. Without a turn, or without a place, it fails
// with domain.ErrNotAdmitted.
func (a *admissions) claim(ctx context.Context, who Identity, show domain.ShowID) (domain.Place, error) {
	if _, err := a.shows.get(ctx, show); err != nil {
		return domain.Place{}, err
	}
	place, err := a.steps.Claim(ctx, show, a.request(show, who.Person))
	if errors.Is(err, domain.ErrNotJoined) {
		return place, domain.ErrNotAdmitted
	}
	if err == nil { // the person's other tabs, wherever they are connected
		a.tell(ctx, events.Notification{
			Event: events.EventAdmission, ShowID: show, Epoch: place.Epoch, Version: place.Version,
			Moved: []events.PlaceFact{{RequestID: place.RequestID, Status: place.Status, ExpiresAt: place.ExpiresAt}},
		})
	}
	return place, err
}

// extend gives the person the time of their turn once more; again changes nothing.
// Without a turn it fails with domain.ErrNotAdmitted.
func (a *admissions) extend(ctx context.Context, who Identity, show domain.ShowID) (domain.Place, error) {
	if _, err := a.shows.get(ctx, show); err != nil {
		return domain.Place{}, err
	}
	place, extended, err := a.steps.Extend(ctx, show, a.request(show, who.Person))
	if errors.Is(err, domain.ErrNotJoined) {
		return place, domain.ErrNotAdmitted
	}
	if err == nil && extended && place.ClaimBy != nil { // the person's other tabs
		a.tell(ctx, events.Notification{
			Event: events.EventAdmission, ShowID: show, Epoch: place.Epoch, Version: place.Version,
			Admitted: []domain.Admitted{{RequestID: place.RequestID, ClaimBy: *place.ClaimBy}},
		})
	}
	return place, err
}

// leave ends the person's place, if there is one, and gives what it frees on.
func (a *admissions) leave(ctx context.Context, who Identity, show domain.ShowID) error {
	if _, err := a.shows.get(ctx, show); err != nil {
		return err
	}
	request := a.request(show, who.Person)
	departure, err := a.steps.Leave(ctx, show, request)
	if err != nil || !departure.Left {
		return err
	}
	told := []events.Notification{{
		Event: events.EventAdmission, ShowID: show, Epoch: departure.Epoch, Version: departure.Version,
		Ended: []domain.RequestID{request},
		Moved: []events.PlaceFact{{RequestID: request, Status: domain.StatusLeft}},
	}}
	if len(departure.FreedSeats) > 0 {
		told = append(told, seatsNotification(show, departure.Epoch, departure.SeatVersion, domain.SeatFree, departure.FreedSeats))
	}
	a.tell(ctx, told...)
	if departure.FreedSlot {
		a.slotFreed(ctx, show)
	}
	return nil
}

// slotFreed asks the workers to let the next person in now and not at the tick.
func (a *admissions) slotFreed(ctx context.Context, show domain.ShowID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	if err := a.commands.AdmitShow(ctx, events.AdmitShow{ShowID: show, Reason: events.ReasonFreed}); err != nil {
		a.log.WarnContext(ctx, "freed slot waits for the tick", "show_id", show, "error", err)
	}
}

// tell publishes facts; readers find out by version what they missed.
func (a *admissions) tell(ctx context.Context, facts ...events.Notification) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	if err := a.bus.Publish(ctx, facts...); err != nil {
		a.log.WarnContext(ctx, "notification was not published", "show_id", facts[0].ShowID, "error", err)
	}
}

// placeView is a place as a person sees it.
type placeView struct {
	RequestID  domain.RequestID `json:"requestId"`
	ShowID     domain.ShowID    `json:"showId"`
	Status     domain.Status    `json:"status"`
	Rank       *int64           `json:"rank"`
	Waiting    int64            `json:"waiting"`
	Active     int64            `json:"active"`
	ETA        *domain.ETA      `json:"eta"`
	ClaimBy    *time.Time       `json:"claimBy"`
	ExpiresAt  *time.Time       `json:"expiresAt"`
	Pass       *string          `json:"pass"`
	PollAfter  int64            `json:"pollAfterMs"`
	Epoch      int64            `json:"epoch"`
	Version    int64            `json:"version"`
	ServerTime time.Time        `json:"serverTime"`
	Odds       *domain.Odds     `json:"odds,omitempty"` // while waiting for seats
	Lane       string           `json:"lane,omitempty"` // while waiting in one
	Draw       *drawProof       `json:"draw,omitempty"` // once the draw that gave the place has closed
}

// viewPlace is a place as its person sees it, with the pass when there is one and
// when to ask again at a show of these settings.
func viewPlace(place domain.Place, queue domain.QueueSettings, pass string) placeView {
	view := placeView{
		RequestID: place.RequestID, ShowID: place.ShowID, Status: place.Status,
		Waiting: place.Waiting, Active: place.Active, ETA: place.ETA, Odds: place.Odds, Lane: queue.LaneName(place.Lane),
		ClaimBy: utc(place.ClaimBy), ExpiresAt: utc(place.ExpiresAt),
		PollAfter: pollAfter(place, queue.Grace()).Milliseconds(),
		Epoch:     place.Epoch, Version: place.Version, ServerTime: place.ServerTime.UTC(),
	}
	if place.Rank > 0 {
		view.Rank = &place.Rank
	}
	if pass != "" {
		view.Pass = &pass
	}
	return view
}

// How often a page without a socket asks. Who is near the front asks often, and
// nobody so seldom that the grace could run out between two polls.
const (
	pollLeast  = 500 * time.Millisecond
	pollFront  = time.Second
	pollMost   = 10 * time.Second
	pollTurn   = 2 * time.Second
	pollInside = 5 * time.Second
	pollEnded  = 30 * time.Second
	// pollRanks is how many ranks add one more second between polls.
	pollRanks = 100
	// graceShare is how many polls fit into one grace at least.
	graceShare = 3
)

// pollAfter is when to ask for the place again; 0 means that nothing will change.
func pollAfter(place domain.Place, grace time.Duration) time.Duration {
	after := pollMost
	switch place.Status {
	case domain.StatusWaiting:
		after = min(pollFront+time.Duration(place.Rank/pollRanks)*time.Second, pollMost)
	case domain.StatusAdmitted:
		after = pollTurn
	case domain.StatusActive:
		after = pollInside
	case domain.StatusSoldOut, domain.StatusClosed:
		return pollEnded
	case domain.StatusExpired, domain.StatusLeft:
		return 0
	}
	return max(min(after, grace/graceShare), pollLeast)
}

func (s *Server) joinShow(c echo.Context, who Identity) error {
	code, err := joinCode(c)
	if err != nil {
		return err
	}
	place, created, err := s.admissions.join(c.Request().Context(), who, showParam(c), code)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return s.answerPlace(c, status, place, who)
}

// joinCode reads the code that somebody joins with; empty: without one.
func joinCode(c echo.Context) (string, error) {
	var body struct {
		Code field[string] `json:"code"`
	}
	if err := optionalBody(c, &body); err != nil {
		return "", err
	}
	switch {
	case body.Code.set && body.Code.value == nil:
		return "", invalid("code", "must not be null")
	case body.Code.set && *body.Code.value == "":
		return "", invalid("code", "must not be empty; leave it out to join without one")
	case body.Code.set:
		return *body.Code.value, nil
	}
	return "", nil
}

func (s *Server) myPlace(c echo.Context, who Identity) error {
	place, err := s.admissions.place(c.Request().Context(), who, showParam(c))
	if err != nil {
		return err
	}
	return s.answerPlace(c, http.StatusOK, place, who)
}

func (s *Server) claimTurn(c echo.Context, who Identity) error {
	return s.onTurn(c, who, s.admissions.claim, "You have no turn to claim.")
}

// extendTurn is for a page that cannot be seen: its person may not have noticed.
func (s *Server) extendTurn(c echo.Context, who Identity) error {
	return s.onTurn(c, who, s.admissions.extend, "You have no turn to extend.")
}

func (s *Server) onTurn(c echo.Context, who Identity, do func(context.Context, Identity, domain.ShowID) (domain.Place, error), without string) error {
	if err := noBody(c); err != nil {
		return err
	}
	place, err := do(c.Request().Context(), who, showParam(c))
	if errors.Is(err, domain.ErrNotAdmitted) {
		// Elsewhere not being admitted is 403; here it is a conflict with the
		// state of one's own place, which waiting resolves.
		return newProblem(http.StatusConflict, codeNotAdmitted, "Not your turn", without).because(err)
	}
	if err != nil {
		return err
	}
	return s.answerPlace(c, http.StatusOK, place, who)
}

func (s *Server) leaveShow(c echo.Context, who Identity) error {
	if err := s.admissions.leave(c.Request().Context(), who, showParam(c)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) answerPlace(c echo.Context, status int, place domain.Place, who Identity) error {
	show, err := s.shows.get(c.Request().Context(), place.ShowID)
	if err != nil {
		return err
	}
	pass := ""
	if place.Status == domain.StatusActive {
		if pass, err = s.pass.sign(place, who.Person); err != nil {
			return err
		}
	}
	view := viewPlace(place, show.Queue, pass)
	view.Draw = s.draws.proof(c.Request().Context(), show, place.RequestID)
	return c.JSON(status, view)
}

func showParam(c echo.Context) domain.ShowID { return domain.ShowID(c.Param("show")) }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// seatsNotification says that all of the seats are in one state now. It never
// carries whose.
func seatsNotification(show domain.ShowID, epoch, version int64, state domain.SeatState, ids []domain.SeatID) events.Notification {
	seats := make([]domain.Seat, len(ids))
	for i, id := range ids {
		seats[i] = domain.Seat{ID: id, State: state}
	}
	return events.Notification{Event: events.EventSeats, ShowID: show, Epoch: epoch, SeatsChanged: seats, SeatVersion: version}
}
