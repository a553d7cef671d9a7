package workers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/lua"
)

// A turn that lapsed just after a tick kept its slot until the next one. With ticks an
// hour apart, the next person is in within the moment, and so are all who follow.
func TestALapsedTurnIsPassedOnAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(show *domain.Show) { show.Queue.MaxActive, show.Queue.TurnSeconds = 1, 1 })
	s.work.ticker.every = time.Hour
	var lapses []time.Time
	for _, person := range []string{"sleeper", "next", "after"} {
		_, _, err := s.steps.Join(t.Context(), lua.JoinRequest{ShowID: s.show.ID, RequestID: domain.RequestID(person)})
		require.NoError(t, err)
	}
	place, err := s.steps.Place(t.Context(), s.show.ID, "sleeper")
	require.NoError(t, err)
	lapses = append(lapses, *place.ClaimBy)

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.work.Tick(ctx) }()
	defer func() { stop(); <-done }()
	handled := 0
	for i, person := range []domain.RequestID{"next", "after"} {
		testenv.Eventually(t, 10*time.Second, "the turn is passed on", func() bool {
			admits, _ := s.sent.sent()
			for ; handled < len(admits); handled++ { // what a worker does
				require.NoError(t, s.work.Handlers().AdmitShow(t.Context(), events.Delivery{}, admits[handled]))
			}
			place, err = s.steps.Place(t.Context(), s.show.ID, person)
			return err == nil && place.Status == domain.StatusAdmitted
		})
		late := place.ClaimBy.Add(-time.Second).Sub(lapses[i])
		t.Log("passed on", late, "after it lapsed")
		require.Less(t, late, 700*time.Millisecond)
		lapses = append(lapses, *place.ClaimBy)
	}
}
