package workers

import (
	"context"
	"fmt"

	"foyer/domain"
	"foyer/events"
)

// chatRead moves read pointers. Running a mark twice, or marks in any order, is
// harmless: a pointer is a maximum.
type chatRead struct {
	store  Store
	notify Notifier
	marks  *group[domain.ReadMark, struct{}]
}

// move is the group's call: many marks, coalesced by chat room and member, in
// one statement. What moved is told after the commit.
func (c *chatRead) move(ctx context.Context, marks []domain.ReadMark) ([]result[struct{}], error) {
	moved, err := c.store.MarkRead(ctx, marks)
	if err != nil {
		return nil, events.Unavailable(fmt.Errorf("mark read: %w", err))
	}
	byRoom := map[domain.RoomID][]domain.ReadPointer{}
	for _, pointer := range moved {
		byRoom[pointer.RoomID] = append(byRoom[pointer.RoomID], pointer)
	}
	facts := make([]events.Notification, 0, len(byRoom))
	for room, pointers := range byRoom {
		facts = append(facts, events.Notification{Event: events.EventChatRead, RoomID: room, Read: pointers})
	}
	if err := publish(ctx, c.notify, facts); err != nil {
		return nil, events.Unavailable(err)
	}
	return make([]result[struct{}], len(marks)), nil
}

func (c *chatRead) markRead(ctx context.Context, _ events.Delivery, command events.MarkRead) error {
	_, err := c.marks.do(ctx, command.ReadMark)
	return err
}
