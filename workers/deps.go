package workers

import (
	"context"
	"time"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
	"foyer/store"
)

// Steps are the atomic steps in Redis that workers take. *lua.Steps has them.
type Steps interface {
	Stats(ctx context.Context, shows ...domain.ShowID) ([]domain.Stats, error)
	Admit(ctx context.Context, show domain.ShowID, opts lua.AdmitOptions) (lua.AdmitResult, error)
	DueTick(ctx context.Context, show domain.ShowID, every time.Duration) (bool, error)
	NextLapse(ctx context.Context, show domain.ShowID) (in time.Duration, ok bool, err error)
	Knots(ctx context.Context, show domain.ShowID) (domain.RankKnots, domain.Stats, error)
	SweepHolds(ctx context.Context, show domain.ShowID, limit int) (freed []domain.SeatID, version int64, more bool, err error)
	AbortBooking(ctx context.Context, show domain.ShowID, hold domain.HoldID, booking domain.BookingID) error
	SettleBookings(ctx context.Context, endings []lua.Ending) ([]lua.Settlement, []error)
	StuckBookings(ctx context.Context, show domain.ShowID, olderThan time.Duration, limit int) ([]lua.StuckBooking, error)
}

// Store is the SQL that workers need. *store.DB has it.
type Store interface {
	Shows(ctx context.Context) ([]domain.Show, error)
	Book(ctx context.Context, bookings []domain.Booking) ([]store.BookingOutcome, error)
	Booking(ctx context.Context, id domain.BookingID) (domain.Booking, error)
	CancelBooking(ctx context.Context, command domain.CommandID, id domain.BookingID) (domain.Booking, error)
	FailBooking(ctx context.Context, id domain.BookingID, reason string) (domain.Booking, error)
	PendingBookings(ctx context.Context, olderThan time.Duration, limit int) ([]domain.Booking, error)
	Cancellations(ctx context.Context, olderThan time.Duration, limit int) ([]domain.Booking, error)
	WithdrawCancel(ctx context.Context, id domain.BookingID) (domain.Booking, error)
	ForgetHandled(ctx context.Context, olderThan time.Duration, limit int) (int, error)
	MarkRead(ctx context.Context, marks []domain.ReadMark) ([]domain.ReadPointer, error)
}

// Commands publishes commands that follow from a worker's step. *events.Commands does.
type Commands interface {
	AdmitShow(ctx context.Context, command events.AdmitShow) error
	BookSeats(ctx context.Context, id domain.CommandID, command events.BookSeats) error
	CancelBooking(ctx context.Context, id domain.CommandID, command events.CancelBooking) error
}

// Notifier tells every API process what happened. *events.Bus does.
type Notifier interface {
	Publish(ctx context.Context, notifications ...events.Notification) error
}
