package foyer_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// Whoever is admitted by any worker hears it on whichever process holds the
// socket, every time: half of the people join over HTTP on another process than
// the one that holds their socket.
func TestE2EAdmissionIsHeardOnEveryProcess(t *testing.T) {
	d := deploy(t, 3, 2)
	const people, slots = 60, 4
	show := d.putOnSale(t, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive = slots
		s.Queue = &queue
	})
	heard := make([]error, people)
	together(people, func(i int) {
		c := d.as(t, i, fmt.Sprintf("person-%d", i))
		live := c.Live(t.Context(), client.LiveOptions{})
		defer live.Close()
		heard[i] = func() error {
			if i%2 == 0 {
				if err := live.Join(t.Context(), show); err != nil {
					return err
				}
			} else if _, _, err := d.as(t, i+1, fmt.Sprintf("person-%d", i)).Join(t.Context(), show); err != nil {
				return err
			}
			if err := hear(t, live, domain.StatusAdmitted); err != nil {
				return err
			}
			return d.as(t, i+2, fmt.Sprintf("person-%d", i)).Leave(t.Context(), show)
		}()
	})
	require.NoError(t, errors.Join(heard...))
	stats, err := d.as(t, 0, "operator", "operator").OperatorShow(t.Context(), show)
	require.NoError(t, err)
	require.Zero(t, stats.Waiting+stats.Active, "all have been in and have left")
	for _, p := range append(d.apis, d.workers...) {
		p.terminate(t)
	}
}

// hear reads frames until the person's status is the one given. Frames that
// polling made do not count: it is the socket that must tell.
func hear(t *testing.T, live *client.Live, status domain.Status) error {
	deadline := time.After(60 * time.Second)
	for {
		select {
		case frame, open := <-live.Frames():
			if !open {
				return fmt.Errorf("socket ended: %w", live.Err())
			}
			if frame.Polled {
				return errors.New("the client fell back to polling")
			}
			if frame.Event == client.EventAdmission && frame.Admission.Status == status {
				return nil
			}
			if frame.Event == client.EventHello && slices.ContainsFunc(frame.Hello.Places, func(p client.Place) bool { return p.Status == status }) {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("%s was not heard", status)
		case <-t.Context().Done():
			return t.Context().Err()
		}
	}
}

// T16: check-then-add let more in than there is room for.
func TestE2EFourHundredAtOnce(t *testing.T) {
	d := deploy(t, 3, 2)
	const people, slots = 400, 50
	show := d.putOnSale(t, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive = slots
		s.Queue = &queue
	})
	places, errs := make([]client.Place, people), make([]error, people)
	together(people, func(i int) {
		places[i], _, errs[i] = d.as(t, i, fmt.Sprintf("person-%d", i)).Join(t.Context(), show)
	})
	require.NoError(t, errors.Join(errs...))
	inside, ranks := 0, map[int64]bool{}
	for i := range people {
		again, created, err := d.as(t, i+1, fmt.Sprintf("person-%d", i)).Join(t.Context(), show)
		require.NoError(t, err)
		require.False(t, created, "joining again is the same place")
		require.Equal(t, places[i].RequestID, again.RequestID)
		require.Equal(t, places[i].Rank, again.Rank, "nobody left, so nobody moved")
		if again.In() {
			inside++
			continue
		}
		require.NotNil(t, again.Rank)
		ranks[*again.Rank] = true
	}
	require.Equal(t, slots, inside)
	require.Len(t, ranks, people-slots, "every waiter has a rank of their own")
	for rank := range int64(people - slots) {
		require.True(t, ranks[rank+1], "rank %d is somebody's", rank+1)
	}
}

// A1, A7, A8: many buyers on several processes fight for few seats.
func TestE2EEightyBuyersTwentySeats(t *testing.T) {
	d := deploy(t, 2, 2)
	const buyers, seats = 80, 20
	show := d.putOnSale(t, func(s *client.NewShow) { s.Seating = seating(2, seats/2) })
	confirmed := make([]bool, buyers)
	var mu sync.Mutex
	var refused []error
	together(buyers, func(i int) {
		c := d.as(t, i, fmt.Sprintf("buyer-%d", i))
		booking, err := buyOne(t, c, show, i)
		mu.Lock()
		defer mu.Unlock()
		confirmed[i] = err == nil && booking.Status == domain.BookingConfirmed
		if err != nil && !client.HasCode(err, "NO_BLOCK") && !client.HasCode(err, "SOLD_OUT") && !client.HasCode(err, "SEAT_UNAVAILABLE") {
			refused = append(refused, err)
		}
	})
	require.NoError(t, errors.Join(refused...), "a loser is told so in a word that the contract knows")
	sold := 0
	for _, yes := range confirmed {
		if yes {
			sold++
		}
	}
	require.Equal(t, seats, sold)
	d.requireConsistent(t, show, seats)
}

func seating(rows, seatsPerRow int) *domain.Seating {
	s := domain.DefaultSeating()
	s.Sections = []domain.Section{{Name: "A", Rows: rows, SeatsPerRow: seatsPerRow, Price: 2500}}
	return &s
}

// buyOne walks the whole way to one seat.
func buyOne(t *testing.T, c *client.Client, show domain.ShowID, intent int) (domain.Booking, error) {
	ctx := t.Context()
	if err := enter(ctx, c, show); err != nil {
		return domain.Booking{}, fmt.Errorf("enter: %w", err)
	}
	hold, err := c.HoldBest(ctx, show, 1, "")
	if err != nil {
		return domain.Booking{}, err
	}
	booking, err := c.Book(ctx, show, hold.HoldID, fmt.Sprintf("intent-%d", intent))
	if err != nil {
		return domain.Booking{}, fmt.Errorf("book: %w", err)
	}
	return c.WaitBooking(ctx, booking.BookingID)
}

// requireConsistent compares SQL with what Redis tells: as many seats sold as
// wanted, each once, and both agree.
func (d *deployment) requireConsistent(t *testing.T, show domain.ShowID, sold int) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), d.dbURL)
	require.NoError(t, err)
	defer connection.Close(t.Context())
	rows, err := connection.Query(t.Context(), `SELECT seat_id FROM booking_seats WHERE show_id = $1`, string(show))
	require.NoError(t, err)
	inSQL, err := pgx.CollectRows(rows, pgx.RowTo[domain.SeatID])
	require.NoError(t, err)
	slices.Sort(inSQL)
	require.Len(t, inSQL, sold)
	require.Len(t, slices.Compact(slices.Clone(inSQL)), sold, "no seat twice")

	// Who is told "confirmed" by SQL may be told before Redis is; the worker in between
	// may even have died.
	testenv.Eventually(t, settledWithin, "Redis has sold what SQL has, and nothing is left half way", func() bool {
		seats, err := d.as(t, 0, "reader").Seats(t.Context(), show, 0)
		require.NoError(t, err)
		var inRedis, held []domain.SeatID
		for _, seat := range seats.Seats {
			switch seat.State {
			case domain.SeatSold:
				inRedis = append(inRedis, seat.ID)
			case domain.SeatHeld:
				held = append(held, seat.ID)
			}
		}
		slices.Sort(inRedis)
		return len(held) == 0 && slices.Equal(inSQL, inRedis)
	})
	told, err := d.as(t, 1, "reader").Show(t.Context(), show)
	require.NoError(t, err)
	require.EqualValues(t, sold, told.Sold)
}

// H1: a worker was killed between reading and acknowledging, and the booking was
// lost for ever. Here workers are killed again and again while people book.
func TestE2EKilledWorkersLoseNothing(t *testing.T) {
	d := deployOn(t, servers{redis: testenv.StartRedis(t)}, 2, 2)
	const buyers = 60
	show := d.putOnSale(t, func(s *client.NewShow) { s.Seating = seating(10, 10) })
	bookings, errs := make([]domain.Booking, buyers), make([]error, buyers)
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(buyers, func(i int) {
			bookings[i], errs[i] = buyOne(t, d.as(t, i, fmt.Sprintf("buyer-%d", i)), show, i)
		})
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
		default:
			d.workers[n%len(d.workers)].kill()
			d.workers[n%len(d.workers)] = d.startWorker(t)
			continue
		}
		break
	}
	require.NoError(t, errors.Join(errs...))
	for _, booking := range bookings {
		require.Equal(t, domain.BookingConfirmed, booking.Status)
	}
	d.requireConsistent(t, show, buyers)
}

// Redis is the last word on who waits, SQL on what is sold. When Redis loses
// everything in mid-sale, what was sold stays sold and people can join again.
func TestE2ERedisLosesEverything(t *testing.T) {
	d := deploy(t, 2, 1)
	show := d.putOnSale(t, func(s *client.NewShow) { s.Seating = seating(2, 5) })
	first, err := buyOne(t, d.as(t, 0, "early"), show, 0)
	require.NoError(t, err)
	require.Equal(t, domain.BookingConfirmed, first.Status)
	before, _, err := d.as(t, 0, "waiter").Join(t.Context(), show)
	require.NoError(t, err)

	require.NoError(t, d.redis.Client(t).FlushAll(t.Context()).Err())

	after, created, err := d.as(t, 1, "waiter").Join(t.Context(), show)
	require.NoError(t, err)
	require.True(t, created, "places are gone with Redis")
	require.Greater(t, after.Epoch, before.Epoch, "the epoch says that the queue was restarted")
	d.requireConsistent(t, show, 1)
	_, err = d.as(t, 0, "late").Claim(t.Context(), show)
	require.Error(t, err)
	require.NoError(t, enter(t.Context(), d.as(t, 0, "late"), show))
	_, err = d.as(t, 0, "late").HoldSeats(t.Context(), show, first.Seats)
	require.True(t, client.HasCode(err, "SEAT_UNAVAILABLE"), "%v", err)
	var second domain.Booking
	testenv.Eventually(t, 30*time.Second, "a booking after the loss", func() bool {
		second, err = buyOne(t, d.as(t, 1, "late"), show, 1)
		return err == nil
	})
	require.Equal(t, domain.BookingConfirmed, second.Status)
	d.requireConsistent(t, show, 2)
}
