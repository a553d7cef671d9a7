package crowd

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"foyer/client"
	"foyer/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hurried is a crowd that does not think.
func hurried(url string, people int) Config {
	return Config{
		BaseURL: url, Show: "demo", People: people, Seed: 7,
		Arrive: time.Millisecond, Think: time.Millisecond, Return: 5 * time.Millisecond,
	}
}

// run lets a crowd in until the office has seen enough.
func run(t *testing.T, o *office, config Config, enough func() bool) Summary {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.cond.Broadcast()
	})
	go func() {
		o.until(func() bool { return ctx.Err() != nil || enough() })
		cancel()
	}()
	summary, err := Run(ctx, config)
	require.NoError(t, err)
	require.NotErrorIs(t, ctx.Err(), context.DeadlineExceeded, "not enough happened: %s", summary)
	// The last requests of a crowd that went home may still be on their way: from
	// here on the office belongs to the test.
	o.mu.Lock()
	t.Cleanup(o.mu.Unlock)
	return summary
}

func TestACrowdDoesAllThatPeopleDo(t *testing.T) {
	t.Parallel()
	o, url := newOffice(t)
	config := hurried(url, 30)
	config.Lapse = -1 // the office has no clock that would take a seat back
	config.Chat, config.Cancel, config.KeepFree, config.Release = 0.5, 0.9, -1, 0.3
	config.Leave = -1
	s := run(t, o, config, func() bool {
		return o.requests["POST /api/shows/demo/bookings"] > 15 && o.requests["DELETE /api/bookings/{booking}"] > 5 &&
			o.requests["DELETE /api/shows/demo/holds/{hold}"] > 5 && o.requests["POST /api/chat/rooms/{room}/messages"] > 5 &&
			o.requests["frame join"] > 5 && o.requests["frame claim"] > 5 && o.requests["frame subscribe"] > 5 &&
			o.requests["POST /api/shows/demo/admission"] > 5 && o.requests["GET /api/shows/demo/seats"] > 5
	})
	assert.LessOrEqual(t, o.most, officeCap)
	assert.Equal(t, 1, o.requests["POST /api/chat/rooms"], "one lobby for all")
	assert.GreaterOrEqual(t, s.Visits, s.Joined)
	assert.GreaterOrEqual(t, s.Joined, s.Entered)
	assert.GreaterOrEqual(t, s.Held, s.Booked+s.Released)
	assert.Positive(t, s.Booked)
	assert.Positive(t, s.Cancelled)
	assert.Positive(t, s.Released)
	assert.Positive(t, s.Messages)
	assert.Zero(t, s.Failures, s)
	assert.Contains(t, s.String(), " booked, 0 rejected, ")
	assert.Less(t, len(o.members), 30, "who is done leaves the lobby")
}

// Whoever tries Foyer out wants to buy a ticket too: the last seats are not the crowd's.
func TestACrowdLeavesSeatsToOthers(t *testing.T) {
	t.Parallel()
	o, url := newOffice(t)
	config := hurried(url, 20)
	config.KeepFree, config.Cancel, config.Lapse, config.Leave, config.Release = 0.5, -1, -1, -1, -1
	config.Sockets = -1
	run(t, o, config, func() bool { return o.requests["DELETE /api/shows/demo/holds/{hold}"] > 30 })
	_, show := o.show("", nil, nil)
	sold := show.(map[string]any)["sold"].(int)
	assert.GreaterOrEqual(t, sold, 12)
	// People who looked in the same instant may all take the last ones that are theirs.
	assert.LessOrEqual(t, sold, 12+officeCap*3)
	assert.Zero(t, o.requests["POST /api/socket-tickets"])
}

func TestPeopleWithoutPatienceLeaveOrVanish(t *testing.T) {
	t.Parallel()
	o, url := newOffice(t)
	config := hurried(url, 40)
	config.Leave, config.Think = 1, 5*time.Millisecond
	left, vanished := 0, false
	s := run(t, o, config, func() bool {
		left = o.requests["DELETE /api/shows/demo/admission"]
		vanished = len(o.status) > 300
		return left > 20 && vanished
	})
	assert.Positive(t, s.Left)
	assert.Positive(t, s.Vanished)
	assert.Less(t, s.Entered, s.Joined)
}

func TestTheCrowdStaysAwayFromASoldOutShow(t *testing.T) {
	t.Parallel()
	o, url := newOffice(t)
	o.soldOut = true
	s := run(t, o, hurried(url, 10), func() bool {
		return o.requests["POST /api/shows/demo/admission"]+o.requests["frame join"] >= 20
	})
	assert.Positive(t, s.TurnedOff)
	assert.Zero(t, s.Joined)
	assert.Zero(t, s.Failures)
}

// A frame about a booking may be lost; the person must not stand there for ever.
func TestAPersonWhoHearsNothingOfTheBookingAsks(t *testing.T) {
	t.Parallel()
	o, url := newOffice(t)
	o.lost = true
	c := &crowd{Config: hurried(url, 1).withDefaults()}
	p := newPerson(c, "ann", rand.New(rand.NewPCG(1, 1)))
	p.client = newClient(t, url).As("ann")
	o.mu.Lock()
	o.confirm["b"] = domain.BookingConfirmed
	o.mu.Unlock()
	status, err := p.decided(t.Context(), deafDoor{}, "b")
	require.NoError(t, err)
	assert.Equal(t, domain.BookingConfirmed, status)
}

func newClient(t *testing.T, url string) *client.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(url, client.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	return c
}

// deafDoor never hears.
type deafDoor struct{ door }

func (deafDoor) decided(context.Context, domain.BookingID) (domain.BookingStatus, error) {
	return "", context.DeadlineExceeded
}

func TestRunFailsAtOnceWhereNoCrowdCanCome(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{BaseURL: "http://127.0.0.1:1", Show: "No Show", People: -1, Chat: 2})
	require.ErrorContains(t, err, "people must be between")
	require.ErrorContains(t, err, "is no show id")
	require.ErrorContains(t, err, "share chat")

	_, err = Run(t.Context(), Config{BaseURL: "nonsense", Show: "demo", People: 1})
	require.ErrorContains(t, err, "base address")

	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err = Run(t.Context(), Config{BaseURL: server.URL, Show: "demo", People: 1})
	require.ErrorContains(t, err, "dev token")
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, url := newOffice(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	summary, err := Run(ctx, hurried(url, 10))
	require.NoError(t, err)
	assert.Zero(t, summary.Visits)
}

// E6: seats at a row's end and at its beginning are no neighbours.
func TestPickedSeatsAreFreeNeighbours(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	sections := []domain.Section{{Name: "A", Rows: 2, SeatsPerRow: 5}, {Name: "B", Rows: 1, SeatsPerRow: 3}}
	taken := map[domain.SeatID]bool{"A-1-3": true, "B-1-2": true}
	for range 500 {
		seats := pick(sections, taken, 3, r)
		if len(seats) == 0 {
			continue
		}
		assert.Contains(t, []string{"A-2-1 A-2-2 A-2-3", "A-2-2 A-2-3 A-2-4", "A-2-3 A-2-4 A-2-5"}, joined(seats))
	}
	assert.Empty(t, pick(sections, taken, 6, r))
	assert.Empty(t, pick(nil, nil, 1, r))
}

func joined(seats []domain.SeatID) string {
	parts := make([]string, len(seats))
	for i, seat := range seats {
		parts[i] = string(seat)
	}
	return strings.Join(parts, " ")
}

func TestTwoCrowdsOfOneSeedAreTheSamePeople(t *testing.T) {
	t.Parallel()
	c := &crowd{Config: Config{}.withDefaults()}
	deal := func() person { return *newPerson(c, "x", rand.New(rand.NewPCG(3, 4))) }
	one, two := deal(), deal()
	one.rand, two.rand = nil, nil
	assert.Equal(t, one, two)
}
