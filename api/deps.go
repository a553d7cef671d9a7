package api

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
)

// Deps are the parts that the edge speaks to. Who made them closes them, after
// Serve has returned.
type Deps struct {
	Steps       Steps
	Store       Store
	Commands    Commands
	Bus         Bus
	DeadLetters DeadLetters
	// Ready are the checks behind /readyz by name, such as a ping of Redis and
	// of SQL. The bus and draining are judged without one.
	Ready   map[string]func(context.Context) error
	Web     fs.FS // the pages; nil serves none
	Log     *slog.Logger
	Metrics *prometheus.Registry // what /metrics shows; the edge adds its own
}

// Steps are the atomic steps in Redis; package lua has them.
type Steps interface {
	Configure(ctx context.Context, show domain.Show) error
	Restore(ctx context.Context, show domain.Show, sold []domain.SoldSeat, pending ...domain.Booking) (restored bool, err error)
	Stats(ctx context.Context, shows ...domain.ShowID) ([]domain.Stats, error)

	Join(ctx context.Context, join lua.JoinRequest) (place domain.Place, created bool, err error)
	Place(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.Place, error)
	Places(ctx context.Context, keys []lua.PlaceKey) ([]domain.Place, []bool, error)
	Touch(ctx context.Context, show domain.ShowID, requests []domain.RequestID) error
	Claim(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.Place, error)
	Leave(ctx context.Context, show domain.ShowID, request domain.RequestID) (lua.Departure, error)
	Revocations(ctx context.Context, show domain.ShowID, since lua.RevocationCursor, limit int) (ended []lua.Revocation, next lua.RevocationCursor, more bool, err error)
	Knots(ctx context.Context, show domain.ShowID) (domain.RankKnots, domain.Stats, error)
	Extend(ctx context.Context, show domain.ShowID, request domain.RequestID) (place domain.Place, extended bool, err error)
	Explain(ctx context.Context, show domain.ShowID, request domain.RequestID) (domain.PlaceFacts, error)
	Admit(ctx context.Context, show domain.ShowID, opts lua.AdmitOptions) (lua.AdmitResult, error)
	Remove(ctx context.Context, show domain.ShowID, request domain.RequestID) (lua.Departure, error)
	Reset(ctx context.Context, show domain.ShowID, epoch int64) (ended int64, done bool, err error)
	DrawRequests(ctx context.Context, show domain.ShowID) ([]domain.RequestID, domain.Stats, error)

	Hold(ctx context.Context, hold lua.HoldRequest) (domain.Hold, error)
	SwapHold(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID, seats []domain.SeatID) (domain.Hold, error)
	ExtendHold(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID) (domain.Hold, error)
	ReleaseHold(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID) (released []domain.SeatID, version int64, err error)
	Seats(ctx context.Context, show domain.ShowID, since int64, viewer domain.RequestID) (domain.SeatChanges, error)
	Holds(ctx context.Context, show domain.ShowID, request domain.RequestID) ([]domain.Hold, error)

	BeginBooking(ctx context.Context, show domain.ShowID, request domain.RequestID, hold domain.HoldID, booking domain.BookingID) (begun domain.BookingID, seats []domain.SeatID, err error)
	BookingPublished(ctx context.Context, show domain.ShowID, hold domain.HoldID, booking domain.BookingID) error
	AbortBooking(ctx context.Context, show domain.ShowID, hold domain.HoldID, booking domain.BookingID) error

	IssueTicket(ctx context.Context, ticket string, payload []byte, ttl time.Duration) error
	RedeemTicket(ctx context.Context, ticket string) (payload []byte, found bool, err error)
	NoteRead(ctx context.Context, mark domain.ReadMark) error
	NotedReads(ctx context.Context, person domain.PersonID, rooms []domain.RoomID) (map[domain.RoomID]domain.ReadMark, error)
}

// Store is SQL, the last word on shows, bookings and chat; package store has it.
type Store interface {
	CreateShow(ctx context.Context, show domain.Show) error
	Show(ctx context.Context, id domain.ShowID) (domain.Show, error)
	Shows(ctx context.Context) ([]domain.Show, error)

	ChangeShow(ctx context.Context, action domain.OperatorAction, change func(*domain.Show) error) (domain.Show, error)
	ResetShow(ctx context.Context, action domain.OperatorAction, change func(*domain.Show) error) (domain.Show, error)
	BeginAction(ctx context.Context, action domain.OperatorAction) error
	EndAction(ctx context.Context, id, outcome string) error
	UndoneActions(ctx context.Context, action string, olderThan time.Duration, limit int) ([]domain.OperatorAction, error)
	Actions(ctx context.Context, show domain.ShowID, before string, limit int) ([]domain.OperatorAction, error)
	ActionsOfKind(ctx context.Context, kinds []string, before string, limit int) ([]domain.OperatorAction, error)

	RecordBooking(ctx context.Context, request domain.BookingRequest) (booking domain.Booking, created bool, err error)
	BookingByKey(ctx context.Context, person domain.PersonID, key string) (domain.BookingRequest, error)
	BookingByHold(ctx context.Context, hold domain.HoldID) (domain.Booking, error)
	Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error)
	AskCancel(ctx context.Context, id domain.BookingID) (domain.Booking, error)
	Bookings(ctx context.Context, person domain.PersonID, before domain.BookingID, limit int) ([]domain.Booking, error)

	CreateRoom(ctx context.Context, room domain.ChatRoom, maker domain.PersonID, name string) (domain.ChatRoom, error)
	Rooms(ctx context.Context, person domain.PersonID) ([]domain.ChatRoom, error)
	ShowRooms(ctx context.Context, show domain.ShowID) ([]domain.ChatRoom, error)
	Room(ctx context.Context, room domain.RoomID, person domain.PersonID) (domain.ChatRoom, error)
	AddMember(ctx context.Context, room domain.RoomID, person domain.PersonID, name string) error
	RemoveMember(ctx context.Context, room domain.RoomID, person domain.PersonID) error
	AddMessage(ctx context.Context, message domain.ChatMessage) (domain.ChatMessage, error)
	Messages(ctx context.Context, room domain.RoomID, before int64, limit int) ([]domain.ChatMessage, error)
	DeleteMessage(ctx context.Context, room domain.RoomID, seq int64, by domain.PersonID, operator bool) (domain.ChatMessage, error)
	MarkUnread(ctx context.Context, room domain.RoomID, person domain.PersonID, from int64) (domain.ReadPointer, error)
	Readers(ctx context.Context, room domain.RoomID, seq int64) ([]domain.ReadPointer, error)
}

// Commands puts requests to do something on the streams; package events has it.
type Commands interface {
	AdmitShow(ctx context.Context, command events.AdmitShow) error
	BookSeats(ctx context.Context, id domain.CommandID, command events.BookSeats) error
	CancelBooking(ctx context.Context, id domain.CommandID, command events.CancelBooking) error
	MarkRead(ctx context.Context, command events.MarkRead) error
}

// Bus tells every API process what happened; package events has it.
type Bus interface {
	Publish(ctx context.Context, notifications ...events.Notification) error
	Healthy() bool
}

// DeadLetters are the commands that were given up on; package events has them.
type DeadLetters interface {
	List(ctx context.Context, stream string, limit int) ([]events.DeadLetter, error)
	Get(ctx context.Context, stream, id string) (events.DeadLetter, error)
	Requeue(ctx context.Context, stream, id string) error
	Drop(ctx context.Context, stream, id string) error
}
