package api

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// A ticket is good once, also for two handshakes at the same instant.
func TestTicketWorksOnce(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	ticket := w.ticket("one")
	var opened, refused int
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			conn, response, err := websocket.DefaultDialer.DialContext(t.Context(), w.url("?ticket="+ticket), nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				opened++
				_ = conn.Close()
				return
			}
			if response != nil && response.StatusCode == http.StatusUnauthorized {
				refused++
			}
		})
	}
	group.Wait()
	require.Equal(t, 1, opened)
	require.Equal(t, 7, refused)
	for _, query := range []string{"?ticket=" + ticket, "?ticket=", "?ticket=never-issued", "?ticket=" + strings.Repeat("x", 1000)} {
		status, code, _ := w.refusedDial(query, nil)
		require.Equal(t, http.StatusUnauthorized, status)
		require.Equal(t, codeUnauthorized, code)
	}
}

// R52: a token whose letters depended on who asked for it was not allowed where it had
// to stand, and the handshake failed for some people. A ticket is letters, digits, - and
// _ for everybody, and stands in an address as it is.
func TestTicketIsFitForAnyAddress(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	fit := regexp.MustCompile(`^[A-Za-z0-9_-]{20,64}$`)
	for _, person := range []string{"plain", "zoë+tag@example.org", "a/b=c?d&e", "名前", strings.Repeat("x", 64)} {
		for range 20 {
			ticket := w.ticket(person)
			require.Regexp(t, fit, ticket)
			require.Equal(t, ticket, url.QueryEscape(ticket))
		}
		conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), w.url("?ticket="+w.ticket(person)), nil)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// A ticket lives for seconds only.
func TestTicketExpires(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.ticketLife = 50 * time.Millisecond })
	ticket, issued := w.ticket("one"), time.Now()
	testenv.Eventually(t, socketWait, "the ticket's time is over", func() bool { return time.Since(issued) > 100*time.Millisecond })
	status, _, _ := w.refusedDial("?ticket="+ticket, nil)
	require.Equal(t, http.StatusUnauthorized, status)
}

// The end of the token goes with the ticket: what a token may not do any more, a
// ticket got with it may not either.
func TestTicketEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	ticket := "ticket-of-an-old-token"
	require.NoError(t, w.steps.IssueTicket(t.Context(), ticket, []byte(`{"person":"one","name":"One","expires":"2020-01-01T00:00:00Z"}`), time.Minute))
	status, code, _ := w.refusedDial("?ticket="+ticket, nil)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, codeTokenExpired, code)
}

// Tickets are for people with a token only.
func TestTicketNeedsToken(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	response, err := w.http.Client().Post(w.http.URL+"/api/socket-tickets", "application/json", nil)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

// R51: a token in a URL ends up in logs and histories. It is not taken from there
// under any name, and a ticket that is refused leaves no trace in the log.
func TestNoTokenInURL(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	token := w.token("one", time.Hour)
	for _, name := range []string{"token", "access_token", "jwt", "Authorization"} {
		status, _, _ := w.refusedDial("?"+name+"="+token, nil)
		require.Equal(t, http.StatusUnauthorized, status, name)
	}
	status, _, _ := w.refusedDial("?ticket="+token, nil)
	require.Equal(t, http.StatusUnauthorized, status)
	ticket := w.ticket("one")
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), w.url("?ticket="+ticket), nil)
	require.NoError(t, err)
	_ = conn.Close()
	testenv.Eventually(t, socketWait, "the socket is gone", func() bool { return w.hub.Sockets() == 0 })
	require.NotContains(t, w.log.String(), ticket)
	require.NotContains(t, w.log.String(), token)
}

// A page of another origin must not use a visitor's browser. Origins are compared
// whole: no suffix, no prefix, no other scheme or port. A client that is no browser
// sends none; it has proved who it is.
func TestOrigins(t *testing.T) {
	t.Parallel()
	listed := newHubWorld(t, func(c *hubConfig, _ *hubDeps) {
		c.origins = []string{"https://tickets.example", "https://shop.example:8443"}
	})
	same := newHubWorld(t)
	own := same.http.Listener.Addr().String()
	for _, test := range []struct {
		name    string
		w       *hubWorld
		origins []string
		ok      bool
	}{
		{"none", listed, nil, true},
		{"listed", listed, []string{"https://tickets.example"}, true},
		{"listed with its port", listed, []string{"https://shop.example:8443"}, true},
		{"other scheme", listed, []string{"http://tickets.example"}, false},
		{"other port", listed, []string{"https://tickets.example:444"}, false},
		{"a suffix", listed, []string{"https://evil-tickets.example"}, false},
		{"a subdomain", listed, []string{"https://x.tickets.example"}, false},
		{"a prefix", listed, []string{"https://tickets.example.evil"}, false},
		{"opaque", listed, []string{"null"}, false},
		{"two", listed, []string{"https://tickets.example", "https://evil.example"}, false},
		{"own when others are listed", listed, []string{"http://" + listed.http.Listener.Addr().String()}, true},
		{"own", same, []string{"http://" + own}, true},
		{"own behind TLS", same, []string{"https://" + own}, true},
		{"foreign", same, []string{"https://tickets.example"}, false},
		{"opaque without a list", same, []string{"null"}, false},
		{"no scheme", same, []string{own}, false},
		{"none without a list", same, nil, true},
	} {
		header := test.w.authorization("one")
		header["Origin"] = test.origins
		if !test.ok {
			status, code, _ := test.w.refusedDial("", header)
			require.Equal(t, http.StatusForbidden, status, test.name)
			require.Equal(t, codeOriginRefused, code, test.name)
			continue
		}
		conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), test.w.url(""), header)
		require.NoError(t, err, test.name)
		_ = conn.Close()
	}
}

// A ticket is not spent on a handshake that is refused for another reason.
func TestRefusedOriginSparesTicket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	ticket := w.ticket("one")
	status, _, _ := w.refusedDial("?ticket="+ticket, http.Header{"Origin": {"https://evil.example"}})
	require.Equal(t, http.StatusForbidden, status)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), w.url("?ticket="+ticket), nil)
	require.NoError(t, err)
	_ = conn.Close()
}

// What is no handshake is answered as a plain problem, before anything is taken over.
func TestNotAHandshake(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	good := http.Header{
		"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Authorization": w.authorization("one")["Authorization"],
	}
	for _, test := range []struct {
		without, instead string
		status           int
	}{
		{"Connection", "", http.StatusUpgradeRequired},
		{"Upgrade", "h2c", http.StatusUpgradeRequired},
		{"Sec-Websocket-Version", "8", http.StatusBadRequest},
		{"Sec-Websocket-Key", "short", http.StatusBadRequest},
		{"Authorization", "", http.StatusUnauthorized},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.http.URL+"/ws", nil)
		require.NoError(t, err)
		request.Header = good.Clone()
		request.Header.Del(test.without)
		if test.instead != "" {
			request.Header.Set(test.without, test.instead)
		}
		response, err := w.http.Client().Do(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		require.Equal(t, test.status, response.StatusCode, test.without)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"), test.without)
	}
	require.Zero(t, w.hub.reserved)
}

// The subprotocol is answered when it is asked for, and is not needed.
func TestSubprotocol(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	for _, test := range []struct {
		asked []string
		got   string
	}{{nil, ""}, {[]string{"foyer.v1"}, "foyer.v1"}, {[]string{"other", "foyer.v1"}, "foyer.v1"}, {[]string{"other"}, ""}} {
		dialer := websocket.Dialer{Subprotocols: test.asked}
		conn, _, err := dialer.DialContext(t.Context(), w.url(""), w.authorization("one"))
		require.NoError(t, err)
		require.Equal(t, test.got, conn.Subprotocol())
		_ = conn.Close()
	}
}

// R17: a crowd of handshakes must not take the process down. Each limit holds for
// simultaneous handshakes, says when to come back, and lets in again once there is
// room.
func TestLimitsOfHandshakes(t *testing.T) {
	t.Parallel()
	t.Run("process", func(t *testing.T) {
		t.Parallel()
		w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.maxSockets = 3 })
		require.Equal(t, 3, w.crowd(names("p", 12)...))
		status, code, retry := w.refusedDial("", w.authorization("late"))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, codeOverloaded, code)
		require.NotEmpty(t, retry)
		testenv.Eventually(t, socketWait, "all that got in are open", func() bool { return w.hub.Sockets() == 3 })
		w.hub.all()[0].close(closeResync, "make room")
		testenv.Eventually(t, socketWait, "there is room again", func() bool { return w.hub.Sockets() == 2 })
		_, _ = w.open("late")
	})
	t.Run("person", func(t *testing.T) {
		t.Parallel()
		w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.maxPerPerson = 5 })
		require.Equal(t, 5, w.crowd("p", "p", "p", "p", "p", "p", "p", "p", "p"))
		status, code, retry := w.refusedDial("", w.authorization("p"))
		require.Equal(t, http.StatusTooManyRequests, status)
		require.Equal(t, codeTooManySockets, code)
		require.NotEmpty(t, retry)
		_, _ = w.open("other")
	})
	t.Run("rate", func(t *testing.T) {
		t.Parallel()
		w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.handshakesPerSecond = 0.5 }) // a burst of one
		require.Equal(t, 1, w.crowd(names("p", 4)...))
		status, code, retry := w.refusedDial("", w.authorization("late"))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, codeOverloaded, code)
		require.NotEmpty(t, retry)
	})
}

// crowd dials people at once and returns how many got in; their sockets stay open.
func (w *hubWorld) crowd(people ...string) int {
	w.t.Helper()
	var mu sync.Mutex
	opened := 0
	var group sync.WaitGroup
	for _, person := range people {
		group.Go(func() {
			if conn := w.tryDial(person); conn != nil {
				mu.Lock()
				defer mu.Unlock()
				opened++
				w.t.Cleanup(func() { _ = conn.Close() })
			}
		})
	}
	group.Wait()
	return opened
}

// R48: a token ends while its socket is open. The socket ends with it, after a
// grace for a page to get a new one, with a code that says so.
func TestTokenExpiryEndsSocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, d *hubDeps) {
		c.tokenGrace = 200 * time.Millisecond
		identify := d.identify
		d.identify = func(r *http.Request) (Identity, error) {
			who, err := identify(r)
			if who.Person == "ending" {
				who.Expires = time.Now().Add(300 * time.Millisecond)
			}
			return who, err
		}
	})
	began := time.Now()
	ending, _ := w.open("ending")
	lasting, _ := w.open("lasting")
	code, reason := ending.ended()
	require.Equal(t, closeTokenExpired, code)
	require.Equal(t, "token expired", reason)
	require.GreaterOrEqual(t, time.Since(began), 450*time.Millisecond, "the grace is given")
	lasting.settle(w)
	expired, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "ending", "exp": time.Now().Add(-time.Minute).Unix()}).SignedString(socketSecret)
	require.NoError(t, err)
	status, refusal, _ := w.refusedDial("", http.Header{"Authorization": {"Bearer " + expired}})
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, codeTokenExpired, refusal, "so that a page gets a new token instead of trying the dead one again")
}

// R46: after a rolling restart the first process up keeps all sockets. Each ends
// after a time of its own, with the window of a restart.
func TestLifeOfSocketIsBounded(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.lifeAtMost = 200 * time.Millisecond })
	page, _ := w.open("one")
	code, reason := page.ended()
	require.Equal(t, closeRestart, code)
	require.Contains(t, reason, "retryMs=")
}

// R14, R16: connecting and closing in numbers leaves nothing behind: no socket, no
// interest, no count of a person.
func TestStormOfSockets(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.join(names("s", 5)...)
	var storm sync.WaitGroup
	for range 10 {
		storm.Go(func() {
			for i := range 30 {
				conn := w.tryDial(names("s", 5)[i%5])
				if conn == nil {
					continue
				}
				if i%3 == 0 {
					_, _, _ = conn.ReadMessage()
				}
				w.hub.Gap("storm")
				_ = conn.Close()
			}
		})
	}
	storm.Wait()
	testenv.Eventually(t, socketWait, "nothing is left", func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return len(w.hub.connections) == 0 && w.hub.reserved == 0 && len(w.hub.persons) == 0 && w.hub.registry.entries() == 0
	})
}
