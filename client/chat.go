package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"foyer/domain"
)

// CreateRoom opens a chat room, for a show when that is not "", with the person
// as its first member.
func (c *Client) CreateRoom(ctx context.Context, name string, show domain.ShowID) (r domain.ChatRoom, err error) {
	body := map[string]any{"name": name}
	if show != "" {
		body["showId"] = show
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: path("chat", "rooms"), body: body, answer: &r})
	return r, err
}

// Rooms lists the chat rooms that the person is a member of.
func (c *Client) Rooms(ctx context.Context) ([]domain.ChatRoom, error) {
	var answer struct {
		Rooms []domain.ChatRoom `json:"rooms"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("chat", "rooms"), answer: &answer})
	return answer.Rooms, err
}

// ShowRooms lists the chat rooms of a show, oldest first, for joining.
func (c *Client) ShowRooms(ctx context.Context, show domain.ShowID) ([]domain.ChatRoom, error) {
	var answer struct {
		Rooms []domain.ChatRoom `json:"rooms"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: path("shows", string(show), "chat", "rooms"), answer: &answer})
	return answer.Rooms, err
}

// JoinRoom makes the person a member of a chat room. It is safe to repeat.
func (c *Client) JoinRoom(ctx context.Context, room domain.RoomID) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: roomPath(room, "members")})
	return err
}

// LeaveRoom ends the person's membership. It is safe to repeat.
func (c *Client) LeaveRoom(ctx context.Context, room domain.RoomID) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: roomPath(room, "members")})
	return err
}

// Say sends a message to a chat room. Repeating it says it twice.
func (c *Client) Say(ctx context.Context, room domain.RoomID, text string) (m domain.ChatMessage, err error) {
	body := map[string]any{"text": text}
	_, err = c.do(ctx, call{method: http.MethodPost, path: roomPath(room, "messages"), body: body, answer: &m})
	m.RoomID = room
	return m, err
}

// DeleteMessage takes a message of the person's back; an operator may take any.
func (c *Client) DeleteMessage(ctx context.Context, room domain.RoomID, seq int64) error {
	k := call{method: http.MethodDelete, path: roomPath(room, "messages") + "/" + strconv.FormatInt(seq, 10)}
	_, err := c.do(ctx, k)
	return err
}

// Messages returns a page of messages by rising Seq: those before a sequence, or
// the newest when before is 0, which marks them as read. limit 0 means the
// server's default.
func (c *Client) Messages(ctx context.Context, room domain.RoomID, before int64, limit int) ([]domain.ChatMessage, error) {
	query := url.Values{}
	if before > 0 {
		query.Set("before", strconv.FormatInt(before, 10))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var answer struct {
		Messages []domain.ChatMessage `json:"messages"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: roomPath(room, "messages"), query: query, answer: &answer})
	for i := range answer.Messages {
		answer.Messages[i].RoomID = room
	}
	return answer.Messages, err
}

// MarkRead says that the person has read a chat room up to a sequence. It is safe
// to repeat, and a lower one changes nothing.
func (c *Client) MarkRead(ctx context.Context, room domain.RoomID, upTo int64) error {
	body := map[string]any{"upTo": upTo}
	_, err := c.do(ctx, call{method: http.MethodPost, path: roomPath(room, "read"), body: body})
	return err
}

// MarkUnread makes the messages from a sequence on unread again.
func (c *Client) MarkUnread(ctx context.Context, room domain.RoomID, from int64) error {
	body := map[string]any{"from": from}
	_, err := c.do(ctx, call{method: http.MethodPost, path: roomPath(room, "unread"), body: body})
	return err
}

// Readers lists who has read a message.
func (c *Client) Readers(ctx context.Context, room domain.RoomID, seq int64) ([]domain.ReadPointer, error) {
	query := url.Values{"seq": {strconv.FormatInt(seq, 10)}}
	var answer struct {
		Readers []domain.ReadPointer `json:"readers"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: roomPath(room, "readers"), query: query, answer: &answer})
	return answer.Readers, err
}

func roomPath(room domain.RoomID, rest string) string {
	return path("chat", "rooms", string(room), rest)
}
