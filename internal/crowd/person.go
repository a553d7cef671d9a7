package crowd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"foyer/client"
	"foyer/domain"
)

// Bounds of one visit.
const (
	// tries bounds how often a person tries to get seats before giving up.
	tries = 4
	// decideWithin bounds the wait for a booking to be decided.
	decideWithin = time.Minute
	// hearWithin is how long a person relies on being told about a booking, before
	// asking: what was to tell them may be lost.
	hearWithin = 20 * time.Second
)

// person is somebody's one visit. What they will do was dealt when they came.
type person struct {
	crowd  *crowd
	id     domain.PersonID
	name   string
	rand   *rand.Rand
	client *client.Client

	polls, joinsByHTTP, chats, picks             bool
	impatient, silent, lapses, releases, cancels bool
	wish                                         float64 // how much of the allowed seats; (0,1]
}

func newPerson(c *crowd, id domain.PersonID, r *rand.Rand) *person {
	dealt := func(share float64) bool { return r.Float64() < share }
	return &person{
		crowd: c, id: id, rand: r, name: names[r.IntN(len(names))],
		polls: dealt(c.PollOnly), joinsByHTTP: dealt(0.5), chats: dealt(c.Chat), picks: dealt(c.Explicit),
		impatient: dealt(c.Leave), silent: dealt(0.5), lapses: dealt(c.Lapse), releases: dealt(c.Release), cancels: dealt(c.Cancel),
		wish: 1 - r.Float64(),
	}
}

// visit is a person's whole time at the show. Its error is nil also when they went
// home without seats by their own choice.
func (p *person) visit(ctx context.Context) error {
	var token string
	err := client.Retry(ctx, attempts, func(ctx context.Context) (err error) {
		token, err = p.crowd.client.DevToken(ctx, p.id, p.name)
		return err
	})
	if err != nil {
		return fmt.Errorf("dev token: %w", err)
	}
	p.client = p.crowd.client.As(token)
	way, done := p.wayIn()
	defer done()
	if err := way.join(ctx); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	p.crowd.counts.joined.Add(1)
	if p.chats {
		p.talk(ctx)
	}
	if in, err := p.enter(ctx, way); !in {
		return err
	}
	return p.shop(ctx, way)
}

// wayIn opens a door, a socket if that is the person's way and one is free. done
// closes it.
func (p *person) wayIn() (way door, done func()) {
	polling := &pollingDoor{p.client, p.crowd.Show}
	if p.polls {
		return polling, polling.close
	}
	select {
	case p.crowd.sockets <- struct{}{}:
	default:
		return polling, polling.close
	}
	way = newSocketDoor(p.client, p.crowd.Show, p.joinsByHTTP)
	return way, func() {
		way.close()
		<-p.crowd.sockets
	}
}

// enter waits for the turn, as long as the person's patience lasts, and takes it.
func (p *person) enter(ctx context.Context, way door) (in bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.impatient {
		waiting, cancel = context.WithTimeout(ctx, p.think()*time.Duration(1+p.rand.IntN(5)))
		defer cancel()
	}
	err = way.enter(waiting)
	switch {
	case err == nil:
		p.crowd.counts.entered.Add(1)
		return true, nil
	case ctx.Err() == nil && waiting.Err() != nil:
		return false, p.goAway(ctx)
	}
	return false, fmt.Errorf("enter: %w", err)
}

// goAway ends a visit before its aim, with a word or without.
func (p *person) goAway(ctx context.Context) error {
	if p.silent {
		return p.vanish()
	}
	return p.leave(ctx)
}

// vanish is to just stay away: seats and slot come back when their time is over.
func (p *person) vanish() error {
	p.crowd.counts.vanished.Add(1)
	return nil
}

func (p *person) leave(ctx context.Context) error {
	err := client.Retry(ctx, attempts, func(ctx context.Context) error { return p.client.Leave(ctx, p.crowd.Show) })
	if err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	p.crowd.counts.left.Add(1)
	return nil
}

// shop is the time inside: look, hold, and book or think better of it.
func (p *person) shop(ctx context.Context, way door) error {
	if !p.pause(ctx) {
		return ctx.Err()
	}
	var show client.Show
	err := client.Retry(ctx, attempts, func(ctx context.Context) (err error) {
		show, err = p.client.Show(ctx, p.crowd.Show)
		return err
	})
	if err != nil {
		return fmt.Errorf("show: %w", err)
	}
	if show.Capacity == 0 {
		return p.leave(ctx) // a waiting room only: there is nothing to buy
	}
	hold, err := p.hold(ctx, show)
	if noSeats(err) {
		return p.leave(ctx)
	}
	if err != nil {
		return err
	}
	if !p.pause(ctx) {
		return ctx.Err()
	}
	kept := float64(show.Capacity-show.Sold) <= p.crowd.KeepFree*float64(show.Capacity)
	switch {
	case p.lapses:
		return p.vanish()
	case p.releases || kept:
		if err := p.client.ReleaseHold(ctx, p.crowd.Show, hold.HoldID); err != nil {
			return fmt.Errorf("release: %w", err)
		}
		p.crowd.counts.released.Add(1)
		return p.leave(ctx)
	}
	return p.book(ctx, way, hold)
}

// noSeats reports whether a hold was refused because others have the seats.
func noSeats(err error) bool {
	return client.HasCode(err, client.CodeSeatUnavailable) || client.HasCode(err, client.CodeNoBlock)
}

// hold gets seats, if need be fewer each time somebody else was faster.
func (p *person) hold(ctx context.Context, show client.Show) (domain.Hold, error) {
	count := max(1, int(p.wish*float64(show.Seating.SeatLimit)+0.5))
	for try := 1; ; try++ {
		hold, err := p.tryHold(ctx, show, count)
		if err == nil {
			p.crowd.counts.held.Add(1)
			return hold, nil
		}
		if noSeats(err) {
			p.crowd.counts.conflicts.Add(1)
		}
		if !noSeats(err) || try == tries || !p.pause(ctx) {
			return domain.Hold{}, fmt.Errorf("hold: %w", err)
		}
		count = max(1, count-1)
	}
}

func (p *person) tryHold(ctx context.Context, show client.Show, count int) (domain.Hold, error) {
	if !p.picks {
		return p.client.HoldBest(ctx, show.ID, count, "")
	}
	seats, err := p.client.Seats(ctx, show.ID, 0)
	if err != nil {
		return domain.Hold{}, err
	}
	taken := make(map[domain.SeatID]bool, len(seats.Seats))
	for _, seat := range seats.Seats {
		taken[seat.ID] = seat.State != domain.SeatFree
	}
	chosen := pick(show.Seating.Sections, taken, count, p.rand)
	if len(chosen) == 0 {
		return p.client.HoldBest(ctx, show.ID, count, "")
	}
	if !p.pause(ctx) {
		return domain.Hold{}, ctx.Err()
	}
	return p.client.HoldSeats(ctx, show.ID, chosen)
}

// pick chooses free neighbours in the first of some random rows that has them.
func pick(sections []domain.Section, taken map[domain.SeatID]bool, count int, r *rand.Rand) []domain.SeatID {
	const rows = 20
	if len(sections) == 0 {
		return nil
	}
	for range rows {
		section := sections[r.IntN(len(sections))]
		row, start := 1+r.IntN(section.Rows), r.IntN(section.SeatsPerRow)
		var run []domain.SeatID
		for i := range section.SeatsPerRow {
			number := 1 + (start+i)%section.SeatsPerRow
			seat := domain.NewSeatID(section.Name, row, number)
			if number == 1 || taken[seat] {
				run = nil // the row's end is no neighbour of its beginning
			}
			if taken[seat] {
				continue
			}
			if run = append(run, seat); len(run) == count {
				return run
			}
		}
	}
	return nil
}

// book turns the hold into a booking and waits to hear.
func (p *person) book(ctx context.Context, way door, hold domain.Hold) error {
	key := domain.NewID()
	var booking domain.Booking
	err := client.Retry(ctx, attempts, func(ctx context.Context) (err error) {
		booking, err = p.client.Book(ctx, p.crowd.Show, hold.HoldID, key)
		return err
	})
	if err != nil {
		return fmt.Errorf("book: %w", err)
	}
	status, err := p.decided(ctx, way, booking.BookingID)
	if err != nil {
		return fmt.Errorf("booking: %w", err)
	}
	if status != domain.BookingConfirmed {
		p.crowd.counts.rejected.Add(1)
		return p.leave(ctx)
	}
	p.crowd.counts.booked.Add(1)
	if p.cancels {
		return p.cancel(ctx, booking.BookingID)
	}
	return nil
}

// decided hears what became of a booking; who hears nothing asks.
func (p *person) decided(ctx context.Context, way door, booking domain.BookingID) (domain.BookingStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, decideWithin)
	defer cancel()
	hearing, stop := context.WithTimeout(ctx, hearWithin)
	defer stop()
	status, err := way.decided(hearing, booking)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return status, err
	}
	b, err := p.client.WaitBooking(ctx, booking)
	return b.Status, err
}

// cancel gives the seats back after a while, as people who cannot come do.
func (p *person) cancel(ctx context.Context, booking domain.BookingID) error {
	if !rest(ctx, around(2*p.crowd.Return, p.rand)) {
		return ctx.Err()
	}
	err := client.Retry(ctx, attempts, func(ctx context.Context) error {
		_, err := p.client.CancelBooking(ctx, booking)
		return err
	})
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, decideWithin)
	defer stop()
	if _, err := p.client.WaitBooking(ctx, booking, domain.BookingConfirmed); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	p.crowd.counts.cancelled.Add(1)
	return nil
}

func (p *person) think() time.Duration { return around(p.crowd.Think, p.rand) }

func (p *person) pause(ctx context.Context) bool { return rest(ctx, p.think()) }
