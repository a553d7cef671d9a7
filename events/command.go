package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"foyer/domain"
)

// The streams that commands travel on.
const (
	StreamAdmission = "commands.admission"
	StreamBooking   = "commands.booking"
	StreamChatRead  = "chat_read_stream"
)

// Reasons of an AdmitShow.
const (
	ReasonTick  = "tick"  // the interval has passed
	ReasonFreed = "freed" // somebody's slot became free
)

// AdmitShow asks for one admission step of a show.
type AdmitShow struct {
	ShowID domain.ShowID
	Reason string        // ReasonTick or ReasonFreed
	Tick   time.Duration // for ReasonTick: the interval, in whole milliseconds on the wire
}

// BookSeats asks for the seats of a pending booking to be sold. The booking
// carries the person and the request it is for.
type BookSeats struct{ Booking domain.Booking }

// CancelBooking asks for a confirmed booking to be taken back.
type CancelBooking struct {
	BookingID domain.BookingID `json:"bookingId"`
	ShowID    domain.ShowID    `json:"showId"`
}

// MarkRead asks for a member's read pointer to be moved.
type MarkRead struct{ domain.ReadMark }

// Delivery says which command a handler is running, and which of its deliveries.
type Delivery struct {
	CommandID domain.CommandID
	EntryID   string // of the stream entry: milliseconds by Redis, and a number
	Attempt   int    // 1 for the first delivery; a crash counts

	made string
}

// At is when the command was made, by its maker's clock; zero when that is unknown.
func (d Delivery) At() time.Time {
	at, err := time.Parse(time.RFC3339Nano, d.made)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Handlers do what commands ask. Each must be safe to run again, and beside
// itself, with the same command id; it must return soon after its context ends,
// which it does at the handler timeout and when another worker took the command
// over. An error, or a panic, makes the command come back after a growing delay.
type Handlers struct {
	AdmitShow     func(context.Context, Delivery, AdmitShow) error
	BookSeats     func(context.Context, Delivery, BookSeats) error
	CancelBooking func(context.Context, Delivery, CancelBooking) error
	MarkRead      func(context.Context, Delivery, MarkRead) error

	// BookingDead is called when a BookSeats is about to become a dead letter, so
	// that its person is told and their slot freed. When it keeps failing, the
	// dead letter is made all the same.
	BookingDead func(ctx context.Context, d Delivery, c BookSeats, reason string) error
	// CancelDead is the same for a CancelBooking, so that it is not asked for for ever.
	CancelDead func(ctx context.Context, d Delivery, c CancelBooking, reason string) error
}

// permanentError is an error that trying again cannot mend.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error that no further attempt can mend: the command becomes
// a dead letter at once. It is nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// unavailableError is an error that says nothing about the command.
type unavailableError struct{ error }

func (e unavailableError) Unwrap() error { return e.error }

// Unavailable marks an error that is not the command's fault, such as a database
// that cannot be reached: the attempt does not count towards giving up, and the
// command comes back after a growing delay for as long as that lasts. Without it
// an outage of seconds would turn every waiting command into a dead letter. It
// is nil for nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return unavailableError{err}
}

// Types of commands as they stand on the wire. They are never derived from Go's
// names: renaming a Go type must not strand the commands that are on the way.
const (
	typeAdmitShow     = "ADMIT_SHOW"
	typeBookSeats     = TypeBookSeats
	typeCancelBooking = TypeCancelBooking
	typeMarkRead      = "MARK_READ"

	wireVersion = "1"
)

type admitShowWire struct {
	ShowID domain.ShowID `json:"showId"`
	Reason string        `json:"reason"`
	TickMS int64         `json:"tickMs,omitempty"`
}

// MarshalJSON writes the interval in milliseconds.
func (c AdmitShow) MarshalJSON() ([]byte, error) {
	return json.Marshal(admitShowWire{ShowID: c.ShowID, Reason: c.Reason, TickMS: c.Tick.Milliseconds()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *AdmitShow) UnmarshalJSON(b []byte) error {
	var w admitShowWire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*c = AdmitShow{ShowID: w.ShowID, Reason: w.Reason, Tick: time.Duration(w.TickMS) * time.Millisecond}
	return nil
}

// bookingWire is a booking with the two ids that the public JSON keeps back.
type bookingWire struct {
	domain.Booking
	PersonID  domain.PersonID  `json:"personId"`
	RequestID domain.RequestID `json:"requestId"`
}

// MarshalJSON writes the whole booking, with the person and the request.
func (c BookSeats) MarshalJSON() ([]byte, error) {
	return json.Marshal(bookingWire{Booking: c.Booking, PersonID: c.Booking.PersonID, RequestID: c.Booking.RequestID})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *BookSeats) UnmarshalJSON(b []byte) error {
	var w bookingWire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	c.Booking = w.Booking
	c.Booking.PersonID, c.Booking.RequestID = w.PersonID, w.RequestID
	return nil
}

// check refuses a command that lacks what every handler needs, so that a
// foreign or broken entry becomes a dead letter before anything is touched.
func (c AdmitShow) check() error { return need("showId", string(c.ShowID)) }

func (c BookSeats) check() error {
	return errors.Join(need("bookingId", string(c.Booking.BookingID)), need("showId", string(c.Booking.ShowID)))
}

func (c CancelBooking) check() error { return need("bookingId", string(c.BookingID)) }

func (c MarkRead) check() error {
	return errors.Join(need(fieldRoom, string(c.RoomID)), need(fieldPerson, string(c.PersonID)))
}

func need(field, value string) error {
	if value == "" {
		return fmt.Errorf("%s is missing", field)
	}
	return nil
}

// Fields of a read mark, which stands flat on its stream.
const (
	fieldRoom   = "roomNo"
	fieldPerson = "publicUuid"
	fieldUpTo   = "upTo"
	fieldEpoch  = "epoch"
)

func (c MarkRead) fields() map[string]string {
	return map[string]string{
		fieldRoom:   string(c.RoomID),
		fieldPerson: string(c.PersonID),
		fieldUpTo:   strconv.FormatInt(c.UpTo, 10),
		fieldEpoch:  strconv.FormatInt(c.Epoch, 10),
	}
}

// readMark reads a flat entry. Without upTo the member has seen all there is.
func readMark(f fields) (MarkRead, error) {
	upTo, err1 := wholeNumber(f, fieldUpTo, math.MaxInt64)
	epoch, err2 := wholeNumber(f, fieldEpoch, 0)
	return MarkRead{domain.ReadMark{
		RoomID:   domain.RoomID(f.Get(fieldRoom)),
		PersonID: domain.PersonID(f.Get(fieldPerson)),
		UpTo:     upTo,
		Epoch:    epoch,
	}}, errors.Join(err1, err2)
}

func wholeNumber(f fields, name string, otherwise int64) (int64, error) {
	text, ok := f.find(name)
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", name)
	}
	return n, nil
}
