package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
)

// TestStompWalksFromJoinToTurn: a page of the source design says who it is in
// CONNECT, subscribes before it joins, joins by SEND, and hears of its place under
// the names it subscribed to.
func TestStompWalksFromJoinToTurn(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	page := w.dialStomp(nil)
	page.send("CONNECT\naccept-version:1.2\nhost:foyer\nheart-beat:10000,0\nAuthorization:Bearer " + w.token("ann", time.Hour) + "\n\n")
	connected := page.await("CONNECTED")
	require.Equal(t, "1.2", connected.get("version"))
	require.Equal(t, "5000,10000", connected.get("heart-beat"))
	require.NotEmpty(t, connected.get("session"))

	queue, stats := "/topic/queue/"+string(w.show.ID)+"/ann", "/topic/stats/movie/"+string(w.show.ID)
	page.subscribe("q", queue)
	page.subscribe("s", stats)
	page.subscribe("o", "/topic/soldout/movie/"+string(w.show.ID))
	require.Equal(t, stats, page.await("MESSAGE", toldTo("s", "STATS")).get("destination"))
	page.await("MESSAGE", toldTo("o", "SOLD_OUT"))
	require.Empty(t, page.heard("q"), "there is no place yet")

	page.send("SEND\ndestination:/app/addQueue\nreceipt:r1\ncontent-type:application/json\n\n{\"scheduleId\":\"" + string(w.show.ID) + "\"}")
	place := page.await("MESSAGE", toldTo("q", "ADMISSION"))
	require.Equal(t, queue, place.get("destination"))
	require.Equal(t, string(domain.StatusWaiting), place.told.Status)
	require.NotNil(t, place.told.Place.Rank)
	require.Equal(t, int64(1), *place.told.Place.Rank)
	page.await("RECEIPT", func(f stompTold) bool { return f.get("receipt-id") == "r1" })

	page.subscribe("a", "/topic/admission/"+string(w.request("ann")))
	page.subscribe("r", "/topic/rank/"+string(w.request("ann")))
	page.await("MESSAGE", toldTo("a", "ADMISSION"))
	page.await("MESSAGE", toldTo("r", "RANK"))
	now := time.Now().Add(time.Minute)
	w.notify(events.Notification{Event: events.EventAdmission, Version: w.stats().Version + 1, Admitted: []domain.Admitted{{RequestID: w.request("ann"), ClaimBy: now}}})
	for _, id := range []string{"a", "q"} {
		page.await("MESSAGE", func(f stompTold) bool { return toldTo(id, "ADMISSION")(f) && f.told.Status == "ADMITTED" })
	}
	page.send("DISCONNECT\nreceipt:bye\n\n")
	testenv.Eventually(t, socketWait, "the receipt of DISCONNECT", func() bool {
		page.mu.Lock()
		defer page.mu.Unlock()
		return len(page.frames) > 0 && page.frames[len(page.frames)-1].get("receipt-id") == "bye"
	})
	code, _ := page.ended()
	require.Equal(t, websocket.CloseNormalClosure, code)
}

// TestStompSaysInTimeWhoItIs: until CONNECT a socket is registered for nothing and
// counts for nobody, and it does not last.
func TestStompSaysInTimeWhoItIs(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.connectWait = 100 * time.Millisecond })
	page := w.dialStomp(nil)
	testenv.Eventually(t, socketWait, "a socket", func() bool { return w.hub.Sockets() == 1 })
	w.addShow(func(*domain.Show) {}) // every known person hears of a new show
	require.Zero(t, w.hub.registry.entries())
	code, _ := page.ended()
	require.Equal(t, closeUnauthorised, code)
	testenv.Eventually(t, socketWait, "nothing to be kept", func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return w.hub.reserved == 0 && len(w.hub.persons) == 0
	})
}

// TestStompRefusals, R50: a refused credential went on to subscribe, and a client's
// SEND to a topic was relayed to everybody. Each refusal is an ERROR and the end.
func TestStompRefusals(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.maxPerPerson = 20 })
	show := string(w.show.ID)
	connect := "CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("ann", time.Hour) + "\n\n\x00"
	stranger := string(w.request("bob"))
	for name, test := range map[string]struct {
		frames string
		code   string
		close  int
	}{
		"no token":            {"CONNECT\naccept-version:1.2\n\n", codeUnauthorized, closeUnauthorised},
		"bad token":           {"CONNECT\naccept-version:1.2\nAuthorization:Bearer x\n\n", codeUnauthorized, closeUnauthorised},
		"token over":          {"CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("ann", -time.Hour) + "\n\n", codeTokenExpired, closeUnauthorised},
		"old version":         {"CONNECT\naccept-version:0.9\n\n", codeBadFrame, closeBadFrames},
		"bad heart-beat":      {"CONNECT\naccept-version:1.2\nheart-beat:x\n\n", codeBadFrame, closeBadFrames},
		"subscribe first":     {"SUBSCRIBE\nid:1\ndestination:/topic/stats/show/" + show + "\n\n", codeUnauthorized, closeUnauthorised},
		"connect twice":       {connect + "CONNECT\naccept-version:1.2\n\n", codeBadFrame, closeBadFrames},
		"foreign queue":       {connect + "SUBSCRIBE\nid:1\ndestination:/topic/queue/" + show + "/bob\n\n", codeForbidden, closeForbidden},
		"foreign place":       {connect + "SUBSCRIBE\nid:1\ndestination:/topic/admission/" + stranger + "\n\n", codeForbidden, closeForbidden},
		"foreign rank":        {connect + "SUBSCRIBE\nid:1\ndestination:/topic/rank/" + stranger + "\n\n", codeForbidden, closeForbidden},
		"foreign booking":     {connect + "SUBSCRIBE\nid:1\ndestination:/topic/booking/" + stranger + "\n\n", codeForbidden, closeForbidden},
		"unknown topic":       {connect + "SUBSCRIBE\nid:1\ndestination:/topic/everything\n\n", codeUnknownTopic, closeUnknown},
		"unknown show":        {connect + "SUBSCRIBE\nid:1\ndestination:/topic/stats/movie/none\n\n", codeUnknownTopic, closeUnknown},
		"no id":               {connect + "SUBSCRIBE\ndestination:/topic/stats/show/" + show + "\n\n", codeBadFrame, closeBadFrames},
		"acknowledging":       {connect + "SUBSCRIBE\nid:1\nack:client\ndestination:/topic/stats/show/" + show + "\n\n", codeBadFrame, closeBadFrames},
		"same id":             {connect + "SUBSCRIBE\nid:1\ndestination:/topic/stats/show/" + show + "\n\n\x00SUBSCRIBE\nid:1\ndestination:/topic/soldout/show/" + show + "\n\n", codeBadFrame, closeBadFrames},
		"unknown id":          {connect + "UNSUBSCRIBE\nid:1\n\n", codeBadFrame, closeBadFrames},
		"send to a topic":     {connect + "SEND\ndestination:/topic/stats/show/" + show + "\n\n{}", codeForbidden, closeForbidden},
		"send to an app":      {connect + "SEND\ndestination:/app/deleteQueue\n\n{}", codeForbidden, closeForbidden},
		"send no JSON":        {connect + "SEND\ndestination:/app/addQueue\n\nhello", codeBadFrame, closeBadFrames},
		"join an unknown":     {connect + "SEND\ndestination:/app/addQueue\n\n{\"movieId\":7}", codeShowNotFound, closeUnknown},
		"claim without turn":  {connect + "SEND\ndestination:/app/claim\n\n{\"showId\":\"" + show + "\"}", "", 0},
		"transaction":         {connect + "BEGIN\ntransaction:1\n\n", codeBadFrame, closeBadFrames},
		"undefined escape":    {connect + "SUBSCRIBE\nid:\\t\ndestination:/topic/stats/show/" + show + "\n\n", codeBadFrame, closeBadFrames},
		"endless receipt":     {connect + "SEND\nreceipt:" + strings.Repeat("r", 65) + "\n\n", codeBadFrame, closeBadFrames},
		"content length":      {connect + "SEND\ndestination:/app/addQueue\ncontent-length:1\n\n{}", codeBadFrame, closeBadFrames},
		"somebody else twice": {connect + "STOMP\naccept-version:1.2\nAuthorization:Bearer " + w.token("bob", time.Hour) + "\n\n", codeBadFrame, closeBadFrames},
	} {
		t.Run(name, func(t *testing.T) {
			page := w.dialStomp(nil)
			page.send(test.frames)
			code, reason := page.ended()
			page.mu.Lock()
			defer page.mu.Unlock()
			last := page.frames[len(page.frames)-1]
			require.Equal(t, "ERROR", last.command)
			require.Equal(t, last.get("message"), last.told.Code)
			require.Equal(t, "ERROR", last.told.Event)
			if test.code != "" {
				require.Equal(t, test.code, last.told.Code, last.told.Detail)
				require.Equal(t, test.close, code)
				require.Equal(t, test.code, reason)
			}
		})
	}
	require.Empty(t, w.hub.registry.find(placeInterest(w.request("bob"))))
}

// TestStompHandshakeNames: whoever the handshake named need not say it again, and
// cannot be somebody else.
func TestStompHandshakeNames(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page := w.dialStomp(w.authorization("ann"))
	page.send("STOMP\naccept-version:1.1\n\n")
	require.Equal(t, "1.1", page.await("CONNECTED").get("version"))
	other := w.dialStomp(w.authorization("ann"))
	other.send("CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("bob", time.Hour) + "\n\n")
	code, _ := other.ended()
	require.Equal(t, closeUnauthorised, code)
}

// TestStompRefusalsCanBeHeard: STOMP knows no refusal but the end of everything,
// after which a client connects again, is refused again, and so on. A page that
// listens for refusals hears them and stays.
func TestStompRefusalsCanBeHeard(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	later := w.addShow(func(s *domain.Show) { s.OpensAt = time.Now().Add(time.Hour).UTC().Truncate(time.Second) })
	page := w.connectStomp("ann")
	page.subscribe("e", stompErrors)
	page.send("SEND\ndestination:/app/addQueue\nreceipt:7\n\n{\"showId\":\"" + string(later.ID) + "\"}")
	refused := page.await("MESSAGE", toldTo("e", "ERROR"))
	require.Equal(t, "NOT_OPEN", refused.told.Code)
	require.Equal(t, "7", refused.told.Ref)
	page.subscribe("x", "/topic/nowhere")
	require.Equal(t, codeUnknownTopic, page.await("MESSAGE", toldTo("e", "ERROR")).told.Code)
	page.settle()
}

// TestStompSubscriptionsAreApart: two subscriptions to one topic are two MESSAGES,
// ending one leaves the other, and what nobody subscribed to is not sent.
func TestStompSubscriptionsAreApart(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	w.join("ann") // with a place, all topics of the show would be told on foyer.v1
	page := w.connectStomp("ann")
	topic := "/topic/stats/show/" + string(w.show.ID)
	page.subscribe("1", topic)
	page.subscribe("2:a", "/topic/stats/movie/"+string(w.show.ID))
	page.settle()
	page.mu.Lock()
	page.frames = nil
	page.mu.Unlock()
	stats := w.stats()
	tell := func() {
		stats.Version, stats.Active = stats.Version+1, stats.Active+1
		w.notifyStats(stats)
	}
	tell()
	first := page.await("MESSAGE", toldTo("1", "STATS"))
	second := page.await("MESSAGE", toldTo("2:a", "STATS"))
	require.Equal(t, first.body, second.body)
	require.NotEqual(t, first.get("message-id"), second.get("message-id"))
	page.send("UNSUBSCRIBE\nid:1\n\n")
	page.settle()
	tell()
	page.await("MESSAGE", toldTo("2:a", "STATS"))
	page.send("UNSUBSCRIBE\nid:2:a\n\n")
	page.settle()
	tell()
	page.settle()
	require.Len(t, page.heard("1"), 1)
	require.Len(t, page.heard("2:a"), 2)
	page.mu.Lock()
	defer page.mu.Unlock()
	for _, f := range page.frames {
		if f.command == "MESSAGE" {
			require.Equal(t, "STATS", f.told.Event)
		}
	}
}

// TestStompLimits: the limits are those of every socket, from when it is known
// whose it is; and those who have not said it are few.
func TestStompLimits(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.maxPerPerson, c.maxUnnamed, c.frameBurst, c.framesPerSecond = 1, 2, 10, 0.001
	})
	page := w.connectStomp("ann")
	second := w.dialStomp(nil)
	second.send("CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("ann", time.Hour) + "\n\n")
	code, reason := second.ended()
	require.Equal(t, closeRateLimited, code)
	require.Equal(t, codeTooManySockets, reason)
	testenv.Eventually(t, socketWait, "the second to be gone", func() bool { return w.hub.Sockets() == 1 })

	w.dialStomp(nil)
	w.dialStomp(nil)
	dialer := websocket.Dialer{Subprotocols: []string{protoStomp2}}
	_, response, err := dialer.DialContext(t.Context(), w.url(""), nil)
	require.ErrorIs(t, err, websocket.ErrBadHandshake)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)

	page.send(strings.Repeat("SEND\ndestination:/app/leave\n\n{\"showId\":\""+string(w.show.ID)+"\"}\x00", 12)) // in one message
	code, _ = page.ended()
	require.Equal(t, closeRateLimited, code)
}

// TestStompBeats: a client that asks for heart-beats gets them, one that asks for
// none is left alone.
func TestStompBeats(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.stompBeat = 30 * time.Millisecond })
	page := w.dialStomp(w.authorization("ann"))
	page.send("CONNECT\naccept-version:1.2\nheart-beat:0,20\n\n")
	require.Equal(t, "30,10000", page.await("CONNECTED").get("heart-beat"))
	quiet := w.connectStomp("bob")
	testenv.Eventually(t, socketWait, "three heart-beats", func() bool {
		page.mu.Lock()
		defer page.mu.Unlock()
		return page.beats >= 3
	})
	quiet.mu.Lock()
	defer quiet.mu.Unlock()
	require.Zero(t, quiet.beats)
}

// TestStompClientPromisesToBeHeard: a client that offers heart-beats is asked for them,
// and one that then says nothing for very long is closed, and comes back. R55: one that
// is only late, as a hidden tab is, is not.
func TestStompClientPromisesToBeHeard(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.stompAsks, c.stompPatience = 20*time.Millisecond, 400*time.Millisecond
	})
	connect := "CONNECT\naccept-version:1.2\nheart-beat:10,0\n\n"
	dumb, late := w.dialStomp(w.authorization("ann")), w.dialStomp(w.authorization("bob"))
	none := w.connectStomp("eve") // who offers none is asked for none
	dumb.send(connect)
	late.send(connect)
	require.Equal(t, "5000,20", dumb.await("CONNECTED").get("heart-beat"))
	late.await("CONNECTED")
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for beating, gone := 0, false; beating < 10; beating++ {
		<-beat.C
		require.NoError(t, late.conn.WriteMessage(websocket.TextMessage, []byte("\n")))
		dumb.mu.Lock()
		gone = gone || dumb.err != nil
		dumb.mu.Unlock()
		require.False(t, gone && beating < 2, "some patience")
	}
	code, _ := dumb.ended()
	require.Equal(t, closeSlow, code)
	late.settle()
	none.settle()
}

// TestStompOfOldPages: 1.0 knew no escapes, no versions, no heart-beats, and
// subscriptions without an id.
func TestStompOfOldPages(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.fill()
	dialer := websocket.Dialer{Subprotocols: []string{protoStomp0}}
	conn, _, err := dialer.DialContext(t.Context(), w.url(""), nil)
	require.NoError(t, err)
	require.Equal(t, protoStomp0, conn.Subprotocol())
	page := &stompPage{t: t, conn: conn, literal: true}
	w.reading(conn, page.read)
	page.send("CONNECT\nheart-beat:10,10\nAuthorization:Bearer " + w.token(`a\nn`, time.Hour) + "\n\n")
	connected := page.await("CONNECTED")
	require.Equal(t, "1.0", connected.get("version"))
	require.Empty(t, connected.get("heart-beat"))
	queue := "/topic/queue/" + string(w.show.ID) + `/a\nn`
	page.send("SUBSCRIBE\ndestination:" + queue + "\n\n")
	page.send("SEND\ndestination:/app/addQueue\nreceipt:a\\b:c\n\n{\"showId\":\"" + string(w.show.ID) + "\"}")
	place := page.await("MESSAGE")
	require.Equal(t, queue, place.get("destination"))
	require.Empty(t, place.get("subscription"))
	require.Equal(t, "ADMISSION", place.told.Event)
	page.await("RECEIPT", func(f stompTold) bool { return f.get("receipt-id") == `a\b:c` })
	page.send("UNSUBSCRIBE\ndestination:" + queue + "\nreceipt:off\n\n")
	page.await("RECEIPT", func(f stompTold) bool { return f.get("receipt-id") == "off" })
	page.send("UNSUBSCRIBE\ndestination:" + queue + "\n\n")
	code, _ := page.ended()
	require.Equal(t, closeBadFrames, code)
}

// TestStompFramesInPieces: a frame may come in several messages and a message may have
// several frames; a frame that never ends is refused.
func TestStompFramesInPieces(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page := w.dialStomp(nil)
	all := "CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("ann", time.Hour) + "\n\n\x00\n" +
		"SUBSCRIBE\nid:s\ndestination:/topic/stats/show/" + string(w.show.ID) + "\nreceipt:1\n\n\x00" +
		"SEND\ndestination:/app/addQueue\nreceipt:2\ncontent-length:" + fmt.Sprint(len(w.show.ID)+15) + "\n\n{\"showId\": \"" + string(w.show.ID) + "\" }\x00\n"
	for piece := range slices.Chunk([]byte(all), 7) {
		require.NoError(t, page.conn.WriteMessage(websocket.TextMessage, piece))
	}
	for _, receipt := range []string{"1", "2"} {
		page.await("RECEIPT", func(f stompTold) bool { return f.get("receipt-id") == receipt })
	}
	page.settle()
	for range 1 + maxStompFrame/4000 {
		require.NoError(t, page.conn.WriteMessage(websocket.TextMessage, []byte("SEND\na:"+strings.Repeat("x", 4000))))
	}
	code, _ := page.ended()
	require.Equal(t, closeBadFrames, code)
}

// TestStompHasAnAddressOfItsOwn: at /stomp a client that names no subprotocol, or one
// that is not STOMP, is spoken to in STOMP.
func TestStompHasAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	address := strings.Replace(w.url(""), socketRoute, stompRoute, 1)
	for chosen, asked := range map[string][]string{"": nil, protoStomp1: {subprotocol, protoStomp1}} {
		dialer := websocket.Dialer{Subprotocols: asked}
		conn, _, err := dialer.DialContext(t.Context(), address, nil)
		require.NoError(t, err)
		require.Equal(t, chosen, conn.Subprotocol())
		page := &stompPage{t: t, conn: conn}
		w.reading(conn, page.read)
		page.send("CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("ann", time.Hour) + "\n\n")
		page.await("CONNECTED")
		page.settle()
	}
}

// TestStompEndsLikeEverySocket: a drain and the end of a token reach STOMP too, also
// a socket that has not said whose it is.
func TestStompEndsLikeEverySocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.tokenGrace = time.Millisecond })
	short := w.dialStomp(nil)
	short.send("CONNECT\naccept-version:1.2\nAuthorization:Bearer " + w.token("bob", 2*time.Second) + "\n\n")
	short.await("CONNECTED")
	code, _ := short.ended()
	require.Equal(t, closeTokenExpired, code)
	named, unnamed := w.connectStomp("ann"), w.dialStomp(nil)
	testenv.Eventually(t, socketWait, "both sockets", func() bool { return w.hub.Sockets() == 2 })
	w.hub.Drain(context.WithoutCancel(t.Context()))
	for _, page := range []*stompPage{named, unnamed} {
		code, reason := page.ended()
		require.Equal(t, closeRestart, code)
		require.Contains(t, reason, "retryMs=")
	}
}
