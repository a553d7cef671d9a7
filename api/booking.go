package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
)

// headerKey names the intent of a booking: with the same key a repeat is the same
// booking, whatever was lost on the way.
const headerKey = "Idempotency-Key"

// bookHold asks for the seats of a hold to be sold, and answers 202 once the
// command stands on its stream. Where it breaks off, the same request takes it up
// again: by its key, or by its hold, which stand for one intent each.
func (s *Server) bookHold(c echo.Context, who Identity) error {
	key, err := idempotencyKey(c.Request().Header.Values(headerKey))
	if err != nil {
		return err
	}
	var body struct {
		HoldID domain.HoldID `json:"holdId"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	show, err := s.shows.get(ctx, showParam(c))
	if err != nil {
		return err
	}
	if body.HoldID == "" {
		return invalid("holdId", "must not be empty")
	}
	intent := domain.BookingRequest{
		Booking: domain.Booking{
			BookingID: domain.BookingID(domain.NewID()), CommandID: domain.CommandID(domain.NewID()),
			ShowID: show.ID, PersonID: who.Person, RequestID: s.admissions.request(show.ID, who.Person), HoldID: body.HoldID,
			Status: domain.BookingPending,
		},
		Key: key, Fingerprint: fingerprint(show.ID, body.HoldID),
	}
	booking, err := s.book(ctx, show, intent)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/api/bookings/"+string(booking.BookingID))
	return c.JSON(http.StatusAccepted, viewBooking(booking))
}

// idempotencyKey refuses a header that came twice, also when a proxy made one line
// with a comma of it: two keys are two intents.
func idempotencyKey(values []string) (string, error) {
	switch {
	case len(values) == 0 || values[0] == "":
		return "", newProblem(http.StatusBadRequest, codeKeyRequired, "Idempotency-Key required",
			"Send an Idempotency-Key that is the same at every repeat of this request.")
	case len(values) > 1 || strings.Contains(values[0], ","):
		return "", newProblem(http.StatusBadRequest, codeKeyRepeated, "Idempotency-Key repeated", "Send one Idempotency-Key.")
	}
	key := values[0]
	visible := func(r rune) bool { return r > ' ' && r <= '~' }
	if len(key) > domain.MaxIdempotencyKeySize || strings.ContainsFunc(key, func(r rune) bool { return !visible(r) }) {
		return "", newProblem(http.StatusBadRequest, codeKeyRequired, "Idempotency-Key not usable",
			"The Idempotency-Key must be 1 to 255 visible ASCII characters.")
	}
	return key, nil
}

// fingerprint tells whether a key came back with another request.
func fingerprint(show domain.ShowID, hold domain.HoldID) string {
	sum := sha256.Sum256([]byte(string(show) + "\x00" + string(hold)))
	return hex.EncodeToString(sum[:])
}

// book records the intent and publishes its command.
func (s *Server) book(ctx context.Context, show domain.Show, intent domain.BookingRequest) (domain.Booking, error) {
	known, err := s.knownIntent(ctx, intent)
	if err == nil {
		return known, s.publishBooking(ctx, known)
	}
	if !errors.Is(err, domain.ErrBookingNotFound) {
		return domain.Booking{}, err
	}
	wanted := &intent.Booking
	begun, seats, err := s.deps.Steps.BeginBooking(ctx, show.ID, wanted.RequestID, wanted.HoldID, wanted.BookingID)
	if err != nil {
		return s.bookedBefore(ctx, intent, err)
	}
	wanted.BookingID, wanted.Seats = begun, seats
	if wanted.Price, err = show.Seating.PriceOf(seats); err != nil {
		return domain.Booking{}, err
	}
	booking, _, err := s.deps.Store.RecordBooking(ctx, intent)
	if err != nil { // should the row be there all the same, a repeat finds it by its key, and the sweeper by its age
		s.abortBooking(ctx, intent.Booking)
		return domain.Booking{}, err
	}
	return booking, s.publishBooking(ctx, booking)
}

// knownIntent returns the booking that was recorded under the key before.
func (s *Server) knownIntent(ctx context.Context, intent domain.BookingRequest) (domain.Booking, error) {
	known, err := s.deps.Store.BookingByKey(ctx, intent.Booking.PersonID, intent.Key)
	if err != nil {
		return domain.Booking{}, err
	}
	if known.Fingerprint != intent.Fingerprint {
		return domain.Booking{}, domain.ErrIdempotencyMismatch
	}
	return known.Booking, nil
}

// bookedBefore finds the booking that a hold has become. The hold is gone then, and
// its person's session over; a repeat under a new key must not tell them that there
// is nothing. Without such a booking, the reason that booking was refused stands.
func (s *Server) bookedBefore(ctx context.Context, intent domain.BookingRequest, refused error) (domain.Booking, error) {
	if !errors.Is(refused, domain.ErrHoldNotFound) && !errors.Is(refused, domain.ErrNotAdmitted) && !errors.Is(refused, domain.ErrClosed) {
		return domain.Booking{}, refused
	}
	booking, err := s.deps.Store.BookingByHold(ctx, intent.Booking.HoldID)
	switch {
	case errors.Is(err, domain.ErrBookingNotFound):
		return domain.Booking{}, refused
	case err != nil:
		return domain.Booking{}, err
	case booking.PersonID != intent.Booking.PersonID || booking.ShowID != intent.Booking.ShowID:
		return domain.Booking{}, refused
	}
	return booking, nil
}

// publishBooking puts the command of a pending booking on its stream. Repeats carry
// the same command id and have one effect.
func (s *Server) publishBooking(ctx context.Context, b domain.Booking) error {
	if b.Status != domain.BookingPending {
		return nil
	}
	if err := s.deps.Commands.BookSeats(ctx, b.CommandID, events.BookSeats{Booking: b}); err != nil {
		return err
	}
	if err := s.deps.Steps.BookingPublished(ctx, b.ShowID, b.HoldID, b.BookingID); err != nil {
		s.log.WarnContext(ctx, "booking was not noted as published", "show_id", b.ShowID, "booking_id", b.BookingID, "error", err)
	}
	return nil
}

// abortBooking gives a hold back that was begun for a booking that was not recorded.
func (s *Server) abortBooking(ctx context.Context, b domain.Booking) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUpTime)
	defer cancel()
	if err := s.deps.Steps.AbortBooking(ctx, b.ShowID, b.HoldID, b.BookingID); err != nil {
		s.log.WarnContext(ctx, "hold was not given back", "show_id", b.ShowID, "booking_id", b.BookingID, "error", err)
	}
}

func (s *Server) getBooking(c echo.Context, who Identity) error {
	booking, err := s.bookingOf(c, who)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewBooking(booking))
}

// bookingOf returns the booking of a path to its person or an operator; to others
// it does not exist.
func (s *Server) bookingOf(c echo.Context, who Identity) (domain.Booking, error) {
	id := c.Param("booking")
	if !plain(id, maxIDBytes) {
		return domain.Booking{}, domain.ErrBookingNotFound
	}
	booking, err := s.deps.Store.Booking(c.Request().Context(), domain.BookingID(id))
	if err != nil {
		return domain.Booking{}, err
	}
	if booking.PersonID != who.Person && !who.Operator() {
		return domain.Booking{}, domain.ErrBookingNotFound
	}
	return booking, nil
}

// bookingsView is a page of bookings, newest first.
type bookingsView struct {
	Bookings []domain.Booking  `json:"bookings"`
	Next     *domain.BookingID `json:"next"` // ?before= of the next page; null at the end
}

func (s *Server) listBookings(c echo.Context, who Identity) error {
	var q query
	limit := q.number(c, "limit", domain.DefaultBookingPage, 1, domain.MaxBookingPage)
	before := q.one(c, "before")
	if before != "" && !plain(before, maxIDBytes) {
		q.add("before", "must be the id of a booking")
	}
	if err := q.err(); err != nil {
		return err
	}
	bookings, err := s.deps.Store.Bookings(c.Request().Context(), who.Person, domain.BookingID(before), int(limit))
	if err != nil {
		return err
	}
	view := bookingsView{Bookings: orEmpty(bookings)}
	for i, b := range view.Bookings {
		view.Bookings[i] = viewBooking(b)
	}
	if len(bookings) == int(limit) {
		view.Next = &bookings[len(bookings)-1].BookingID
	}
	return c.JSON(http.StatusOK, view)
}

// cancelBooking asks for a confirmed booking to be taken back. That it was asked stands
// in SQL before the command is sent: a command that is lost is sent again by the workers.
func (s *Server) cancelBooking(c echo.Context, who Identity) error {
	booking, err := s.bookingOf(c, who)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if booking, err = s.deps.Store.AskCancel(ctx, booking.BookingID); err != nil {
		return err
	}
	if booking.Status == domain.BookingConfirmed {
		command := events.CancelBooking{BookingID: booking.BookingID, ShowID: booking.ShowID}
		if err := s.deps.Commands.CancelBooking(ctx, booking.CancelCommand(), command); err != nil {
			return err
		}
		s.log.InfoContext(ctx, "booking cancellation asked", "show_id", booking.ShowID, "booking_id", booking.BookingID, "by", who.Person)
	}
	return c.JSON(http.StatusAccepted, viewBooking(booking))
}

// viewBooking puts a booking's times in UTC and its absent lists as empty.
func viewBooking(b domain.Booking) domain.Booking {
	b.Seats = orEmpty(b.Seats)
	b.CreatedAt, b.DecidedAt, b.CancelledAt = b.CreatedAt.UTC(), utc(b.DecidedAt), utc(b.CancelledAt)
	return b
}
