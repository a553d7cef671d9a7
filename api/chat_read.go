package api

import (
	"context"
	"sync"

	"foyer/domain"
	"foyer/events"
)

// A read mark reaches SQL through a stream, so a list of chat rooms that is asked
// for right after would still show the old count. Marks are therefore noted in
// Redis for a minute, and in memory while they are on their way there, and laid
// over what SQL says. A mark is noted only once it stands on the stream: what was
// never sent must not look as if it were.

// pendingReads are the marks of this process that are on their way.
type pendingReads struct {
	mu    sync.Mutex
	marks map[readKey][]domain.ReadMark
}

type readKey struct {
	person domain.PersonID
	room   domain.RoomID
}

func newPendingReads() *pendingReads { return &pendingReads{marks: map[readKey][]domain.ReadMark{}} }

func keyOf(mark domain.ReadMark) readKey { return readKey{mark.PersonID, mark.RoomID} }

func (p *pendingReads) add(mark domain.ReadMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks[keyOf(mark)] = append(p.marks[keyOf(mark)], mark)
}

func (p *pendingReads) remove(mark domain.ReadMark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	marks := p.marks[keyOf(mark)]
	for i, m := range marks {
		if m == mark {
			marks = append(marks[:i:i], marks[i+1:]...)
			break
		}
	}
	if len(marks) == 0 {
		delete(p.marks, keyOf(mark))
		return
	}
	p.marks[keyOf(mark)] = marks
}

func (p *pendingReads) of(person domain.PersonID, room domain.RoomID) []domain.ReadMark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]domain.ReadMark(nil), p.marks[readKey{person, room}]...)
}

// publishRead puts a mark on the stream and then notes it. The error is that of
// the stream; a note that fails only shows an old count for a moment.
func (s *Server) publishRead(ctx context.Context, mark domain.ReadMark) error {
	if err := s.deps.Commands.MarkRead(ctx, events.MarkRead{ReadMark: mark}); err != nil {
		return err
	}
	s.noteRead(ctx, mark)
	return nil
}

func (s *Server) noteRead(ctx context.Context, mark domain.ReadMark) {
	if err := s.deps.Steps.NoteRead(ctx, mark); err != nil {
		s.log.WarnContext(ctx, "read mark was not noted", "room_id", mark.RoomID, "error", err)
	}
}

// readBehindAnswer publishes a mark without the answer waiting for it.
func (s *Server) readBehindAnswer(ctx context.Context, mark domain.ReadMark) {
	s.reads.add(mark)
	s.afterwards.do(ctx, func(ctx context.Context) {
		defer s.reads.remove(mark)
		if err := s.publishRead(ctx, mark); err != nil {
			s.log.WarnContext(ctx, "read mark was not published", "room_id", mark.RoomID, "error", err)
		}
	})
}

// markReadUpTo marks a chat room as read up to a message that it has. Both ways
// in use it: the route and the socket's frame.
func (s *Server) markReadUpTo(ctx context.Context, who Identity, id domain.RoomID, upTo int64) error {
	room, err := s.room(ctx, id, who)
	if err != nil {
		return err
	}
	if upTo < 1 || upTo > room.LastSeq {
		return invalid("upTo", "must be the number of a message of the chat room")
	}
	return s.publishRead(ctx, domain.ReadMark{RoomID: id, PersonID: who.Person, UpTo: upTo, Epoch: room.ReadEpoch})
}

// overlayReads lays noted and pending marks over what SQL says of a person's chat
// rooms, and counts again what is unread past them.
func (s *Server) overlayReads(ctx context.Context, rooms []domain.ChatRoom, who Identity) ([]domain.ChatRoom, error) {
	ids := make([]domain.RoomID, len(rooms))
	for i, room := range rooms {
		ids[i] = room.ID
	}
	pending := make([][]domain.ReadMark, len(rooms))
	for i, id := range ids { // before the notes: a mark moves from here to there
		pending[i] = s.reads.of(who.Person, id)
	}
	noted, err := s.deps.Steps.NotedReads(ctx, who.Person, ids)
	if err != nil {
		// The list is right without the notes, only perhaps a moment behind.
		s.log.WarnContext(ctx, "noted read marks could not be read", "error", err)
	}
	for i := range rooms {
		marks := pending[i]
		if mark, ok := noted[rooms[i].ID]; ok {
			marks = append(marks, mark)
		}
		for _, mark := range marks {
			if err := s.overlay(ctx, &rooms[i], mark, who); err != nil {
				return nil, err
			}
		}
	}
	return rooms, nil
}

// overlay moves the pointer that a room shows, unless the mark is from before an
// explicit mark-as-unread or says nothing new.
func (s *Server) overlay(ctx context.Context, room *domain.ChatRoom, mark domain.ReadMark, who Identity) error {
	upTo := min(mark.UpTo, room.LastSeq)
	if mark.Epoch != room.ReadEpoch || upTo <= room.ReadUpTo {
		return nil
	}
	unread, err := s.unreadAfter(ctx, room, upTo, who)
	if err != nil {
		return err
	}
	room.ReadUpTo, room.Unread = upTo, unread
	return nil
}

// unreadAfter counts others' messages past a pointer, up to
// domain.MaxUnreadCounted and never more than SQL counted past the older one.
func (s *Server) unreadAfter(ctx context.Context, room *domain.ChatRoom, upTo int64, who Identity) (int, error) {
	unread, before := 0, int64(0)
	for last := room.LastSeq; last > upTo && unread < domain.MaxUnreadCounted; last = before - 1 {
		page, err := s.deps.Store.Messages(ctx, room.ID, before, domain.MaxMessagePage)
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			break
		}
		for _, message := range page {
			if message.Seq > upTo && message.Sender != who.Person && !message.Deleted {
				unread++
			}
		}
		before = page[0].Seq
	}
	return min(unread, domain.MaxUnreadCounted, room.Unread), nil
}
