package crowd

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// What the crowd and the client do at an office of the tests' own proves little
// unless the program answers as that does. These tests run `foyer dev` as people
// do, with everything embedded.
func TestAtTheRealThing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "foyer")
	build := exec.Command("go", "build", "-o", path, "foyer/cmd/foyer")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Run("crowd", func(t *testing.T) { t.Parallel(); crowdAtTheRealThing(t, path) })
	t.Run("client", func(t *testing.T) { t.Parallel(); clientAtTheRealThing(t, path) })
}

// startFoyer returns the address of a server of the test's own, and stop, which
// ends it as a deploy would.
func startFoyer(t *testing.T, path string) (url string, stop func()) {
	t.Helper()
	var log strings.Builder
	server := exec.Command(path, "dev", "--http-addr", "127.0.0.1:0", "--data-dir", t.TempDir())
	server.Stderr = &log
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	stop = sync.OnceFunc(func() {
		assert.NoError(t, server.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, out)
		assert.NoError(t, server.Wait(), "a stop by signal is a success")
		if t.Failed() {
			t.Log(log.String())
		}
	})
	t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "foyer: listening on "); ok {
			return address, stop
		}
	}
	require.FailNow(t, "server did not get ready")
	return "", nil
}

// personAt returns a client of somebody new, with roles.
func personAt(t *testing.T, url, name string, roles ...string) *client.Client {
	t.Helper()
	c := newClient(t, url)
	token, err := c.DevToken(t.Context(), domain.PersonID(name+"-"+domain.NewID()), name, roles...)
	require.NoError(t, err)
	return c.As(token)
}

func openShow(t *testing.T, operator *client.Client, maxActive int, section domain.Section) domain.ShowID {
	t.Helper()
	queue, seating := domain.DefaultQueue(), domain.DefaultSeating()
	queue.MaxActive = maxActive
	seating.Sections = []domain.Section{section}
	at := time.Now().Add(-time.Second)
	show, err := operator.CreateShow(t.Context(), client.NewShow{
		ID: testenv.ShowID(t), Title: "Real", OpensAt: &at, Queue: &queue, Seating: &seating,
	})
	require.NoError(t, err)
	return show.ID
}

// The simulated crowd and the program must agree on everything that the two have
// to say to each other, or what people try out is broken.
func crowdAtTheRealThing(t *testing.T, path string) {
	url, _ := startFoyer(t, path)
	operator := personAt(t, url, "Op", "operator")
	const maxActive = 8
	show := openShow(t, operator, maxActive, domain.Section{Name: "A", Rows: 8, SeatsPerRow: 10, Price: 2000})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	var summary Summary
	go func() {
		defer close(done)
		var err error
		summary, err = Run(ctx, Config{
			BaseURL: url, Show: show, People: 60, Seed: 11, Chat: 0.3, Lapse: -1, Leave: 0.05,
			Arrive: time.Second, Think: 30 * time.Millisecond, Return: 300 * time.Millisecond,
		})
		assert.NoError(t, err)
	}()
	live := operator.Live(ctx, client.LiveOptions{})
	defer live.Close()
	require.NoError(t, live.Subscribe(ctx, "/topic/stats/show/"+string(show)))
	hear(t, live, "the crowd buys what is meant for it", func(f client.Frame) bool {
		if f.Stats == nil {
			return false
		}
		assert.LessOrEqual(t, f.Stats.Active, int64(maxActive))
		assert.LessOrEqual(t, f.Stats.Sold+f.Stats.Held, f.Stats.Capacity)
		return f.Stats.Sold >= 60
	})
	cancel()
	<-done
	t.Log(summary)
	assert.Zero(t, summary.Failures, summary)
	assert.Zero(t, summary.Rejected, "nobody holds what another has bought")
	for what, count := range map[string]int64{
		"joined": summary.Joined, "entered": summary.Entered, "held": summary.Held, "booked": summary.Booked,
		"cancelled": summary.Cancelled, "released": summary.Released, "messages": summary.Messages,
	} {
		assert.Positive(t, count, what)
	}
}

// hear returns the next frame that is looked for.
func hear(t *testing.T, l *client.Live, what string, is func(client.Frame) bool) client.Frame {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case f, ok := <-l.Frames():
			if !ok {
				require.FailNow(t, "session ended", "before %s: %v", what, l.Err())
			}
			if is(f) {
				return f
			}
		case <-timeout:
			require.FailNow(t, "heard nothing", what)
		}
	}
}

func admitted(status domain.Status) func(client.Frame) bool {
	return func(f client.Frame) bool { return f.Admission != nil && f.Admission.Status == status }
}

// One walk through everything that the client can do, with three people at a show
// that has room for two.
func clientAtTheRealThing(t *testing.T, path string) {
	url, stop := startFoyer(t, path)
	ctx := t.Context()
	operator := personAt(t, url, "Op", "operator")
	show := openShow(t, operator, 2, domain.Section{Name: "A", Rows: 3, SeatsPerRow: 4, Price: 2550})
	ann, bob, cy := personAt(t, url, "Ann"), personAt(t, url, "Bob"), personAt(t, url, "Cy")

	annLive := ann.Live(ctx, client.LiveOptions{})
	defer annLive.Close()
	require.NoError(t, annLive.Join(ctx, show))
	hear(t, annLive, "turn", admitted(domain.StatusAdmitted))
	require.NoError(t, annLive.Claim(ctx, show))
	assert.NotEmpty(t, hear(t, annLive, "session", admitted(domain.StatusActive)).Admission.Place.Pass)
	_, created, err := bob.Join(ctx, show)
	require.NoError(t, err)
	assert.True(t, created)
	place, err := bob.WaitAdmission(ctx, show)
	require.NoError(t, err)
	require.True(t, place.In())
	_, err = bob.Claim(ctx, show)
	require.NoError(t, err)
	cyLive := cy.Live(ctx, client.LiveOptions{})
	defer cyLive.Close()
	require.NoError(t, cyLive.Join(ctx, show))
	assert.Equal(t, int64(1), *hear(t, cyLive, "place", admitted(domain.StatusWaiting)).Admission.Place.Rank)
	_, err = cy.Claim(ctx, show)
	assert.True(t, client.HasCode(err, client.CodeNotAdmitted), err)

	booking := walkBooking(t, ann, bob, show)
	news := hear(t, annLive, "booking", func(f client.Frame) bool { return f.Booking != nil && f.Booking.Status == domain.BookingConfirmed })
	assert.Equal(t, booking.BookingID, news.Booking.BookingID)
	hear(t, cyLive, "the freed slot", admitted(domain.StatusAdmitted))
	_, err = ann.CancelBooking(ctx, booking.BookingID)
	require.NoError(t, err)
	booking, err = ann.WaitBooking(ctx, booking.BookingID, domain.BookingConfirmed)
	require.NoError(t, err)
	assert.Equal(t, domain.BookingCancelled, booking.Status)

	walkChat(t, ann, bob, show)
	walkOperator(t, operator, cyLive, show)
	require.NoError(t, cyLive.Leave(ctx, show))
	hear(t, cyLive, "departure", admitted(domain.StatusLeft))

	stranger := newClient(t, url).As("nonsense").Live(ctx, client.LiveOptions{})
	<-stranger.Done()
	require.ErrorContains(t, stranger.Err(), "401")

	stop() // with 1012; a session outlives that and can be closed while it waits
	assert.NoError(t, cyLive.Err())
	cyLive.Close()
}

func walkBooking(t *testing.T, ann, bob *client.Client, show domain.ShowID) domain.Booking {
	t.Helper()
	ctx := t.Context()
	hold, err := ann.HoldBest(ctx, show, 2, "A")
	require.NoError(t, err)
	assert.Equal(t, domain.Price(5100), hold.Price)
	_, err = bob.HoldSeats(ctx, show, hold.Seats)
	var refusal *client.Error
	require.ErrorAs(t, err, &refusal)
	var conflicts []domain.SeatID
	assert.True(t, refusal.Into("conflicts", &conflicts))
	assert.Equal(t, hold.Seats, conflicts)
	_, err = bob.HoldSeats(ctx, show, []domain.SeatID{"Z-1-1"})
	assert.True(t, client.HasCode(err, client.CodeUnknownSeat), err)
	_, err = ann.HoldBest(ctx, show, 4, "")
	assert.True(t, client.HasCode(err, client.CodeLimitReached), err)

	hold, err = ann.SwapHold(ctx, show, hold.HoldID, []domain.SeatID{"A-3-1", "A-3-2"})
	require.NoError(t, err)
	hold, err = ann.ExtendHold(ctx, show, hold.HoldID)
	require.NoError(t, err)
	holds, err := ann.Holds(ctx, show)
	require.NoError(t, err)
	require.Len(t, holds, 1)
	assert.Equal(t, hold.Seats, holds[0].Seats)
	seats, err := ann.Seats(ctx, show, 0)
	require.NoError(t, err)
	assert.True(t, seats.Full)
	assert.Contains(t, seats.Seats, domain.Seat{ID: "A-3-1", State: domain.SeatHeld, HoldID: hold.HoldID})
	other, err := bob.HoldBest(ctx, show, 1, "")
	require.NoError(t, err)
	require.NoError(t, bob.ReleaseHold(ctx, show, other.HoldID))
	changes, err := bob.Seats(ctx, show, seats.Version)
	require.NoError(t, err)
	assert.False(t, changes.Full)
	assert.Equal(t, []domain.Seat{{ID: other.Seats[0], State: domain.SeatFree}}, changes.Seats)

	booking, err := ann.Book(ctx, show, hold.HoldID, "intent")
	require.NoError(t, err)
	again, err := ann.Book(ctx, show, hold.HoldID, "intent")
	require.NoError(t, err)
	assert.Equal(t, booking.BookingID, again.BookingID)
	booking, err = ann.WaitBooking(ctx, booking.BookingID)
	require.NoError(t, err)
	assert.Equal(t, domain.BookingConfirmed, booking.Status)
	page, err := ann.Bookings(ctx, "", 0)
	require.NoError(t, err)
	require.Len(t, page.Bookings, 1)
	assert.Equal(t, booking.BookingID, page.Bookings[0].BookingID)
	_, err = bob.Booking(ctx, booking.BookingID)
	assert.True(t, client.HasCode(err, "BOOKING_NOT_FOUND"), err)
	return booking
}

func walkChat(t *testing.T, ann, bob *client.Client, show domain.ShowID) {
	t.Helper()
	ctx := t.Context()
	room, err := ann.CreateRoom(ctx, "Lobby", show)
	require.NoError(t, err)
	_, err = bob.Say(ctx, room.ID, "let me in")
	assert.True(t, client.HasCode(err, "NOT_MEMBER"), err)
	rooms, err := bob.ShowRooms(ctx, *room.ShowID)
	require.NoError(t, err)
	require.Contains(t, rooms, domain.ChatRoom{ID: room.ID, Name: room.Name, ShowID: room.ShowID}, "a show's chat rooms can be found")
	require.NoError(t, bob.JoinRoom(ctx, room.ID))
	live := bob.Live(ctx, client.LiveOptions{})
	defer live.Close()
	require.NoError(t, live.Subscribe(ctx, "/topic/chat/"+string(room.ID)))
	hear(t, live, "own read pointer", func(f client.Frame) bool { return f.ChatRead != nil })
	said, err := ann.Say(ctx, room.ID, "hello")
	require.NoError(t, err)
	heard := hear(t, live, "message", func(f client.Frame) bool { return f.ChatMessage != nil }).ChatMessage
	assert.Equal(t, said.Text, heard.Message.Text)
	assert.Equal(t, room.ID, heard.RoomID)
	require.NoError(t, live.Read(ctx, room.ID, said.Seq))
	testenv.Eventually(t, 30*time.Second, "Bob is a reader", func() bool {
		readers, err := ann.Readers(ctx, room.ID, said.Seq)
		require.NoError(t, err)
		return len(readers) == 1 && readers[0].Name == "Bob"
	})
	require.NoError(t, bob.MarkUnread(ctx, room.ID, said.Seq))
	rooms, err = bob.Rooms(ctx)
	require.NoError(t, err)
	require.Len(t, rooms, 1)
	assert.Equal(t, 1, rooms[0].Unread)
	require.NoError(t, bob.MarkRead(ctx, room.ID, said.Seq))
	messages, err := bob.Messages(ctx, room.ID, 0, 10)
	require.NoError(t, err)
	require.Len(t, messages, 1)
	require.NoError(t, ann.DeleteMessage(ctx, room.ID, said.Seq))
	require.NoError(t, bob.LeaveRoom(ctx, room.ID))
	require.NoError(t, live.Subscribe(ctx, "/topic/nothing/x"))
	refused := hear(t, live, "refusal", func(f client.Frame) bool { return f.Error != nil })
	assert.Equal(t, "/topic/nothing/x", refused.Topic)
}

func walkOperator(t *testing.T, operator *client.Client, live *client.Live, show domain.ShowID) {
	t.Helper()
	ctx := t.Context()
	yes, message := true, "Back in ten minutes."
	changed, err := operator.ChangeShow(ctx, show, client.ShowChange{Paused: &yes, Message: &message})
	require.NoError(t, err)
	assert.Equal(t, domain.PhasePaused, changed.Phase)
	news := hear(t, live, "show", func(f client.Frame) bool { return f.Show != nil && f.Show.Message == message })
	assert.Equal(t, domain.PhasePaused, news.Show.Phase)
	numbers, err := operator.OperatorShow(ctx, show)
	require.NoError(t, err)
	assert.Equal(t, int64(2), numbers.Active)
	assert.Equal(t, message, numbers.Show.Message)
	all, err := operator.OperatorShows(ctx)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(all), 1)
	shows, err := operator.Shows(ctx)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(shows), 1)
	letters, err := operator.DeadLetters(ctx, "")
	require.NoError(t, err)
	assert.Empty(t, letters)
	require.Error(t, operator.DropDeadLetter(ctx, "commands.booking", "1-0"))
	require.NoError(t, operator.Ready(ctx))
}
