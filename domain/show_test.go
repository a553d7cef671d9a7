package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

func someShow() domain.Show {
	seating := domain.DefaultSeating()
	seating.Sections = []domain.Section{{Name: "A", Rows: 2, SeatsPerRow: 5, Price: 2500}}
	return domain.Show{ID: "s", Title: "T", OpensAt: time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), Queue: domain.DefaultQueue(), Seating: seating}
}

func TestPhaseIsDerivedAndNeverContradicts(t *testing.T) {
	t.Parallel()
	show := someShow()
	prequeue, closes := show.OpensAt.Add(-time.Hour), show.OpensAt.Add(time.Hour)
	show.PrequeueAt, show.ClosesAt = &prequeue, &closes
	at := func(d time.Duration, sold int) domain.Phase { return show.Phase(show.OpensAt.Add(d), sold) }

	require.Equal(t, domain.PhaseScheduled, at(-time.Hour-1, 0))
	require.Equal(t, domain.PhasePrequeue, at(-time.Hour, 0), "the instant itself belongs to what begins")
	require.Equal(t, domain.PhaseOpen, at(0, 0))
	require.Equal(t, domain.PhaseClosed, at(time.Hour, 0))
	require.Equal(t, domain.PhaseSoldOut, at(0, 10))

	show.Paused = true
	require.Equal(t, domain.PhasePrequeue, at(-time.Minute, 0), "before the opening there is nothing to pause")
	require.Equal(t, domain.PhasePaused, at(0, 0))
	require.Equal(t, domain.PhaseSoldOut, at(0, 10), "sold out tells more than paused")
	show.Closed = true
	require.Equal(t, domain.PhaseClosed, at(0, 10), "closed ends everything")

	roomOnly := someShow()
	roomOnly.Seating.Sections = nil
	require.Equal(t, domain.PhaseOpen, roomOnly.Phase(roomOnly.OpensAt, 0), "no seats is not sold out")
}

func TestValidateReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	show := someShow()
	require.NoError(t, show.Validate())
	late := show.OpensAt.Add(time.Second)
	show.ID, show.Title, show.PrequeueAt, show.ClosesAt = "No", "  ", &late, &show.OpensAt
	show.Queue = domain.QueueSettings{MaxActive: -1, RatePerMinute: 1_000_001, TurnSeconds: 4, SessionSeconds: 9, GraceSeconds: 0}
	show.Seating.HoldSeconds, show.Seating.SeatLimit = 4, 101
	show.Seating.Sections = []domain.Section{{Name: "a:b", Rows: 0, SeatsPerRow: 1, Price: -1}, {Name: "a:b", Rows: 1, SeatsPerRow: 1}}
	show.Message = strings.Repeat("ä", domain.MaxMessageLength+1)
	var invalid *domain.InvalidError
	require.ErrorAs(t, show.Validate(), &invalid)
	var fields []string
	for _, p := range invalid.Problems {
		fields = append(fields, p.Field)
	}
	for _, want := range []string{
		"id", "title", "message", "prequeueAt", "closesAt", "queue.maxActive", "queue.ratePerMinute", "queue.turnSeconds",
		"queue.sessionSeconds", "queue.graceSeconds", "seating.holdSeconds", "seating.seatLimit", "seating.sections[0].name",
		"seating.sections[0].rows", "seating.sections[0].price", "seating.sections[1].name",
	} {
		require.Contains(t, fields, want)
	}
}

// D1: everything in carts was shown as sold out, though carts come back.
func TestD1AllHeldIsNotSoldOut(t *testing.T) {
	t.Parallel()
	require.Equal(t, domain.Available, domain.Stats{Capacity: 10, Sold: 4, Held: 5}.Availability())
	require.Equal(t, domain.AllHeld, domain.Stats{Capacity: 10, Sold: 4, Held: 6}.Availability())
	require.Equal(t, domain.AvailabilitySoldOut, domain.Stats{Capacity: 10, Sold: 10}.Availability())
	require.Equal(t, domain.Available, domain.Stats{}.Availability())
}
