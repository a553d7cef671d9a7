package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"foyer/domain"
)

const (
	maxMarkGroup = 2000 // read pointers moved by one statement
	maxReaders   = 1000 // members listed as readers of a message
)

func scanPointer(scan scanner) (domain.ReadPointer, error) {
	var p domain.ReadPointer
	err := scan(&p.RoomID, &p.PersonID, &p.Name, &p.UpTo, &p.Epoch)
	return p, err
}

const pointerColumns = `room_id, person_id, name, read_up_to, read_epoch`

// pointerKey is what marks are coalesced by.
type pointerKey struct {
	room   domain.RoomID
	person domain.PersonID
	epoch  int64
}

func (a pointerKey) compare(b pointerKey) int {
	return cmp.Or(cmp.Compare(a.room, b.room), cmp.Compare(a.person, b.person), cmp.Compare(a.epoch, b.epoch))
}

// MarkRead moves read pointers forward and returns those that moved, as they are
// now. A pointer is the maximum of its marks, so order and repeats do not matter.
// A mark does nothing when it is not ahead of the pointer, when it was made in
// another epoch, and when its chat room or membership does not exist; beyond the
// last message it counts as the last message. No mark can fail the others.
func (db *DB) MarkRead(ctx context.Context, marks []domain.ReadMark) ([]domain.ReadPointer, error) {
	highest := make(map[pointerKey]int64, len(marks))
	for _, m := range marks {
		if checkText(field{"room", string(m.RoomID)}, field{"person", string(m.PersonID)}) != nil {
			continue // no such member can exist
		}
		key := pointerKey{m.RoomID, m.PersonID, m.Epoch}
		highest[key] = max(highest[key], m.UpTo)
	}
	moved := []domain.ReadPointer{}
	for group := range slices.Chunk(slices.SortedFunc(maps.Keys(highest), pointerKey.compare), maxMarkGroup) {
		part, err := db.markGroup(ctx, group, highest)
		if err != nil {
			return nil, fmt.Errorf("move %d read pointers: %w", len(group), err)
		}
		moved = append(moved, part...)
	}
	return moved, nil
}

// markGroup locks the members in order before it updates them, so that two groups
// with the same members cannot wait for each other in a circle.
func (db *DB) markGroup(ctx context.Context, group []pointerKey, highest map[pointerKey]int64) ([]domain.ReadPointer, error) {
	rooms, persons := make([]string, len(group)), make([]string, len(group))
	epochs, upTos := make([]int64, len(group)), make([]int64, len(group))
	for i, key := range group {
		rooms[i], persons[i] = string(key.room), string(key.person)
		epochs[i], upTos[i] = key.epoch, highest[key]
	}
	from, args := db.engine.rows(1, column{"room", rooms}, column{"person", persons}, column{"epoch", epochs}, column{"up_to", upTos})
	var moved []domain.ReadPointer
	err := db.engine.write(ctx, func(tx session) error {
		var err error
		moved, err = query(ctx, tx, scanPointer, `
			WITH ahead AS (
				SELECT m.room_id AS room, m.person_id AS person, r.epoch AS epoch,
					CASE WHEN r.up_to < c.last_seq THEN r.up_to ELSE c.last_seq END AS target
				FROM `+from+`
				JOIN chat_members m ON m.room_id = r.room AND m.person_id = r.person AND m.read_epoch = r.epoch
				JOIN chat_rooms c ON c.id = r.room
				WHERE m.read_up_to < r.up_to AND m.read_up_to < c.last_seq
				ORDER BY m.room_id, m.person_id`+db.engine.locked("m")+`
			)
			UPDATE chat_members SET read_up_to = ahead.target FROM ahead
			WHERE room_id = ahead.room AND person_id = ahead.person AND read_epoch = ahead.epoch AND read_up_to < ahead.target
			RETURNING `+pointerColumns, args...)
		return err
	})
	return moved, err
}

// MarkUnread makes everything from a sequence number on unread again, however
// often marks from before are delivered: the pointer goes back to the message
// before, unless it stands there or earlier already, and begins its next epoch.
// It fails with domain.ErrRoomNotFound or domain.ErrNotMember.
func (db *DB) MarkUnread(ctx context.Context, room domain.RoomID, person domain.PersonID, from int64) (domain.ReadPointer, error) {
	var pointer domain.ReadPointer
	err := db.engine.write(ctx, func(tx session) error {
		var member bool
		var err error
		pointer, member, err = first(ctx, tx, scanPointer, `
			UPDATE chat_members SET read_up_to = CASE WHEN $3 < read_up_to THEN $3 ELSE read_up_to END, read_epoch = read_epoch + 1
			WHERE room_id = $1 AND person_id = $2 RETURNING `+pointerColumns, room, person, max(from-1, 0))
		if err == nil && !member {
			err = notMember(ctx, tx, room)
		}
		return err
	})
	if err != nil {
		return domain.ReadPointer{}, fmt.Errorf("mark unread in chat room %s: %w", room, err)
	}
	return pointer, nil
}

// Readers lists the members who have read a message, by person and at most 1000:
// their pointer stands at it or later. Neither its sender nor anybody who joined after it is
// among them; of the latter, who began at the end, a pointer says nothing about it.
// It fails with domain.ErrMessageNotFound.
func (db *DB) Readers(ctx context.Context, room domain.RoomID, seq int64) ([]domain.ReadPointer, error) {
	readers, err := db.readers(ctx, room, seq)
	if err != nil {
		return nil, fmt.Errorf("list readers of message %d in chat room %s: %w", seq, room, err)
	}
	return readers, nil
}

func (db *DB) readers(ctx context.Context, room domain.RoomID, seq int64) ([]domain.ReadPointer, error) {
	sender, found, err := first(ctx, db.engine, one[string],
		`SELECT sender FROM chat_messages WHERE room_id = $1 AND seq = $2`, room, seq)
	if err == nil && !found {
		err = domain.ErrMessageNotFound
	}
	if err != nil {
		return nil, err
	}
	return query(ctx, db.engine, scanPointer, `
		SELECT `+pointerColumns+` FROM chat_members
		WHERE room_id = $1 AND read_up_to >= $2 AND joined_seq < $2 AND person_id <> $3 ORDER BY person_id LIMIT $4`,
		room, seq, sender, maxReaders)
}
