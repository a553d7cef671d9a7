package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
)

// A frame of 4096 bytes is taken, one of more closes with 1009, which the client is
// to see although it has sent bytes that nobody will read.
func TestFrameSize(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page, _ := w.open("one")
	frame := `{"type":"nothing","ref":"` + strings.Repeat("x", 10) + `"}`
	require.NoError(t, page.conn.WriteMessage(websocket.TextMessage, []byte(frame+strings.Repeat(" ", 4096-len(frame)))))
	page.await(eventError)
	// It goes out in parts, and the answer may be here before the last of them.
	_ = page.conn.WriteMessage(websocket.TextMessage, []byte(frame+strings.Repeat(" ", 40_000)))
	code, _ := page.ended()
	require.Equal(t, websocket.CloseMessageTooBig, code)
}

// Nonsense is answered and not obeyed, and a client that goes on with it is closed
// for good: connecting again would not mend it.
func TestBadFrames(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page, _ := w.open("one")
	for _, bad := range []string{
		``, `{`, `null`, `[]`, `"join"`, `{"type":"join"`, `{"type":"join","showId":{}}`, `{"type":"nothing"}`,
		`{"type":"join","showId":"a"} {"type":"join","showId":"b"}`, `{"type":"join","showId":"a","person":"b"}`,
	} {
		require.NoError(t, page.conn.WriteMessage(websocket.TextMessage, []byte(bad)))
		f := page.await(eventError)
		require.Equal(t, codeBadFrame, f.Code, bad)
		page.settle(w) // a good frame in between
	}
	for range 5 {
		require.NoError(t, page.conn.WriteMessage(websocket.BinaryMessage, []byte{0, 1, 2}))
	}
	code, _ := page.ended()
	require.Equal(t, closeBadFrames, code)
	errors := page.of(eventError)
	require.Equal(t, codeBadFrame, errors[len(errors)-1].Code)
}

// 5 frames a second with 10 at once; more is told and closed.
func TestFrameRate(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.framesPerSecond, c.frameBurst = 5, 10 })
	page, _ := w.open("one")
	for range 200 {
		if page.conn.WriteJSON(map[string]any{"type": "subscribe", "topic": "/topic/nowhere"}) != nil {
			break
		}
	}
	code, _ := page.ended()
	require.Equal(t, closeRateLimited, code)
	errors := page.of(eventError)
	require.Equal(t, codeRateLimited, errors[len(errors)-1].Code)
}

// A client that speaks before it was spoken to, and more than it may, hears HELLO
// first all the same, then the answers to what it was allowed, and then why it ends.
func TestHelloComesBeforeAnyAnswer(t *testing.T) {
	t.Parallel()
	var g *gatedSteps
	w := newHubWorld(t, func(c *hubConfig, d *hubDeps) {
		c.framesPerSecond, c.frameBurst = 0.001, 10
		g = gate(d)
	})
	page := w.dial("hasty")
	for n := range 30 {
		page.send("subscribe", "topic", "/topic/nowhere", "ref", fmt.Sprint(n))
	}
	<-g.arrived
	g.proceed <- struct{}{}
	code, _ := page.ended()
	require.Equal(t, closeRateLimited, code)
	page.mu.Lock()
	defer page.mu.Unlock()
	require.Equal(t, eventHello, page.frames[0].Event)
	var refs []string
	for _, f := range page.frames[1:] {
		require.Equal(t, eventError, f.Event)
		refs = append(refs, f.Ref)
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", ""}, refs)
}

// Joining, claiming and leaving over the socket: each is answered, and what was
// refused is refused with the code that HTTP would have given and the client's ref.
func TestWayThroughSocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	soon := w.addShow(func(s *domain.Show) { s.OpensAt = s.OpensAt.AddDate(1, 0, 0) })
	page, hello := w.open("one")
	require.Empty(t, hello.Places)
	require.NotEmpty(t, hello.ConnectionID)
	require.Positive(t, hello.HeartbeatSeconds)

	page.send("claim", "showId", w.show.ID, "ref", "too early")
	require.Equal(t, codeNotAdmitted, page.await(eventError, func(f told) bool { return f.Ref == "too early" }).Code)
	page.send("join", "showId", "no-such-show")
	require.Equal(t, codeShowNotFound, page.await(eventError).Code)
	page.send("join", "showId", "NOT AN ID")
	require.Equal(t, codeShowNotFound, page.await(eventError).Code)
	page.send("join", "showId", soon.ID)
	notOpen := page.await(eventError)
	require.Equal(t, codeNotOpen, notOpen.Code)
	require.NotEmpty(t, notOpen.Extra["opensAt"])

	page.send("join", "showId", w.show.ID)
	admitted := page.await(events.EventAdmission)
	require.Equal(t, "ADMITTED", admitted.Status)
	require.Equal(t, w.request("one"), admitted.RequestID)
	require.NotNil(t, admitted.ClaimBy)
	page.await(events.EventStats, func(f told) bool { return f.ShowID == w.show.ID })
	page.send("join", "showId", w.show.ID) // again: the same place, and an answer
	require.Equal(t, admitted.ClaimBy, page.await(events.EventAdmission).ClaimBy)

	page.send("claim", "showId", w.show.ID)
	active := page.await(events.EventAdmission, only(domain.StatusActive))
	require.NotNil(t, active.ExpiresAt)
	require.Nil(t, active.ClaimBy)
	require.NotNil(t, active.Place.Pass)

	page.send("leave", "showId", w.show.ID)
	left := page.await(events.EventAdmission, func(f told) bool { return f.Status == "LEFT" || f.Status == "EXPIRED" })
	require.Nil(t, left.ExpiresAt)
	stranger, _ := w.open("stranger")
	stranger.send("leave", "showId", w.show.ID) // absent is as good as left
	require.Equal(t, "LEFT", stranger.await(events.EventAdmission).Status)
	require.Zero(t, w.stats().Active)
}

// T30: nobody is told a number that Redis did not give: with Redis away a join is
// an error, and no place appears.
func TestJoinWithoutAnswerTellsNoPlace(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(_ *hubConfig, d *hubDeps) { d.admissions = refusing{d.admissions} })
	page, _ := w.open("one")
	page.send("join", "showId", w.show.ID, "ref", "j")
	f := page.await(eventError)
	require.Equal(t, codeUnavailable, f.Code)
	require.Equal(t, "j", f.Ref)
	page.settle(w)
	require.Empty(t, page.of(events.EventAdmission))
	require.Empty(t, w.hub.registry.find(showInterest(w.show.ID)), "who did not get in does not follow the show")
	require.Equal(t, http.StatusServiceUnavailable, problemFor(errRedisAway).Status)
}

// A socket that is closed with bytes of the client unread is reset by the kernel,
// and a reset can overtake the closing frame, so that the client never learns why.
// The goodbye is waited for instead: after the frame comes a plain end.
func TestGoodbyeIsNotReset(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	for range 20 {
		conn := w.tryDial("one")
		require.NotNil(t, conn)
		line := conn.NetConn()
		const size = 60_000
		frame := append([]byte{0x81, 0x80 | 126, size >> 8, size & 0xff, 0, 0, 0, 0}, make([]byte, size)...)
		_, err := line.Write(frame)
		require.NoError(t, err)
		rest, err := io.ReadAll(line)
		require.NoError(t, err, "the line was reset")
		require.Contains(t, string(rest), string([]byte{0x88, 2, websocket.CloseMessageTooBig >> 8, websocket.CloseMessageTooBig & 0xff}))
		_ = conn.Close()
	}
}
