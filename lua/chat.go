package lua

import (
	"context"
	"fmt"
	"time"

	"foyer/domain"
)

// noteLife is how long a read note outlives its making: by then SQL has it.
const noteLife = 60 * time.Second

// NoteRead notes that a person has read up to a message, so that they read their own
// write until SQL has it. Within an epoch a note never goes back; a note of an older
// epoch than the one there is void. Notes are kept for 60 seconds.
func (s *Steps) NoteRead(ctx context.Context, mark domain.ReadMark) error {
	_, err := s.once(ctx, call{script: "chat_note", tag: string(mark.PersonID),
		args: []any{noteLife.Milliseconds(), string(mark.RoomID), mark.UpTo, mark.Epoch}})
	if err != nil {
		return fmt.Errorf("note what was read in chat room %s: %w", mark.RoomID, err)
	}
	return nil
}

// NotedReads tells what a person has read lately in the given chat rooms; those
// without a note are left out.
func (s *Steps) NotedReads(ctx context.Context, person domain.PersonID, rooms []domain.RoomID) (map[domain.RoomID]domain.ReadMark, error) {
	notes := map[domain.RoomID]domain.ReadMark{}
	if len(rooms) == 0 {
		return notes, nil
	}
	r, err := s.once(ctx, call{script: "chat_notes", tag: string(person), args: anys(rooms)})
	if err != nil {
		return nil, fmt.Errorf("read notes of what was read in chat: %w", err)
	}
	for i := 0; i+2 < len(r); i += 3 {
		room := rooms[r.int(i)-1]
		notes[room] = domain.ReadMark{RoomID: room, PersonID: person, UpTo: r.int(i + 1), Epoch: r.int(i + 2)}
	}
	return notes, nil
}
