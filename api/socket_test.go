package api

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// The ten hazards of melody v1.1.4, each held off by the wrapper.

// unread dials a person whose client never reads, with a small window, so that
// little can be swallowed on its way.
func (w *hubWorld) unread(person string) (*connection, *websocket.Conn) {
	w.t.Helper()
	before := w.hub.all()
	dialer := websocket.Dialer{NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4096)
		}
		return conn, err
	}}
	conn, _, err := dialer.DialContext(w.t.Context(), w.url(""), w.authorization(person))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	var stalled *connection
	testenv.Eventually(w.t, socketWait, "the connection is live", func() bool {
		for _, c := range w.hub.all() {
			if isLive(c) && c.identity.Person == domain.PersonID(person) && !contains(before, c) {
				stalled = c
			}
		}
		return stalled != nil
	})
	return stalled, conn
}

func contains(all []*connection, c *connection) bool {
	for _, known := range all {
		if known == c {
			return true
		}
	}
	return false
}

func isLive(c *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stage == stageLive
}

// stall fills everything between the hub and a client that does not read, melody's
// queue too, which the hub alone never does.
func stall(c *connection) {
	frame := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 4 * socketQueue {
		c.socket.send(frame)
		_ = socketOf(c).session.Load().Write(nil)
	}
}

// H1: closing a session inside the error handler on a full buffer recurses until
// the process dies, which no recover stops. The queue overflows here as often as it
// can, with closes in between; it runs in a process of its own, since a relapse
// would take all other tests with it.
func TestFullQueueNeverRecurses(t *testing.T) {
	const inside = "FOYER_TEST_FULL_QUEUE"
	if os.Getenv(inside) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullQueueNeverRecurses$", "-test.v")
		command.Env = append(os.Environ(), inside+"=1")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS: TestFullQueueNeverRecurses")
		return
	}
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.writeWait, c.closeWait = time.Minute, 50*time.Millisecond })
	c, _ := w.unread("stalled")
	stall(c)
	full := w.hub.metrics.failures.WithLabelValues(string(failureFull))
	require.Positive(t, testutil.ToFloat64(full), "the queue was meant to overflow")
	c.close(closeResync, "full")
	c.socket.finish(closeResync, "full")
	stall(c)
	testenv.Eventually(t, socketWait, "the stalled socket is gone", func() bool { return w.hub.Sockets() == 0 })
}

// H2: Close on a session whose buffer is full returns nil and does nothing until
// the write deadline. The sweep cuts the line instead, here long before it.
func TestCloseOfStalledSocketTakesEffect(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.writeWait, c.closeWait = time.Hour, 20*time.Millisecond })
	c, _ := w.unread("stalled")
	stall(c)
	c.close(closeResync, "too far behind")
	testenv.Eventually(t, socketWait, "the stalled socket is gone", func() bool { return w.hub.Sockets() == 0 })
}

// H3: a handler that broadcasts, or asks for the sessions, blocks melody's hub for
// ever. Ours may be told facts from inside any handler.
func TestNotifyFromInsideHandler(t *testing.T) {
	t.Parallel()
	var hub atomic.Pointer[Hub]
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) {
		d.admissions = &interrupting{admissionService: d.admissions, do: func(show domain.ShowID) {
			stats := domain.Stats{ShowID: show, Epoch: 1, Version: 1 << 30, Phase: domain.PhaseOpen, Waiting: 77}
			hub.Load().Notify(events.Notification{Event: events.EventStats, ShowID: show, Epoch: 1, Version: stats.Version, Stats: &stats})
			hub.Load().Gap("test")
			_ = hub.Load().Sockets()
		}}
	})
	hub.Store(w.hub)
	page, _ := w.open("one")
	page.send("join", "showId", w.show.ID)
	page.await(events.EventAdmission, only(domain.StatusAdmitted))
	_, _ = w.open("two")
}

// interrupting does something before somebody joins.
type interrupting struct {
	admissionService
	do func(domain.ShowID)
}

func (i *interrupting) join(ctx context.Context, who Identity, show domain.ShowID, code string) (domain.Place, bool, error) {
	i.do(show)
	return i.admissionService.join(ctx, who, show, code)
}

// H4: sending to several sessions stops at the first closed one, so that the rest
// hear nothing.
func TestClosedSocketSilencesNobody(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.join("a", "b", "c")
	first, _ := w.open("a")
	second, _ := w.open("b")
	third, _ := w.open("c")
	for _, c := range w.hub.all() {
		if c.identity.Person == "b" {
			c.socket.cut()
		}
	}
	s := w.stats()
	s.Version, s.Waiting = s.Version+10, 4711
	w.notifyStats(s)
	for _, page := range []*tab{first, third} {
		page.await(events.EventStats, func(f told) bool { return f.Waiting == 4711 })
	}
	second.ended()
}

// H5: a panic in a handler leaves a session that nobody ever removes, and in the
// write pump it ends the process. It ends that one socket.
func TestPanicEndsOnlyItsSocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) {
		d.admissions = &interrupting{admissionService: d.admissions, do: func(domain.ShowID) { panic("a defect") }}
	})
	victim, _ := w.open("victim")
	other, _ := w.open("other")
	victim.send("join", "showId", w.show.ID)
	victim.ended()
	testenv.Eventually(t, socketWait, "the ghost is gone", func() bool { return w.hub.Sockets() == 1 })
	require.Equal(t, 1.0, testutil.ToFloat64(w.hub.metrics.panics))
	other.settle(w)
	require.Empty(t, w.hub.registry.find(placeInterest(w.request("victim"))))
}

// H5: the same in the callbacks that melody runs elsewhere: when a socket opens,
// when a frame was written (in the write pump, where nothing recovers), and while
// a fact is routed.
func TestPanicInOtherCallbacks(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) {
		d.sign = func(domain.Place, domain.PersonID) (string, error) { panic("a defect") }
	})
	bystander, _ := w.open("bystander")
	place := w.activate("victim")
	victim := w.dial("victim") // the snapshot signs a pass
	victim.ended()
	require.Equal(t, domain.StatusActive, place.Status)
	testenv.Eventually(t, socketWait, "the ghost is gone", func() bool { return w.hub.Sockets() == 1 })

	w.hub.sockets.events.sent = func(*connection) { panic("a defect") }
	require.NotPanics(t, func() {
		w.hub.sockets.guard(socketOf(w.hub.all()[0]).session.Load(), w.hub.sockets.events.sent)
	})
	bystander.ended()
	require.NotPanics(t, func() {
		w.hub.Notify(events.Notification{Event: events.EventBooking, Bookings: []events.BookingFact{{}}})
	})
}

// H6: a full buffer drops the newest message and says nothing, and small frames
// vanish by the ten thousand into buffers of the kernel before a slow client shows.
// Here it shows by the age of the one frame in flight, and costs the others nothing.
// R5, R6, R7, R15.
func TestSlowClientBesideHealthyOnes(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.slowAfter, c.writeWait, c.pongWait, c.pingEvery = 500*time.Millisecond, time.Hour, time.Hour, time.Hour // nothing else may cut it
		c.tap = nil                                                                                               // thousands of frames are needed to fill the kernel's buffers
	})
	w.join("slow", "healthy")
	slow, _ := w.unread("slow")
	healthy, _ := w.open("healthy")
	s := w.stats()
	testenv.Eventually(t, 3*time.Minute, "the slow client is cut", func() bool {
		for range 500 {
			s.Version, s.Active = s.Version+1, s.Active+1
			w.notifyStats(s)
		}
		return w.hub.Sockets() == 1
	})
	require.Equal(t, 1.0, testutil.ToFloat64(w.hub.metrics.slow))
	require.Zero(t, testutil.ToFloat64(w.hub.metrics.failures.WithLabelValues(string(failureFull))))
	require.True(t, slow.out.first() == laneCount)
	healthy.await(events.EventStats, func(f told) bool { return f.Version == s.Version })
}

// H6: a client that answers no ping is dead after the pong wait, however little is
// sent to it. R9: the deadline is there before the first read.
func TestSilentClientIsGone(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.pongWait, c.pingEvery = 200*time.Millisecond, 50*time.Millisecond })
	answering, _ := w.open("answering")
	w.unread("silent")
	testenv.Eventually(t, socketWait, "the silent client is gone", func() bool { return w.hub.Sockets() == 1 })
	require.Equal(t, 1.0, testutil.ToFloat64(w.hub.metrics.failures.WithLabelValues(string(failureSilent))))
	answering.settle(w)
}

// H7: with a close handler set clients saw 1006, and a bare Close sends 1005. Who
// closes normally is answered normally, and whoever we close learns why.
func TestEndsHaveCodeAndReason(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	leaving, _ := w.open("leaving")
	require.NoError(t, leaving.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye")))
	code, _ := leaving.ended()
	require.Equal(t, websocket.CloseNormalClosure, code)
	testenv.Eventually(t, socketWait, "the socket is gone", func() bool { return w.hub.Sockets() == 0 })

	closed, _ := w.open("closed")
	w.hub.all()[0].close(closeResync, "read again")
	code, reason := closed.ended()
	require.Equal(t, closeResync, code)
	require.Equal(t, "read again", reason)
}

// H8: melody's defaults keep 256 frames for a slow reader, take frames of 512 bytes
// only, ping too seldom for common proxies, and accept every origin.
func TestDefaultsOfSockets(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.hub.Drain(t.Context())
	hub := newHub(hubConfig{}, w.hub.deps.quiet())
	hub.Start(t.Context())
	t.Cleanup(func() { hub.Drain(context.WithoutCancel(t.Context())) })
	m := hub.sockets.melody
	require.Equal(t, 8, m.Config.MessageBufferSize)
	require.EqualValues(t, 4096, m.Config.MaxMessageSize)
	require.Equal(t, 5*time.Second, m.Config.WriteWait)
	require.Equal(t, 40*time.Second, m.Config.PongWait)
	require.NotNil(t, m.Upgrader.WriteBufferPool)
	require.False(t, m.Upgrader.EnableCompression, "R18: compression costs memory on every socket")
	c := hub.config
	require.Equal(t, []any{10_000, 5, 300.0, 5.0, 10, 8, 25 * time.Second, 30 * time.Second, 15 * time.Second, 45 * time.Second},
		[]any{c.maxSockets, c.maxPerPerson, c.handshakesPerSecond, c.framesPerSecond, c.frameBurst, c.maxTopics, c.pingEvery, c.ticketLife, c.heartbeat, c.drainLimit})
}

// quiet leaves the metrics out, for a second hub with the same parts.
func (d hubDeps) quiet() hubDeps {
	d.metrics = nil
	return d
}

// H10: writing to a connection that was taken over makes net/http complain and can
// corrupt the socket, so Echo is told that all is well, whether the socket ended
// well or never began. A client that sends frames before the handshake's answer is
// cut.
func TestNothingIsWrittenBehindTakenOverConnection(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page, _ := w.open("fine")
	require.NoError(t, page.conn.Close())
	page.ended()

	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nframes too early",
		w.http.Listener.Addr(), w.authorization("early").Get("Authorization"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(socketWait)))
	n, err := conn.Read(make([]byte, 1024))
	require.Error(t, err)
	require.Zero(t, n)
	testenv.Eventually(t, socketWait, "all sockets are gone and uncounted", func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return len(w.hub.connections) == 0 && w.hub.reserved == 0 && len(w.hub.persons) == 0
	})
	require.NotContains(t, w.log.String(), "hijacked")
	require.NotContains(t, w.log.String(), "superfluous")
	require.NotContains(t, w.log.String(), "panic")
}
