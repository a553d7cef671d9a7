package api

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
)

// I9, T57: whatever happens while every notification is lost, one re-read brings every
// page to what is true, and no page is told an older epoch after a newer one.
func TestEveryPageConvergesAfterAnyLoss(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	dice := rand.New(rand.NewPCG(4, 2))
	people := []string{"a", "b", "c", "d", "e", "f"}
	w.fill()
	w.join(people...)
	pages := map[string]*tab{}
	for _, person := range people {
		pages[person], _ = w.open(person)
	}
	for round := range 12 {
		for range 8 {
			w.happen(dice, people)
		}
		w.server.Gap("all of it was lost")
		for _, person := range people {
			testenv.Eventually(t, socketWait, fmt.Sprintf("round %d: the page of %s says what is true", round, person), func() bool {
				return pages[person].knows(w, person)
			})
		}
	}
	for person, page := range pages {
		last := int64(0)
		for _, f := range page.of(events.EventAdmission) {
			require.GreaterOrEqual(t, f.Epoch, last, person)
			last = f.Epoch
		}
	}
}

// happen is something that people, operators or time do, without a word to anybody.
func (w *hubWorld) happen(dice *rand.Rand, people []string) {
	w.t.Helper()
	ctx, id := w.t.Context(), w.show.ID
	request := w.request(people[dice.IntN(len(people))])
	var err error
	switch dice.IntN(12) {
	case 0, 1:
		_, _, err = w.steps.Join(ctx, lua.JoinRequest{ShowID: id, RequestID: request})
	case 2:
		_, err = w.steps.Leave(ctx, id, request)
	case 3:
		_, err = w.steps.Leave(ctx, id, w.request(fmt.Sprint("inside-", 1+dice.IntN(2))))
	case 4:
		_, err = w.steps.Remove(ctx, id, request)
	case 5, 6:
		_, _ = w.steps.Claim(ctx, id, request) // who has no turn is refused
	case 7:
		_, _, _ = w.steps.Extend(ctx, id, request) // likewise
	case 8:
		reset := domain.OperatorAction{ID: domain.NewID(), ShowID: id, Operator: "op", Action: domain.ActionReset, Detail: "{}"}
		var show domain.Show
		if show, err = w.db.ResetShow(ctx, reset, func(*domain.Show) error { return nil }); err == nil && dice.IntN(3) == 0 {
			_, _, err = w.steps.Reset(ctx, id, show.Epoch)
		}
	default:
		_, err = w.steps.Admit(ctx, id, lua.AdmitOptions{})
	}
	require.NoError(w.t, err)
}

// knows reports whether the last that the page was told is true.
func (p *tab) knows(w *hubWorld, person string) bool {
	p.t.Helper()
	truth, err := w.steps.Place(w.t.Context(), w.show.ID, w.request(person))
	gone := errors.Is(err, domain.ErrNotJoined)
	if !gone {
		require.NoError(p.t, err)
	}
	var status domain.Status
	var rank int64
	var claimBy *time.Time
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.frames {
		switch {
		case f.Event == eventHello:
			for _, place := range f.Places {
				if place.ShowID == w.show.ID {
					status, rank, claimBy = place.Status, orZero(place.Rank), place.ClaimBy
				}
			}
		case f.Event == events.EventAdmission && f.Place != nil && f.ShowID == w.show.ID:
			status, rank, claimBy = f.Place.Status, orZero(f.Place.Rank), f.Place.ClaimBy
		case f.Event == events.EventRank && f.ShowID == w.show.ID:
			rank = f.Rank
		}
	}
	if gone {
		return status == domain.StatusExpired || status == domain.StatusLeft
	}
	return status == truth.Status && rank == truth.Rank && sameInstant(claimBy, utc(truth.ClaimBy))
}

func orZero(rank *int64) int64 {
	if rank == nil {
		return 0
	}
	return *rank
}
