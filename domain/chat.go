package domain

import "time"

// Limits of chat. Lengths are in characters.
const (
	MaxRoomNameLength    = 100
	MaxChatMessageLength = 2000
	DefaultMessagePage   = 50
	MaxMessagePage       = 100
	// MaxUnreadCounted is where counting unread messages stops: a page shows 99+
	// long before, and nobody pays for counting further.
	MaxUnreadCounted = 1000
)

// ChatRoom is a chat room as one member sees it.
type ChatRoom struct {
	ID        RoomID  `json:"id"`
	Name      string  `json:"name"`
	ShowID    *ShowID `json:"showId"`
	LastSeq   int64   `json:"lastSeq"`
	Unread    int     `json:"unread"` // others' messages past ReadUpTo, counted up to MaxUnreadCounted
	ReadUpTo  int64   `json:"readUpTo"`
	ReadEpoch int64   `json:"-"` // grows with each explicit mark-as-unread
}

// ChatMessage is one message; Seq counts 1, 2, 3 within its chat room.
type ChatMessage struct {
	RoomID     RoomID    `json:"-"`
	Seq        int64     `json:"seq"`
	Sender     PersonID  `json:"sender"`
	SenderName string    `json:"senderName"`
	Text       string    `json:"text"` // empty once deleted
	At         time.Time `json:"at"`
	Deleted    bool      `json:"deleted"`
}

// ReadMark moves a member's read pointer. Epoch is the pointer's epoch when the
// mark was made: a mark from before an explicit mark-as-unread is void.
type ReadMark struct {
	RoomID   RoomID
	PersonID PersonID
	UpTo     int64
	Epoch    int64
}

// ReadPointer is the last sequence number a member has read in a chat room.
type ReadPointer struct {
	RoomID   RoomID   `json:"-"`
	PersonID PersonID `json:"person"`
	Name     string   `json:"name"`
	UpTo     int64    `json:"upTo"`
	Epoch    int64    `json:"-"`
}

// CheckRoomName validates a chat room's name.
func CheckRoomName(name string) error {
	var p problems
	text(&p, "name", name, 1, MaxRoomNameLength)
	return p.err()
}

// CheckMessageText validates a chat message's text.
func CheckMessageText(message string) error {
	var p problems
	text(&p, "text", message, 1, MaxChatMessageLength)
	return p.err()
}
