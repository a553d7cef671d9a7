package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
)

// showView is a show as everybody sees it.
type showView struct {
	ID           domain.ShowID        `json:"id"`
	Title        string               `json:"title"`
	Venue        string               `json:"venue"`
	StartsAt     *time.Time           `json:"startsAt"`
	PrequeueAt   *time.Time           `json:"prequeueAt"`
	OpensAt      time.Time            `json:"opensAt"`
	ClosesAt     *time.Time           `json:"closesAt"`
	Phase        domain.Phase         `json:"phase"`
	Paused       bool                 `json:"paused"`
	Availability domain.Availability  `json:"availability"`
	Capacity     int64                `json:"capacity"`
	Sold         int64                `json:"sold"`
	Message      string               `json:"message"`
	Queue        domain.QueueSettings `json:"queue"`
	Seating      domain.Seating       `json:"seating"`
	Draw         drawView             `json:"draw"`
	Epoch        int64                `json:"epoch"`
	Revision     int64                `json:"revision"`
}

// drawView lets anybody check the draw: the hash before it, the seed after it.
type drawView struct {
	SeedHash string  `json:"seedHash"`
	Seed     *string `json:"seed"` // null until the draw is closed
	// ClosesAt is when the draw closes and admission begins.
	ClosesAt time.Time `json:"closesAt"`
}

// viewShow joins what SQL says of a show with its live numbers.
func viewShow(show domain.Show, stats domain.Stats) showView {
	show.Seating.Sections = orEmpty(show.Seating.Sections)
	view := showView{
		ID: show.ID, Title: show.Title, Venue: show.Venue, Message: show.Message,
		StartsAt: utc(show.StartsAt), PrequeueAt: utc(show.PrequeueAt), OpensAt: show.OpensAt.UTC(), ClosesAt: utc(show.ClosesAt),
		Phase: stats.Phase, Paused: show.Paused, Availability: stats.Availability(),
		Capacity: int64(show.Seating.Capacity()), Sold: stats.Sold,
		Queue: show.Queue, Seating: show.Seating,
		Draw:  drawView{SeedHash: domain.SeedHash(show.DrawSeed), ClosesAt: show.DrawClosesAt().UTC()},
		Epoch: stats.Epoch, Revision: show.Revision,
	}
	if drawIsClosed(show, stats.Phase) {
		view.Draw.Seed = &show.DrawSeed
	}
	return view
}

// drawIsClosed needs the clock beside the phase: a show that was closed by hand
// before its opening may be opened again, and its draw goes on then.
func drawIsClosed(show domain.Show, phase domain.Phase) bool {
	return phase != domain.PhaseScheduled && phase != domain.PhasePrequeue && !time.Now().Before(show.DrawClosesAt())
}

func (s *Server) listShows(c echo.Context) error {
	ctx := c.Request().Context()
	shows, err := s.shows.all(ctx)
	if err != nil {
		return err
	}
	views, err := s.viewShows(ctx, shows)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]showView{"shows": views})
}

func (s *Server) viewShows(ctx context.Context, shows []domain.Show) ([]showView, error) {
	ids := make([]domain.ShowID, len(shows))
	for i, show := range shows {
		ids[i] = show.ID
	}
	stats, err := s.deps.Steps.Stats(ctx, ids...)
	if err != nil {
		return nil, err
	}
	views := make([]showView, len(shows))
	for i, show := range shows {
		views[i] = viewShow(show, stats[i])
	}
	return views, nil
}

func (s *Server) getShow(c echo.Context) error {
	show, err := s.shows.get(c.Request().Context(), showParam(c))
	if err != nil {
		return err
	}
	return s.answerShow(c, http.StatusOK, show)
}

func (s *Server) answerShow(c echo.Context, status int, show domain.Show) error {
	views, err := s.viewShows(c.Request().Context(), []domain.Show{show})
	if err != nil {
		return err
	}
	return c.JSON(status, views[0])
}

// showFields are what an operator may set; absent leaves it as it is.
type showFields struct {
	Title      field[string]        `json:"title"`
	Venue      field[string]        `json:"venue"`
	StartsAt   field[time.Time]     `json:"startsAt"`
	PrequeueAt field[time.Time]     `json:"prequeueAt"`
	OpensAt    field[time.Time]     `json:"opensAt"`
	ClosesAt   field[time.Time]     `json:"closesAt"`
	Message    field[string]        `json:"message"`
	Queue      field[queueFields]   `json:"queue"`
	Seating    field[seatingFields] `json:"seating"`
}

type queueFields struct {
	MaxActive      field[int] `json:"maxActive"`
	RatePerMinute  field[int] `json:"ratePerMinute"`
	TurnSeconds    field[int] `json:"turnSeconds"`
	SessionSeconds field[int] `json:"sessionSeconds"`
	GraceSeconds   field[int] `json:"graceSeconds"`

	LateJoinSeconds  field[int] `json:"lateJoinSeconds"`
	OverAdmitPercent field[int] `json:"overAdmitPercent"`

	Lanes          field[[]domain.Lane] `json:"lanes"`
	OrdinaryWeight field[int]           `json:"ordinaryWeight"`
}

func (f queueFields) apply(q *query, queue *domain.QueueSettings) {
	set(q, "queue.maxActive", f.MaxActive, &queue.MaxActive)
	set(q, "queue.ratePerMinute", f.RatePerMinute, &queue.RatePerMinute)
	set(q, "queue.turnSeconds", f.TurnSeconds, &queue.TurnSeconds)
	set(q, "queue.sessionSeconds", f.SessionSeconds, &queue.SessionSeconds)
	set(q, "queue.graceSeconds", f.GraceSeconds, &queue.GraceSeconds)
	set(q, "queue.lateJoinSeconds", f.LateJoinSeconds, &queue.LateJoinSeconds)
	set(q, "queue.overAdmitPercent", f.OverAdmitPercent, &queue.OverAdmitPercent)
	set(q, "queue.lanes", f.Lanes, &queue.Lanes)
	set(q, "queue.ordinaryWeight", f.OrdinaryWeight, &queue.OrdinaryWeight)
}

type seatingFields struct {
	HoldSeconds field[int]              `json:"holdSeconds"`
	SeatLimit   field[int]              `json:"seatLimit"`
	Sections    field[[]domain.Section] `json:"sections"`
}

// The years that a show's times may be in; what is outside is a slip.
const firstYear, lastYear = 2000, 2199

// apply sets the fields on a show, and says everything that is wrong with them.
func (f showFields) apply(s *domain.Show) error {
	var q query
	set(&q, "title", f.Title, &s.Title)
	set(&q, "venue", f.Venue, &s.Venue)
	set(&q, "message", f.Message, &s.Message)
	setTime(&q, "startsAt", f.StartsAt, &s.StartsAt)
	setTime(&q, "prequeueAt", f.PrequeueAt, &s.PrequeueAt)
	setTime(&q, "closesAt", f.ClosesAt, &s.ClosesAt)
	opens := &s.OpensAt
	setTime(&q, "opensAt", f.OpensAt, &opens)
	if opens == nil {
		q.add("opensAt", "must not be null")
	} else {
		s.OpensAt = *opens
	}
	var queue queueFields
	set(&q, "queue", f.Queue, &queue)
	queue.apply(&q, &s.Queue)
	var seating seatingFields
	set(&q, "seating", f.Seating, &seating)
	set(&q, "seating.holdSeconds", seating.HoldSeconds, &s.Seating.HoldSeconds)
	set(&q, "seating.seatLimit", seating.SeatLimit, &s.Seating.SeatLimit)
	set(&q, "seating.sections", seating.Sections, &s.Seating.Sections)
	if err := q.err(); err != nil {
		return err
	}
	return s.Validate()
}

func set[T any](q *query, name string, f field[T], into *T) {
	switch {
	case f.value != nil:
		*into = *f.value
	case f.set:
		q.add(name, "must not be null")
	}
}

// setTime keeps milliseconds, which is what deadlines are judged in, so that what
// is read back is what was set. Null clears.
func setTime(q *query, name string, f field[time.Time], into **time.Time) {
	if !f.set {
		return
	}
	*into = nil
	if f.value == nil {
		return
	}
	t := f.value.UTC().Truncate(time.Millisecond)
	if t.Year() < firstYear || t.Year() > lastYear {
		q.add(name, "must be between the years 2000 and 2199")
	}
	*into = &t
}

func (s *Server) createShow(c echo.Context, who Identity) error {
	var body struct {
		ID field[domain.ShowID] `json:"id"`
		showFields
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	show := domain.Show{
		ID:       newShowID(),
		OpensAt:  time.Now().UTC().Truncate(time.Millisecond),
		Queue:    domain.DefaultQueue(),
		Seating:  domain.DefaultSeating(),
		DrawSeed: domain.NewDrawSeed(),
		Revision: 1,
		Epoch:    1,
	}
	if body.ID.value != nil {
		show.ID = *body.ID.value
	}
	if body.OpensAt.value == nil {
		body.OpensAt.set = false // null asks for the default, as absent does
	}
	if err := body.apply(&show); err != nil {
		return err
	}
	if err := s.withinLimits(show); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := s.deps.Store.CreateShow(ctx, show); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "show created", "show_id", show.ID, "by", who.Person)
	created := domain.OperatorAction{ID: domain.NewID(), ShowID: show.ID, Operator: who.Person, Action: domain.ActionCreate, Detail: "{}"}
	if err := errors.Join(s.deps.Store.BeginAction(ctx, created), s.deps.Store.EndAction(ctx, created.ID, "{}")); err != nil {
		return err
	}
	// A new show has nothing sold, so it need not be loaded from SQL first.
	if _, err := s.deps.Steps.Restore(ctx, show, nil); err != nil {
		return err
	}
	if err := s.publishShow(ctx, show); err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/api/shows/"+string(show.ID))
	return s.answerShow(c, http.StatusCreated, show)
}

// newShowID makes an id for a show that was given none.
func newShowID() domain.ShowID {
	const length = 16
	return domain.ShowID(strings.ToLower(rand.Text()[:length]))
}

// showChange is what an operator changes of a show.
type showChange struct {
	showFields
	Pause  field[bool] `json:"pause"`
	Paused field[bool] `json:"paused"`
	Closed field[bool] `json:"closed"`
}

// action names the change for whoever reads later what was done.
func (f showChange) action() string {
	alone := f.showFields == showFields{}
	paused := f.Paused.value
	if paused == nil {
		paused = f.Pause.value
	}
	switch {
	case alone && paused != nil && !f.Closed.set:
		return map[bool]string{true: domain.ActionPause, false: domain.ActionResume}[*paused]
	case alone && paused == nil && f.Closed.value != nil:
		return map[bool]string{true: domain.ActionClose, false: domain.ActionReopen}[*f.Closed.value]
	}
	return domain.ActionChange
}

// changeShow changes what is named and leaves the rest. The plan of a show never
// changes: seats of it may be sold.
func (s *Server) changeShow(c echo.Context, who Identity) error {
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	var body showChange
	if err := decodeObject(raw, &body); err != nil {
		return err
	}
	if seating := body.Seating.value; seating != nil && seating.Sections.set {
		return invalid("seating.sections", "cannot be changed; seats of the plan may be sold")
	}
	joined, err := s.joinedBefore(c, body)
	if err != nil {
		return err
	}
	return s.operateOn(c, who, body.action(), json.RawMessage(raw), func(show *domain.Show) error {
		var q query
		set(&q, "pause", body.Pause, &show.Paused)
		set(&q, "paused", body.Paused, &show.Paused)
		set(&q, "closed", body.Closed, &show.Closed)
		if body.Pause.value != nil && body.Paused.value != nil && *body.Pause.value != *body.Paused.value {
			q.add("pause", "contradicts paused")
		}
		if err := q.err(); err != nil {
			return err
		}
		before := *show
		if err := body.apply(show); err != nil {
			return err
		}
		if body.Queue.set { // a limit that was lowered since is no reason to refuse a message
			if err := s.withinLimits(*show); err != nil {
				return err
			}
		}
		return errors.Join(show.Queue.KeepsLanes(before.Queue), guardDraw(before, show, joined, time.Now()))
	})
}

// joinedBefore is how many have had a place so far, for a change that moves the draw; it
// is asked for before the change, since a transaction must not wait for Redis.
func (s *Server) joinedBefore(c echo.Context, change showChange) (int64, error) {
	queue := change.Queue.value
	if !change.PrequeueAt.set && !change.OpensAt.set && (queue == nil || !queue.LateJoinSeconds.set) {
		return 0, nil
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return 0, err
	}
	stats, err := s.deps.Steps.Stats(ctx, show.ID)
	if err != nil {
		return 0, err
	}
	return stats[0].Joined, nil
}

// guardDraw refuses to open a draw again: its seed is known, so whoever joined now could
// tell their place before they join. It refuses to begin one where people have joined in
// the order in which they came: everybody who is drawn would pass them. A show that opens
// again, and nobody has come to, gets a seed that nobody knows.
func guardDraw(before domain.Show, after *domain.Show, joined int64, now time.Time) error {
	closed, open := !now.Before(before.DrawClosesAt()), now.Before(after.DrawClosesAt())
	switch {
	case closed && open && before.HasDraw():
		return invalid("opensAt", "cannot be moved: the draw has closed and its seed is known; reset the show to draw anew")
	case open && after.HasDraw() && !before.HasDraw() && joined > 0:
		return invalid("prequeueAt", "cannot begin a draw: people have joined already, and whoever is drawn would pass them; reset the show to draw")
	case closed && open:
		after.DrawSeed = domain.NewDrawSeed()
	}
	return nil
}

// publishShow makes what SQL says of a show hold in Redis and everywhere. When it
// fails, asking for the same change again repeats it; the settings carry their
// revision, so that an older one never overwrites a newer.
func (s *Server) publishShow(ctx context.Context, show domain.Show) error {
	s.shows.put(show)
	if err := s.deps.Steps.Configure(ctx, show); err != nil {
		return err
	}
	s.admissions.tell(ctx, events.Notification{Event: events.EventShow, ShowID: show.ID, Epoch: show.Epoch, Version: show.Revision})
	return nil
}
