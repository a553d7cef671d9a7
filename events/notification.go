package events

import (
	"encoding/json"
	"fmt"
	"time"

	"foyer/domain"
)

// Kinds of notifications.
const (
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
)

// Notification is a fact for every API process. Which fields are set follows
// from Event; Publisher, Seq and At are stamped by Bus.Publish.
type Notification struct {
	Event     string        `json:"event"`
	ShowID    domain.ShowID `json:"showId,omitempty"`
	Epoch     int64         `json:"epoch,omitempty"`
	Version   int64         `json:"version,omitempty"`
	At        time.Time     `json:"at"`
	Publisher string        `json:"publisher"`
	Seq       uint64        `json:"seq"` // counts 1, 2, 3 per publisher and channel

	Admitted []domain.Admitted  `json:"admitted,omitempty"` // ADMISSION: who has a turn now
	Ended    []domain.RequestID `json:"ended,omitempty"`    // ADMISSION: places that are over
	Moved    []PlaceFact        `json:"moved,omitempty"`    // ADMISSION: where people stand who claimed or left
	Joined   []domain.RequestID `json:"joined,omitempty"`   // ADMISSION: places that were just taken; where they stand is to be read
	Knots    *domain.RankKnots  `json:"knots,omitempty"`    // RANK
	Stats    *domain.Stats      `json:"stats,omitempty"`    // STATS, SOLD_OUT

	SeatsChanged []domain.Seat `json:"seats,omitempty"` // SEATS: state as of SeatVersion
	SeatVersion  int64         `json:"seatVersion,omitempty"`

	Bookings []BookingFact `json:"bookings,omitempty"` // BOOKING: as they stand, all of ShowID and as of Version

	RoomID  domain.RoomID        `json:"roomId,omitempty"`  // CHAT_MESSAGE, CHAT_READ
	Message *domain.ChatMessage  `json:"message,omitempty"` // CHAT_MESSAGE
	Read    []domain.ReadPointer `json:"read,omitempty"`    // CHAT_READ: pointers in RoomID that moved
	Gone    []domain.PersonID    `json:"gone,omitempty"`    // CHAT_READ: members no more, who read RoomID no longer
}

// PlaceFact is where somebody stands after a step of their own.
type PlaceFact struct {
	RequestID domain.RequestID `json:"requestId"`
	Status    domain.Status    `json:"status"`
	ExpiresAt *time.Time       `json:"expiresAt,omitempty"` // end of the session, while ACTIVE
}

// BookingFact is where a booking stands, and the request that it is for.
type BookingFact struct {
	BookingID domain.BookingID     `json:"bookingId"`
	RequestID domain.RequestID     `json:"requestId"`
	Seats     []domain.SeatID      `json:"seats"`
	Price     domain.Price         `json:"price"`
	Status    domain.BookingStatus `json:"status"`
	Reason    string               `json:"reason,omitempty"`
	Conflicts []domain.SeatID      `json:"conflicts,omitempty"`
}

// NewBookingFact makes the fact of a booking that knows its request.
func NewBookingFact(b domain.Booking) BookingFact {
	return BookingFact{
		BookingID: b.BookingID, RequestID: b.RequestID, Seats: b.Seats, Price: b.Price,
		Status: b.Status, Reason: b.Reason, Conflicts: b.Conflicts,
	}
}

// Booking is what the fact tells of a booking of a show.
func (f BookingFact) Booking(show domain.ShowID) domain.Booking {
	return domain.Booking{
		BookingID: f.BookingID, ShowID: show, RequestID: f.RequestID, Seats: f.Seats, Price: f.Price,
		Status: f.Status, Reason: f.Reason, Conflicts: f.Conflicts,
	}
}

// parseNotification reads a notification, and gives what is inside the ids that
// stand only once on the wire.
func parseNotification(payload string) (Notification, error) {
	var n Notification
	if err := json.Unmarshal([]byte(payload), &n); err != nil {
		return n, fmt.Errorf("decode notification: %w", err)
	}
	if n.Event == "" || n.Publisher == "" || n.Seq == 0 {
		return n, fmt.Errorf("decode notification: event, publisher or seq is missing")
	}
	if n.Message != nil {
		n.Message.RoomID = n.RoomID
	}
	for i := range n.Read {
		n.Read[i].RoomID = n.RoomID
	}
	return n, nil
}
