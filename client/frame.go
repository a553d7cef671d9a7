package client

import (
	"encoding/json"
	"fmt"
	"time"

	"foyer/domain"
)

// Events of frames.
const (
	EventHello       = "HELLO"
	EventAdmission   = "ADMISSION"
	EventRank        = "RANK"
	EventStats       = "STATS"
	EventSoldOut     = "SOLD_OUT"
	EventSeats       = "SEATS"
	EventBooking     = "BOOKING"
	EventChatMessage = "CHAT_MESSAGE"
	EventChatRead    = "CHAT_READ"
	EventShow        = "SHOW"
	EventHeartbeat   = "HEARTBEAT"
	EventError       = "ERROR"
)

// Frame is one thing that the server told. Of the pointers the one that Event
// names is set; HEARTBEAT has none, and an event that this client does not know
// has only Raw.
type Frame struct {
	Event   string        `json:"event"`
	Topic   string        `json:"topic"`
	ShowID  domain.ShowID `json:"showId"`
	Epoch   int64         `json:"epoch"`
	Version int64         `json:"version"` // of the topic; a new epoch outranks it
	At      time.Time     `json:"at"`

	Hello       *Hello       `json:"-"`
	Admission   *Admission   `json:"-"`
	Rank        *Rank        `json:"-"`
	Stats       *Stats       `json:"-"`
	SoldOut     *SoldOut     `json:"-"`
	Seats       *SeatDelta   `json:"-"`
	Booking     *BookingNews `json:"-"`
	ChatMessage *ChatNews    `json:"-"`
	ChatRead    *ChatRead    `json:"-"`
	Show        *ShowNews    `json:"-"`
	Error       *FrameError  `json:"-"`

	// Polled is true when no socket was open and the frame was made from an
	// answer to polling.
	Polled bool `json:"-"`
	// Raw is the frame as it came; nil when Live made it of a HELLO or by polling.
	Raw json.RawMessage `json:"-"`
}

// Hello opens every connection with all that is known of the person's places. A
// Live tells of each in an ADMISSION frame behind it as well.
type Hello struct {
	ConnectionID     string    `json:"connectionId"`
	ServerTime       time.Time `json:"serverTime"`
	HeartbeatSeconds float64   `json:"heartbeatSeconds"`
	Places           []Place   `json:"places"`
}

// Admission tells where the person stands at a show.
type Admission struct {
	RequestID domain.RequestID `json:"requestId"`
	Status    domain.Status    `json:"status"`
	ClaimBy   *time.Time       `json:"claimBy"`
	ExpiresAt *time.Time       `json:"expiresAt"`
	Place     *Place           `json:"place"` // the whole of it; nil when the server sent none
}

// Rank tells how far the line has moved for the person.
type Rank struct {
	RequestID domain.RequestID `json:"requestId"`
	Rank      int64            `json:"rank"`
	Waiting   int64            `json:"waiting"`
	ETA       *domain.ETA      `json:"eta"`
	Odds      *domain.Odds     `json:"odds"` // nil where the show has no seats
}

// Stats are a show's public numbers.
type Stats struct {
	Waiting       int64               `json:"waiting"`
	Active        int64               `json:"active"`
	MaxActive     int64               `json:"maxActive"`
	RatePerMinute int64               `json:"ratePerMinute"`
	Sold          int64               `json:"sold"`
	Held          int64               `json:"held"`
	Capacity      int64               `json:"capacity"`
	Availability  domain.Availability `json:"availability"`
	Phase         domain.Phase        `json:"phase"`
}

// SoldOut tells that the last seat went or, with false, that seats came back.
type SoldOut struct {
	SoldOut bool `json:"soldOut"`
}

// SeatDelta brings a seat map as of version Since to the frame's Version. Since 0
// is a whole map, in which a seat that is not named is free.
type SeatDelta struct {
	Since int64         `json:"since"`
	Seats []domain.Seat `json:"seats"`
}

// BookingNews tells what became of a booking.
type BookingNews struct {
	BookingID domain.BookingID     `json:"bookingId"`
	Status    domain.BookingStatus `json:"status"`
	Reason    string               `json:"reason"`
	Conflicts []domain.SeatID      `json:"conflicts"`
	Seats     []domain.SeatID      `json:"seats"`
	Price     domain.Price         `json:"price"`
}

// ChatNews is a chat message that was said, or deleted.
type ChatNews struct {
	RoomID  domain.RoomID      `json:"roomId"`
	Message domain.ChatMessage `json:"message"`
}

// ChatRead tells how far a member has read a chat room. LastSeq and Unread are set
// in the answer to a subscription, which is about the person.
type ChatRead struct {
	RoomID  domain.RoomID   `json:"roomId"`
	Person  domain.PersonID `json:"person"`
	Name    string          `json:"name"`
	UpTo    int64           `json:"upTo"`
	LastSeq *int64          `json:"lastSeq"`
	Unread  *int            `json:"unread"`
}

// ShowNews tells that a show's phase, message or settings changed.
type ShowNews struct {
	Phase   domain.Phase `json:"phase"`
	Message string       `json:"message"`
	Show    *Show        `json:"show"`
}

// FrameError refuses a client frame, with the code that HTTP would give. The
// frame's ShowID or Topic is what it was about.
type FrameError struct {
	Code   string                     `json:"code"`
	Detail string                     `json:"detail"`
	Ref    string                     `json:"ref"` // the kind of the refused frame and a number, such as join-3
	Extra  map[string]json.RawMessage `json:"extra"`
}

func decodeFrame(raw []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(raw, &f); err != nil {
		return Frame{}, fmt.Errorf("frame: %w", err)
	}
	f.Raw = raw
	if body := f.body(); body != nil {
		if err := json.Unmarshal(raw, body); err != nil {
			return Frame{}, fmt.Errorf("frame %s: %w", f.Event, err)
		}
	}
	return f, nil
}

// body makes room for what the event carries.
func (f *Frame) body() any {
	switch f.Event {
	case EventHello:
		f.Hello = &Hello{}
		return f.Hello
	case EventAdmission:
		f.Admission = &Admission{}
		return f.Admission
	case EventRank:
		f.Rank = &Rank{}
		return f.Rank
	case EventStats:
		f.Stats = &Stats{}
		return f.Stats
	case EventSoldOut:
		f.SoldOut = &SoldOut{}
		return f.SoldOut
	case EventSeats:
		f.Seats = &SeatDelta{}
		return f.Seats
	case EventBooking:
		f.Booking = &BookingNews{}
		return f.Booking
	case EventChatMessage:
		f.ChatMessage = &ChatNews{}
		return f.ChatMessage
	case EventChatRead:
		f.ChatRead = &ChatRead{}
		return f.ChatRead
	case EventShow:
		f.Show = &ShowNews{}
		return f.Show
	case EventError:
		f.Error = &FrameError{}
		return f.Error
	}
	return nil
}

// placeFrame tells of a place in an ADMISSION frame, so that whoever listens for
// those misses none that came another way.
func placeFrame(p Place) Frame {
	return Frame{
		Event: EventAdmission, Topic: "/topic/admission/" + string(p.RequestID), ShowID: p.ShowID,
		Epoch: p.Epoch, Version: p.Version, At: p.ServerTime,
		Admission: &Admission{RequestID: p.RequestID, Status: p.Status, ClaimBy: p.ClaimBy, ExpiresAt: p.ExpiresAt, Place: &p},
	}
}

// newest remembers how far each topic has come, so that a frame that took longer
// than a later one does not turn the clock back.
type newest map[newestKey]newestAt

type newestKey struct{ event, topic string }

type newestAt struct{ epoch, version int64 }

// maxNewest bounds what is remembered; beyond it memory starts anew, which at
// worst lets one late frame through.
const maxNewest = 1024

// stale reports whether a frame is older than one that came before it. Only where
// the latest value is all that counts can there be such: of bookings and chat
// every frame counts.
func (n newest) stale(f Frame) bool {
	switch f.Event {
	case EventAdmission, EventRank, EventStats, EventSoldOut, EventSeats, EventShow:
	default:
		return false
	}
	key := newestKey{f.Event, f.Topic}
	at, known := n[key]
	if known && (f.Epoch < at.epoch || f.Epoch == at.epoch && f.Version < at.version) {
		return true
	}
	if !known && len(n) >= maxNewest {
		clear(n)
	}
	n[key] = newestAt{f.Epoch, f.Version}
	return false
}

// Problem is the refusal as the error that HTTP would have answered with; its
// Status is 0.
func (e *FrameError) Problem() *Error { return &Error{Code: e.Code, Detail: e.Detail, Extra: e.Extra} }
