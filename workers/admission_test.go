package workers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

func (s *stage) joinAll(n int) {
	s.t.Helper()
	for i := range n {
		_, _, err := s.steps.Join(s.t.Context(), lua.JoinRequest{ShowID: s.show.ID, RequestID: domain.RequestID(fmt.Sprintf("p-%03d", i))})
		require.NoError(s.t, err)
	}
}

// T5: several slots came free at once and only one person was admitted for each
// event. Every trigger fills all slots, also when the capacity is raised.
func TestT5EveryTriggerFillsAllSlots(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(show *domain.Show) { show.Queue.MaxActive = 2 })
	s.joinAll(10)
	raised, err := s.store.UpdateShow(t.Context(), s.show.ID, func(show *domain.Show) error { show.Queue.MaxActive = 7; return nil })
	require.NoError(t, err)
	require.NoError(t, s.steps.Configure(t.Context(), raised))
	freed := events.AdmitShow{ShowID: s.show.ID, Reason: events.ReasonFreed}
	require.NoError(t, s.work.Handlers().AdmitShow(t.Context(), events.Delivery{}, freed))
	told := s.told.of(events.EventAdmission)
	require.Len(t, told, 1, "many ids travel in one message")
	require.Len(t, told[0].Admitted, 5)
	require.Equal(t, domain.RequestID("p-002"), told[0].Admitted[0].RequestID, "first come, first admitted")
	ranks := s.told.of(events.EventRank)
	require.Len(t, ranks, 1, "a short line hears its ranks at once")
	require.EqualValues(t, 3, ranks[0].Knots.Waiting)
	require.EqualValues(t, 7, s.stats().Active)
}

// T17: every process ran the scheduler, so the rate was multiplied by their
// number. Here many workers tick the same show at the same time.
func TestT17ManyWorkersTickOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	var workers sync.WaitGroup
	for range 20 {
		workers.Go(func() {
			if err := s.work.ticker.tickShow(t.Context(), s.show.ID); err != nil {
				t.Errorf("tick: %v", err)
			}
		})
	}
	workers.Wait()
	admits, _ := s.sent.sent()
	require.Equal(t, []events.AdmitShow{{ShowID: s.show.ID, Reason: events.ReasonTick, Tick: time.Second}}, admits)
}

// B3: people filled carts and left, and the seats never came back. Sweeping only
// tells; a lapsed hold is free from its deadline on whether or not it ran.
func TestSweepTellsWhichSeatsCameBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	request := s.enter("ada")
	_, err := s.steps.Hold(t.Context(), lua.HoldRequest{ShowID: s.show.ID, RequestID: request, HoldID: "h", Candidates: [][]domain.SeatID{{"A-1-1"}}})
	require.NoError(t, err)
	require.NoError(t, s.work.ticker.sweepHolds(t.Context(), s.show.ID))
	require.Empty(t, s.told.of(events.EventSeats), "a live hold stays")
}

func TestUnknownShowIsNoError(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	require.NoError(t, s.work.Handlers().AdmitShow(t.Context(), events.Delivery{}, events.AdmitShow{ShowID: "nobody-knows"}))
}

func TestReadMarksMoveForwardAndAreTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(*domain.Show) {})
	ctx := t.Context()
	room, err := s.store.CreateRoom(ctx, domain.ChatRoom{ID: domain.RoomID(domain.NewID()), Name: "Lobby"}, "ada", "Ada")
	require.NoError(t, err)
	require.NoError(t, s.store.AddMember(ctx, room.ID, "bob", "Bob"))
	for range 5 {
		_, err := s.store.AddMessage(ctx, domain.ChatMessage{RoomID: room.ID, Sender: "ada", SenderName: "Ada", Text: "hello"})
		require.NoError(t, err)
	}
	mark := func(ctx context.Context, upTo int64) {
		require.NoError(t, s.work.Handlers().MarkRead(ctx, events.Delivery{}, events.MarkRead{
			ReadMark: domain.ReadMark{RoomID: room.ID, PersonID: "bob", UpTo: upTo}}))
	}
	mark(ctx, 4)
	mark(ctx, 2) // delivered late: it must not move the pointer back
	mark(ctx, 4) // delivered again
	read, err := s.store.Room(ctx, room.ID, "bob")
	require.NoError(t, err)
	require.EqualValues(t, 4, read.ReadUpTo)
	require.Equal(t, 1, read.Unread)
	told := s.told.of(events.EventChatRead)
	require.Len(t, told, 1, "only what moved is told")
	require.EqualValues(t, 4, told[0].Read[0].UpTo)
}
