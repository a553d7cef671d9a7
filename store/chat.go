package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"foyer/domain"
)

// maxRooms bounds how many chat rooms of a person are listed.
const maxRooms = 1000

// roomColumns reads a member m's view of a chat room c. The unread count is
// derived from the messages each time: there is no counter that could drift. The
// person's own messages and deleted ones are not unread. $3 is where counting stops.
const roomColumns = `c.id, c.name, c.show_id, c.last_seq, m.read_up_to, m.read_epoch, (
	SELECT count(*) FROM (
		SELECT 1 FROM chat_messages g
		WHERE g.room_id = m.room_id AND g.seq > m.read_up_to AND g.sender <> m.person_id AND NOT g.deleted
		LIMIT $3) AS unread)`

func scanRoom(scan scanner) (domain.ChatRoom, error) {
	var c domain.ChatRoom
	err := scan(&c.ID, &c.Name, &c.ShowID, &c.LastSeq, &c.ReadUpTo, &c.ReadEpoch, &c.Unread)
	return c, err
}

// CreateRoom stores a new chat room, empty, with its maker as the first member
// under that name. It fails with domain.ErrShowNotFound when it belongs to a show
// that is not there.
func (db *DB) CreateRoom(ctx context.Context, c domain.ChatRoom, maker domain.PersonID, name string) (domain.ChatRoom, error) {
	created, err := db.createRoom(ctx, c, maker, name)
	if err != nil {
		return domain.ChatRoom{}, fmt.Errorf("create chat room %s: %w", c.ID, err)
	}
	return created, nil
}

func (db *DB) createRoom(ctx context.Context, c domain.ChatRoom, maker domain.PersonID, name string) (domain.ChatRoom, error) {
	if err := checkText(field{"id", string(c.ID)}, field{"name", c.Name}, field{"person", string(maker)}, field{"person.name", name}); err != nil {
		return domain.ChatRoom{}, err
	}
	if c.ShowID != nil {
		if _, err := findShow(ctx, db.engine, *c.ShowID, ""); err != nil {
			return domain.ChatRoom{}, err
		}
	}
	var created domain.ChatRoom
	err := db.engine.write(ctx, func(tx session) error {
		err := tx.run(ctx, statement{
			sql:  `INSERT INTO chat_rooms (id, name, show_id, last_seq, created_at) VALUES ($1, $2, $3, 0, ` + db.engine.now() + `)`,
			args: []any{c.ID, c.Name, c.ShowID},
		}, addMember(c.ID, maker, name))
		if err != nil {
			return err
		}
		created, err = memberRoom(ctx, tx, c.ID, maker)
		return err
	})
	return created, err
}

// addMember inserts a member whose pointer stands at the end: what was said
// before somebody joined is not unread to them.
func addMember(room domain.RoomID, person domain.PersonID, name string) statement {
	return statement{sql: `
		INSERT INTO chat_members (room_id, person_id, name, joined_seq, read_up_to, read_epoch)
		SELECT id, $2, $3, last_seq, last_seq, 0 FROM chat_rooms WHERE id = $1
		ON CONFLICT (room_id, person_id) DO NOTHING`, args: []any{room, person, name}}
}

// Rooms lists the chat rooms that a person is a member of now, oldest first, at
// most 1000, each with what is unread.
func (db *DB) Rooms(ctx context.Context, person domain.PersonID) ([]domain.ChatRoom, error) {
	rooms, err := query(ctx, db.engine, scanRoom, `
		SELECT `+roomColumns+` FROM chat_members m JOIN chat_rooms c ON c.id = m.room_id
		WHERE m.person_id = $1 ORDER BY c.created_at, c.id LIMIT $2`, person, maxRooms, domain.MaxUnreadCounted)
	if err != nil {
		return nil, fmt.Errorf("list chat rooms: %w", err)
	}
	return rooms, nil
}

// ShowRooms lists the chat rooms of a show, oldest first, at most 1000, as somebody
// outside sees them: all read, nothing unread.
func (db *DB) ShowRooms(ctx context.Context, show domain.ShowID) ([]domain.ChatRoom, error) {
	if checkText(field{"show", string(show)}) != nil {
		return nil, domain.ErrShowNotFound
	}
	rooms, err := query(ctx, db.engine, scanRoom, `
		SELECT id, name, show_id, last_seq, last_seq, 0, 0 FROM chat_rooms
		WHERE show_id = $1 ORDER BY created_at, id LIMIT $2`, show, maxRooms)
	if err != nil {
		return nil, fmt.Errorf("list chat rooms of show %s: %w", show, err)
	}
	return rooms, nil
}

// Room returns a chat room as a member sees it. It fails with
// domain.ErrRoomNotFound, or domain.ErrNotMember for anybody else.
func (db *DB) Room(ctx context.Context, room domain.RoomID, person domain.PersonID) (domain.ChatRoom, error) {
	c, err := memberRoom(ctx, db.engine, room, person)
	if err != nil {
		return domain.ChatRoom{}, fmt.Errorf("read chat room %s: %w", room, err)
	}
	return c, nil
}

func memberRoom(ctx context.Context, s session, room domain.RoomID, person domain.PersonID) (domain.ChatRoom, error) {
	if checkText(field{"room", string(room)}) != nil {
		return domain.ChatRoom{}, domain.ErrRoomNotFound
	}
	c, found, err := first(ctx, s, scanRoom, `
		SELECT `+roomColumns+` FROM chat_members m JOIN chat_rooms c ON c.id = m.room_id
		WHERE m.room_id = $1 AND m.person_id = $2`, room, person, domain.MaxUnreadCounted)
	if err == nil && !found {
		err = notMember(ctx, s, room)
	}
	return c, err
}

// notMember tells why somebody is not a member: of no such chat room, or of this one.
func notMember(ctx context.Context, s session, room domain.RoomID) error {
	_, found, err := first(ctx, s, one[string], `SELECT id FROM chat_rooms WHERE id = $1`, room)
	switch {
	case err != nil:
		return err
	case !found:
		return domain.ErrRoomNotFound
	}
	return domain.ErrNotMember
}

// AddMember makes a person a member; a member stays as they are. It fails with
// domain.ErrRoomNotFound.
func (db *DB) AddMember(ctx context.Context, room domain.RoomID, person domain.PersonID, name string) error {
	err := checkText(field{"room", string(room)}, field{"person", string(person)}, field{"person.name", name})
	if err == nil {
		err = db.engine.write(ctx, func(tx session) error {
			if err := tx.run(ctx, addMember(room, person, name)); err != nil {
				return err
			}
			if err := notMember(ctx, tx, room); !errors.Is(err, domain.ErrNotMember) {
				return err
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("add member to chat room %s: %w", room, err)
	}
	return nil
}

// RemoveMember ends a membership, and with it the read pointer. There being none
// is no error.
func (db *DB) RemoveMember(ctx context.Context, room domain.RoomID, person domain.PersonID) error {
	err := db.engine.write(ctx, func(tx session) error {
		return tx.run(ctx, statement{
			sql:  `DELETE FROM chat_members WHERE room_id = $1 AND person_id = $2`,
			args: []any{room, person},
		})
	})
	if err != nil {
		return fmt.Errorf("remove member from chat room %s: %w", room, err)
	}
	return nil
}

const messageColumns = `room_id, seq, sender, sender_name, body, sent_at, deleted`

func scanMessage(scan scanner) (domain.ChatMessage, error) {
	var m domain.ChatMessage
	var at instant
	err := scan(&m.RoomID, &m.Seq, &m.Sender, &m.SenderName, &m.Text, &at, &m.Deleted)
	m.At = at.time()
	return m, err
}

// AddMessage gives a message the next sequence number of its chat room and the
// present time, and stores it. The chat room's row is locked from the number to
// the commit, so that messages become visible in the order of their numbers and
// none is missing in between. It fails with domain.ErrRoomNotFound, or
// domain.ErrNotMember when the sender is not one now.
func (db *DB) AddMessage(ctx context.Context, m domain.ChatMessage) (domain.ChatMessage, error) {
	added, err := db.addMessage(ctx, m)
	if err != nil {
		return domain.ChatMessage{}, fmt.Errorf("add message to chat room %s: %w", m.RoomID, err)
	}
	return added, nil
}

func (db *DB) addMessage(ctx context.Context, m domain.ChatMessage) (domain.ChatMessage, error) {
	if err := checkText(field{"room", string(m.RoomID)}, field{"sender", string(m.Sender)}, field{"senderName", m.SenderName}, field{"text", m.Text}); err != nil {
		return domain.ChatMessage{}, err
	}
	var added domain.ChatMessage
	err := db.engine.write(ctx, func(tx session) error {
		seq, member, err := first(ctx, tx, one[int64], `
			UPDATE chat_rooms SET last_seq = last_seq + 1
			WHERE id = $1 AND EXISTS (SELECT 1 FROM chat_members WHERE room_id = $1 AND person_id = $2)
			RETURNING last_seq`, m.RoomID, m.Sender)
		if err == nil && !member {
			err = notMember(ctx, tx, m.RoomID)
		}
		if err != nil {
			return err
		}
		added, _, err = first(ctx, tx, scanMessage, `
			INSERT INTO chat_messages (room_id, seq, sender, sender_name, body, sent_at)
			VALUES ($1, $2, $3, $4, $5, `+db.engine.now()+`) RETURNING `+messageColumns,
			m.RoomID, seq, m.Sender, m.SenderName, m.Text)
		return err
	})
	return added, err
}

// Messages returns up to limit messages in rising order: the last ones before a
// sequence number, or the newest when before is 0. A limit outside 1 to
// domain.MaxMessagePage is that maximum. Who may read is for the caller to judge.
func (db *DB) Messages(ctx context.Context, room domain.RoomID, before int64, limit int) ([]domain.ChatMessage, error) {
	if limit < 1 || limit > domain.MaxMessagePage {
		limit = domain.MaxMessagePage
	}
	if before == 0 {
		before = math.MaxInt64
	}
	page, err := query(ctx, db.engine, scanMessage, `
		SELECT `+messageColumns+` FROM chat_messages
		WHERE room_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`, room, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list messages of chat room %s: %w", room, err)
	}
	slices.Reverse(page)
	return page, nil
}

// DeleteMessage empties a message, which keeps its place in the sequence; again
// is no change. Its sender and an operator may: to anybody else, as where there
// is no such message, it fails with domain.ErrMessageNotFound.
func (db *DB) DeleteMessage(ctx context.Context, room domain.RoomID, seq int64, by domain.PersonID, operator bool) (domain.ChatMessage, error) {
	var deleted domain.ChatMessage
	err := db.engine.write(ctx, func(tx session) error {
		var found bool
		var err error
		deleted, found, err = first(ctx, tx, scanMessage, `
			UPDATE chat_messages SET body = '', deleted = true
			WHERE room_id = $1 AND seq = $2 AND ($4 OR sender = $3) RETURNING `+messageColumns, room, seq, by, operator)
		if err == nil && !found {
			err = domain.ErrMessageNotFound
		}
		return err
	})
	if err != nil {
		return domain.ChatMessage{}, fmt.Errorf("delete message %d of chat room %s: %w", seq, room, err)
	}
	return deleted, nil
}
