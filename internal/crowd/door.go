package crowd

import (
	"context"
	"errors"
	"strings"
	"sync"

	"foyer/client"
	"foyer/domain"
)

// door is a person's way in: by polling or over a socket.
type door interface {
	// join takes a place at the show.
	join(ctx context.Context) error
	// enter waits for the person's turn and claims it. It fails with *overError
	// when the place is over before.
	enter(ctx context.Context) error
	// decided waits until a booking is no longer pending.
	decided(ctx context.Context, booking domain.BookingID) (domain.BookingStatus, error)
	// close shuts the door from outside: the place is kept.
	close()
}

// overError is returned when a place ended before the person got in.
type overError struct{ status domain.Status }

func (e *overError) Error() string { return "place is over: " + string(e.status) }

func (e *overError) soldOutOrClosed() bool {
	return e.status == domain.StatusSoldOut || e.status == domain.StatusClosed
}

// pollingDoor asks again and again, at the pace that the server names.
type pollingDoor struct {
	client *client.Client
	show   domain.ShowID
}

func (d *pollingDoor) join(ctx context.Context) error {
	return client.Retry(ctx, attempts, func(ctx context.Context) error {
		_, _, err := d.client.Join(ctx, d.show)
		return err
	})
}

func (d *pollingDoor) enter(ctx context.Context) error {
	place, err := d.client.WaitAdmission(ctx, d.show)
	switch {
	case err != nil:
		return err
	case place.Final():
		return &overError{place.Status}
	case place.Status == domain.StatusActive:
		return nil
	}
	return client.Retry(ctx, attempts, func(ctx context.Context) error {
		_, err := d.client.Claim(ctx, d.show)
		return err
	})
}

func (d *pollingDoor) decided(ctx context.Context, booking domain.BookingID) (domain.BookingStatus, error) {
	b, err := d.client.WaitBooking(ctx, booking)
	return b.Status, err
}

func (d *pollingDoor) close() {}

// socketDoor hears over a socket what happens. What it hears is kept by a goroutine
// that reads until the session ends, so that the person may think meanwhile.
type socketDoor struct {
	client   *client.Client
	show     domain.ShowID
	byHTTP   bool // joins over HTTP before the socket opens
	live     *client.Live
	listener sync.WaitGroup

	mu      sync.Mutex
	status  domain.Status
	refusal error // of a join or claim
	booked  map[domain.BookingID]domain.BookingStatus
	news    chan struct{} // one pulse when any of the above changed
}

func newSocketDoor(c *client.Client, show domain.ShowID, byHTTP bool) *socketDoor {
	return &socketDoor{
		client: c, show: show, byHTTP: byHTTP,
		booked: map[domain.BookingID]domain.BookingStatus{}, news: make(chan struct{}, 1),
	}
}

func (d *socketDoor) join(ctx context.Context) error {
	if d.byHTTP {
		if err := (&pollingDoor{d.client, d.show}).join(ctx); err != nil {
			return err
		}
	}
	d.live = d.client.Live(ctx, client.LiveOptions{})
	d.listener.Go(d.listen)
	if d.byHTTP {
		if err := d.live.Follow(ctx, d.show); err != nil {
			return err
		}
	} else if err := d.live.Join(ctx, d.show); err != nil {
		return err
	}
	return d.wait(ctx, func() bool { return d.status != "" })
}

func (d *socketDoor) enter(ctx context.Context) error {
	err := d.wait(ctx, func() bool {
		return d.status != domain.StatusPrequeue && d.status != domain.StatusWaiting
	})
	if err != nil {
		return err
	}
	if d.now() == domain.StatusAdmitted {
		if err := d.live.Claim(ctx, d.show); err != nil {
			return err
		}
		if err := d.wait(ctx, func() bool { return d.status != domain.StatusAdmitted }); err != nil {
			return err
		}
	}
	if status := d.now(); status != domain.StatusActive {
		return &overError{status}
	}
	return d.live.Subscribe(ctx, "/topic/seats/show/"+string(d.show))
}

func (d *socketDoor) decided(ctx context.Context, booking domain.BookingID) (domain.BookingStatus, error) {
	err := d.wait(ctx, func() bool {
		status, ok := d.booked[booking]
		return ok && status != domain.BookingPending
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.booked[booking], err
}

func (d *socketDoor) close() {
	if d.live != nil {
		d.live.Close()
	}
	d.listener.Wait()
}

func (d *socketDoor) now() domain.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// errSocketEnded is returned when the server closed the session without saying why.
var errSocketEnded = errors.New("socket session ended")

// wait returns when ok, which is called under the lock, when the server refused
// something, or when the session ended.
func (d *socketDoor) wait(ctx context.Context, ok func() bool) error {
	for {
		d.mu.Lock()
		satisfied, refusal := ok(), d.refusal
		d.refusal = nil
		d.mu.Unlock()
		if satisfied {
			return nil
		}
		if refusal != nil {
			return refusal
		}
		select {
		case <-d.news:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.live.Done():
			if err := d.live.Err(); err != nil {
				return err
			}
			return errSocketEnded
		}
	}
}

func (d *socketDoor) listen() {
	for frame := range d.live.Frames() {
		d.hear(frame)
		select {
		case d.news <- struct{}{}:
		default:
		}
	}
}

func (d *socketDoor) hear(f client.Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case f.Admission != nil && f.ShowID == d.show:
		d.status = f.Admission.Status
	case f.Booking != nil:
		d.booked[f.Booking.BookingID] = f.Booking.Status
	case f.Error != nil && (strings.HasPrefix(f.Error.Ref, "join-") || strings.HasPrefix(f.Error.Ref, "claim-")):
		d.refusal = f.Error.Problem()
	}
}
