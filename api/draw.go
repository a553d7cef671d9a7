package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// Limits of draws.
const (
	defaultDrawPage = 100
	mostDrawPage    = 1000
	// maxDraws bounds the draws that a process remembers; one of a million people
	// takes about 60 MB.
	maxDraws = 4
	// drawPatience is how long a person's own place waits for their proof. A small
	// draw is read in a moment; that of a large one comes with a later answer.
	drawPatience = 150 * time.Millisecond
	// drawReadTime bounds the reading of a draw.
	drawReadTime = 20 * time.Second
)

// drawTable is a closed draw, by place. It does not change within an epoch.
type drawTable struct {
	epoch   int64
	seed    string
	entries []domain.DrawEntry
}

// drawTables reads each closed draw once and remembers it. Safe for concurrent use.
type drawTables struct {
	steps Steps
	later *afterwards

	mu      sync.Mutex
	tables  map[domain.ShowID]drawTable
	reading map[domain.ShowID]*drawReading
}

// drawReading is one reading that callers share.
type drawReading struct {
	done  chan struct{}
	table drawTable
	err   error
}

func newDrawTables(steps Steps, later *afterwards) *drawTables {
	return &drawTables{steps: steps, later: later, tables: map[domain.ShowID]drawTable{}, reading: map[domain.ShowID]*drawReading{}}
}

// get returns the draw of a show, read when it is not known. It fails with a problem
// while the draw is open.
func (d *drawTables) get(ctx context.Context, show domain.Show) (drawTable, error) {
	reading := d.read(ctx, show)
	select {
	case <-reading.done:
		return reading.table, reading.err
	case <-ctx.Done():
		return drawTable{}, ctx.Err()
	}
}

// read begins to read a draw, unless it is known or being read.
func (d *drawTables) read(ctx context.Context, show domain.Show) *drawReading {
	d.mu.Lock()
	defer d.mu.Unlock()
	if table, known := d.tables[show.ID]; known && table.epoch == show.Epoch && table.seed == show.DrawSeed {
		reading := &drawReading{done: make(chan struct{}), table: table}
		close(reading.done)
		return reading
	}
	if reading := d.reading[show.ID]; reading != nil {
		return reading
	}
	reading := &drawReading{done: make(chan struct{})}
	d.reading[show.ID] = reading
	d.later.goFor(ctx, drawReadTime, func(ctx context.Context) { d.load(ctx, show, reading) })
	return reading
}

func (d *drawTables) load(ctx context.Context, show domain.Show, reading *drawReading) {
	requests, stats, err := d.steps.DrawRequests(ctx, show.ID)
	if err == nil && !drawIsClosed(show, stats.Phase) {
		err = newProblem(http.StatusConflict, codeDrawOpen, "The draw is open", "The places are told when the draw has closed.").
			with("closesAt", show.DrawClosesAt().UTC())
	}
	if reading.err = err; err == nil {
		reading.table = drawTable{epoch: stats.Epoch, seed: show.DrawSeed, entries: domain.Draw(show.DrawSeed, requests)}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reading, show.ID)
	if err == nil {
		if len(d.tables) >= maxDraws {
			clear(d.tables)
		}
		d.tables[show.ID] = reading.table
	}
	close(reading.done)
}

// drawProof is what the draw gave to a person, for them to check.
type drawProof struct {
	Score int64 `json:"score"`
	Place int64 `json:"place"`
}

// proof returns what the draw gave to a request; nil for somebody who was not drawn,
// while the draw is open, and while a large draw is still being read.
func (d *drawTables) proof(ctx context.Context, show domain.Show, request domain.RequestID) *drawProof {
	if !show.HasDraw() || time.Now().Before(show.DrawClosesAt()) {
		return nil
	}
	patience := time.NewTimer(drawPatience)
	defer patience.Stop()
	reading := d.read(ctx, show)
	select {
	case <-reading.done:
	case <-patience.C:
		return nil
	}
	entry, drawn := domain.FindDrawn(reading.table.entries, show.DrawSeed, request)
	if reading.err != nil || !drawn {
		return nil
	}
	return &drawProof{Score: entry.Score, Place: entry.Place}
}

// closedDraw is a page of a draw, with what is needed to recompute all of it.
type closedDraw struct {
	ShowID    domain.ShowID      `json:"showId"`
	Epoch     int64              `json:"epoch"`
	SeedHash  string             `json:"seedHash"`
	Seed      string             `json:"seed"`
	Algorithm string             `json:"algorithm"`
	ClosedAt  time.Time          `json:"closedAt"`
	Total     int64              `json:"total"`
	Entries   []domain.DrawEntry `json:"entries"`
}

// getDraw tells the whole draw to anybody, a page at a time. Request ids say nothing
// about whose they are, and open nothing.
func (s *Server) getDraw(c echo.Context) error {
	var q query
	after := q.number(c, "after", 0, 0, maxSeq)
	limit := q.number(c, "limit", defaultDrawPage, 1, mostDrawPage)
	if err := q.err(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	table, err := s.draws.get(ctx, show)
	if err != nil {
		return err
	}
	total := int64(len(table.entries))
	from := min(after, total)
	return c.JSON(http.StatusOK, closedDraw{
		ShowID: show.ID, Epoch: table.epoch, SeedHash: domain.SeedHash(table.seed), Seed: table.seed,
		Algorithm: domain.DrawAlgorithm, ClosedAt: show.DrawClosesAt().UTC(), Total: total,
		Entries: orEmpty(table.entries[from:min(from+limit, total)]),
	})
}
