package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
)

func (s *Server) createRoom(c echo.Context, who Identity) error {
	var body struct {
		Name   string         `json:"name"`
		ShowID *domain.ShowID `json:"showId"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := domain.CheckRoomName(body.Name); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if body.ShowID != nil {
		if _, err := s.shows.get(ctx, *body.ShowID); err != nil {
			return err
		}
	}
	room := domain.ChatRoom{ID: domain.RoomID(domain.NewID()), Name: body.Name, ShowID: body.ShowID}
	room, err := s.deps.Store.CreateRoom(ctx, room, who.Person, who.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, room)
}

// listRooms answers with one's own chat rooms, and with marks that are still on
// their way to SQL already counted in.
func (s *Server) listRooms(c echo.Context, who Identity) error {
	ctx := c.Request().Context()
	rooms, err := s.deps.Store.Rooms(ctx, who.Person)
	if err != nil {
		return err
	}
	if rooms, err = s.overlayReads(ctx, rooms, who); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]domain.ChatRoom{"rooms": orEmpty(rooms)})
}

// listShowRooms answers with the chat rooms of a show, for a person to find those
// that they may join.
func (s *Server) listShowRooms(c echo.Context, _ Identity) error {
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	rooms, err := s.deps.Store.ShowRooms(ctx, show.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]domain.ChatRoom{"rooms": orEmpty(rooms)})
}

func (s *Server) joinRoom(c echo.Context, who Identity) error {
	room, err := roomParam(c)
	if err != nil {
		return err
	}
	if err := noBody(c); err != nil {
		return err
	}
	if err := s.deps.Store.AddMember(c.Request().Context(), room, who.Person, who.Name); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) leaveRoom(c echo.Context, who Identity) error {
	room, err := roomParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := s.deps.Store.RemoveMember(ctx, room, who.Person); err != nil {
		return err
	}
	s.admissions.tell(ctx, events.Notification{Event: events.EventChatRead, RoomID: room, Gone: []domain.PersonID{who.Person}})
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) say(c echo.Context, who Identity) error {
	room, err := roomParam(c)
	if err != nil {
		return err
	}
	var body struct {
		Text string `json:"text"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.room(ctx, room, who); err != nil {
		return err
	}
	if err := domain.CheckMessageText(body.Text); err != nil {
		return err
	}
	message, err := s.deps.Store.AddMessage(ctx, domain.ChatMessage{
		RoomID: room, Sender: who.Person, SenderName: who.Name, Text: body.Text,
	})
	if err != nil {
		return err
	}
	s.tellMessage(ctx, message)
	return c.JSON(http.StatusCreated, utcMessage(message))
}

func (s *Server) tellMessage(ctx context.Context, message domain.ChatMessage) {
	s.admissions.tell(ctx, events.Notification{Event: events.EventChatMessage, RoomID: message.RoomID, Message: &message})
}

// listMessages answers with a page. The newest page counts as read up to its last
// message and no further: what comes while it is under way was not seen. Older
// history says nothing about what was read.
func (s *Server) listMessages(c echo.Context, who Identity) error {
	id, err := roomParam(c)
	if err != nil {
		return err
	}
	var q query
	before := q.number(c, "before", 0, 1, maxSeq)
	limit := q.number(c, "limit", domain.DefaultMessagePage, 1, domain.MaxMessagePage)
	if err := q.err(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	room, err := s.room(ctx, id, who)
	if err != nil {
		return err
	}
	messages, err := s.deps.Store.Messages(ctx, id, before, int(limit))
	if err != nil {
		return err
	}
	if before == 0 && len(messages) > 0 && c.Request().Method == http.MethodGet { // HEAD has shown nothing
		last := messages[len(messages)-1].Seq
		s.readBehindAnswer(ctx, domain.ReadMark{RoomID: id, PersonID: who.Person, UpTo: last, Epoch: room.ReadEpoch})
	}
	for i := range messages {
		messages[i] = utcMessage(messages[i])
	}
	return c.JSON(http.StatusOK, map[string][]domain.ChatMessage{"messages": orEmpty(messages)})
}

// deleteMessage takes a message back: its sender's own, or anybody's by an
// operator. Its number stays, with no text.
func (s *Server) deleteMessage(c echo.Context, who Identity) error {
	room, err := roomParam(c)
	if err != nil {
		return err
	}
	seq, err := strconv.ParseInt(c.Param("seq"), 10, 64)
	if err != nil || seq < 1 {
		return domain.ErrMessageNotFound
	}
	ctx := c.Request().Context()
	message, err := s.deps.Store.DeleteMessage(ctx, room, seq, who.Person, who.Operator())
	if err != nil {
		return err
	}
	s.tellMessage(ctx, message)
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) markRead(c echo.Context, who Identity) error {
	room, err := roomParam(c)
	if err != nil {
		return err
	}
	var body struct {
		UpTo int64 `json:"upTo"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := s.markReadUpTo(c.Request().Context(), who, room, body.UpTo); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, map[string]int64{"upTo": body.UpTo})
}

// markUnread moves one's pointer back on purpose. It is done in SQL at once, and
// voids the marks that are on their way.
func (s *Server) markUnread(c echo.Context, who Identity) error {
	id, err := roomParam(c)
	if err != nil {
		return err
	}
	var body struct {
		From int64 `json:"from"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	room, err := s.room(ctx, id, who)
	if err != nil {
		return err
	}
	if body.From < 1 || body.From > room.LastSeq {
		return invalid("from", "must be the number of a message of the chat room")
	}
	pointer, err := s.deps.Store.MarkUnread(ctx, id, who.Person, body.From)
	if err != nil {
		return err
	}
	s.noteRead(ctx, domain.ReadMark{RoomID: id, PersonID: who.Person, UpTo: pointer.UpTo, Epoch: pointer.Epoch})
	pointer.RoomID, pointer.PersonID, pointer.Name = id, who.Person, who.Name
	s.admissions.tell(ctx, events.Notification{Event: events.EventChatRead, RoomID: id, Read: []domain.ReadPointer{pointer}})
	return c.NoContent(http.StatusNoContent)
}

// listReaders answers with who has read a message, without its sender. Who joined
// after it counts as having read it.
func (s *Server) listReaders(c echo.Context, who Identity) error {
	id, err := roomParam(c)
	if err != nil {
		return err
	}
	var q query
	seq := q.number(c, "seq", 0, 1, maxSeq)
	if seq == 0 {
		q.add("seq", "is required")
	}
	if err := q.err(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	room, err := s.room(ctx, id, who)
	if err != nil {
		return err
	}
	if seq > room.LastSeq {
		return domain.ErrMessageNotFound
	}
	readers, err := s.deps.Store.Readers(ctx, id, seq)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]domain.ReadPointer{"readers": orEmpty(readers)})
}

// room returns a chat room as its member sees it.
func (s *Server) room(ctx context.Context, id domain.RoomID, who Identity) (domain.ChatRoom, error) {
	if !plain(string(id), maxIDBytes) {
		return domain.ChatRoom{}, domain.ErrRoomNotFound
	}
	return s.deps.Store.Room(ctx, id, who.Person)
}

// roomParam refuses what cannot be a chat room's id before SQL sees it.
func roomParam(c echo.Context) (domain.RoomID, error) {
	id := c.Param("room")
	if !plain(id, maxIDBytes) {
		return "", domain.ErrRoomNotFound
	}
	return domain.RoomID(id), nil
}

func utcMessage(m domain.ChatMessage) domain.ChatMessage {
	m.At = m.At.UTC()
	return m
}
