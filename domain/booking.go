package domain

import "time"

// BookingStatus is where a booking stands.
type BookingStatus string

// The states of a booking. PENDING ends in CONFIRMED or REJECTED; only a
// confirmed booking can be CANCELLED.
const (
	BookingPending   BookingStatus = "PENDING"
	BookingConfirmed BookingStatus = "CONFIRMED"
	BookingRejected  BookingStatus = "REJECTED"
	BookingCancelled BookingStatus = "CANCELLED"
)

// Reasons of a rejected booking.
const (
	ReasonSeatUnavailable = "SEAT_UNAVAILABLE" // sold to somebody else; Conflicts names the seats
	ReasonFailed          = "FAILED"           // given up on after repeated failures; nothing was sold
)

// Booking is seats sold to one person, or asked for.
type Booking struct {
	BookingID   BookingID     `json:"bookingId"`
	CommandID   CommandID     `json:"commandId"`
	ShowID      ShowID        `json:"showId"`
	PersonID    PersonID      `json:"-"`
	RequestID   RequestID     `json:"-"`
	HoldID      HoldID        `json:"holdId"`
	Seats       []SeatID      `json:"seats"`
	Price       Price         `json:"price"`
	Status      BookingStatus `json:"status"`
	Reason      string        `json:"reason,omitempty"`
	Conflicts   []SeatID      `json:"conflicts,omitempty"`
	CreatedAt   time.Time     `json:"createdAt"`
	DecidedAt   *time.Time    `json:"decidedAt,omitempty"`
	CancelledAt *time.Time    `json:"cancelledAt,omitempty"`
}

// CancelCommand is the id of the command that takes a booking back. It follows from the
// booking's, so that asking again has one effect.
func (b Booking) CancelCommand() CommandID { return CommandID("cancel-" + string(b.BookingID)) }

// BookingRequest is what a PENDING booking is recorded with: the booking, and the
// caller's idempotency key with a fingerprint of what was asked under it.
type BookingRequest struct {
	Booking     Booking
	Key         string
	Fingerprint string
}

// SoldSeat says by which booking, and so by whose request, a seat was sold.
type SoldSeat struct {
	SeatID    SeatID
	BookingID BookingID
	RequestID RequestID
}

// Limits of a page of bookings.
const (
	DefaultBookingPage = 20
	MaxBookingPage     = 100
)

// MaxIdempotencyKeySize bounds the caller's key in bytes.
const MaxIdempotencyKeySize = 255
