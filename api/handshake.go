package api

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"
)

// Codes of problems that only a handshake has.
const (
	codeOriginRefused  = "ORIGIN_REFUSED"
	codeOverloaded     = "OVERLOADED"
	codeRestarting     = "RESTARTING"
	codeTooManySockets = "TOO_MANY_SOCKETS"
	codeNotAHandshake  = "NOT_A_HANDSHAKE"
)

// Retry-After of refused handshakes. Sockets are freed slowly, and a restart
// takes longer than a burst.
const (
	retryFull       = 10 * time.Second
	retryBurst      = 2 * time.Second
	retryRestarting = 5 * time.Second
	retryOwnSockets = 30 * time.Second
)

// handshake answers GET /ws and GET /stomp. Everything that can be refused is refused as plain
// HTTP, before the connection is taken over; from then on the socket is on its
// own and Echo is told that all is well.
func (h *Hub) handshake(c echo.Context) error {
	who, err := h.admitHandshake(c.Request())
	if err != nil {
		p := problemFor(err)
		h.metrics.handshake(strings.ToLower(p.Code))
		return err
	}
	s, err := takeOver(c.Response(), h.config.writeWait)
	if err != nil {
		h.mu.Lock()
		h.free(who.Person)
		h.mu.Unlock()
		return newProblem(http.StatusHTTPVersionNotSupported, codeNotAHandshake, "Not possible on this connection",
			"Sockets need HTTP/1.1.").because(err)
	}
	h.metrics.handshake("ok")
	request := c.Request()
	conn := newConnection(h, who, s, h.codecFor(request))
	h.sockets.serve(conn, request, func() { h.ended(conn) })
	return nil
}

// admitHandshake judges a handshake and counts its socket. Cheap checks come
// first, and a ticket is spent only on a handshake that would otherwise succeed.
func (h *Hub) admitHandshake(r *http.Request) (Identity, error) {
	ticket, inURL := takeTicket(r)
	if err := checkUpgrade(r); err != nil {
		return Identity{}, err
	}
	if !h.originAllowed(r) {
		return Identity{}, newProblem(http.StatusForbidden, codeOriginRefused, "Origin refused", "Pages of this origin may not connect here.")
	}
	if err := h.room(); err != nil {
		return Identity{}, err
	}
	if !inURL && len(r.Header.Values("Authorization")) == 0 && speaksStomp(r) {
		return Identity{}, h.reserve(Identity{}) // CONNECT is to say who it is
	}
	var who Identity
	var err error
	if inURL {
		who, err = h.redeem(r.Context(), ticket)
	} else {
		who, err = h.deps.identify(r)
	}
	if err != nil {
		return Identity{}, err
	}
	if !time.Now().Before(who.Expires) {
		return Identity{}, newProblem(http.StatusUnauthorized, codeTokenExpired, "Token expired", "The token is over; get a new one.")
	}
	return who, h.reserve(who)
}

func tooManySockets() *problem {
	return newProblem(http.StatusTooManyRequests, codeTooManySockets, "Too many sockets",
		"You have as many sockets open as one person may; close one.").retry(retryOwnSockets)
}

// takeTicket reads the ticket and strikes it from the request, so that nothing
// that logs the request's address can write it down.
func takeTicket(r *http.Request) (ticket string, inURL bool) {
	query := r.URL.Query()
	ticket, inURL = query.Get("ticket"), query.Has("ticket")
	r.URL.RawQuery = ""
	r.RequestURI = r.URL.Path
	return ticket, inURL
}

// checkUpgrade asks of a request what RFC 6455 asks of a handshake.
func checkUpgrade(r *http.Request) error {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	switch {
	case !websocket.IsWebSocketUpgrade(r):
		return newProblem(http.StatusUpgradeRequired, codeNotAHandshake, "Upgrade required", "This address speaks WebSocket.")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		return newProblem(http.StatusBadRequest, codeNotAHandshake, "Not a handshake", "Sec-WebSocket-Version must be 13.")
	case err != nil || len(key) != 16:
		return newProblem(http.StatusBadRequest, codeNotAHandshake, "Not a handshake", "Sec-WebSocket-Key must be 16 bytes in base64.")
	}
	return nil
}

// originAllowed keeps foreign pages from using a visitor's browser. A client that
// is no browser sends no origin; it has proved who it is by other means. A browser
// sends exactly one.
func (h *Hub) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	switch len(origins) {
	case 0:
		return true
	case 1:
	default:
		return false
	}
	if slices.Contains(h.config.origins, origins[0]) {
		return true
	}
	// Behind a proxy that ends TLS the server's own scheme is not to be known;
	// the host is what tells one site from another.
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// room refuses what the process cannot take before anything is spent on it.
func (h *Hub) room() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.closedDoor(); err != nil {
		return err
	}
	if !h.handshakes.Allow() {
		return newProblem(http.StatusServiceUnavailable, codeOverloaded, "Too many handshakes", "Try again shortly.").retry(retryBurst)
	}
	return nil
}

// closedDoor is called with mu held.
func (h *Hub) closedDoor() error {
	if h.draining || h.sockets == nil {
		return newProblem(http.StatusServiceUnavailable, codeRestarting, "Restarting", "This process is stopping; connect again.").retry(retryRestarting)
	}
	if h.reserved >= h.config.maxSockets {
		return newProblem(http.StatusServiceUnavailable, codeOverloaded, "Full", "This process has as many sockets as it can serve.").retry(retryFull)
	}
	return nil
}

// reserve counts a socket from here on, so that no crowd of simultaneous
// handshakes can pass a limit together.
func (h *Hub) reserve(who Identity) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.closedDoor(); err != nil {
		return err
	}
	switch {
	case who.Person == "" && h.persons[""] >= h.config.maxUnnamed:
		return newProblem(http.StatusServiceUnavailable, codeOverloaded, "Too many handshakes", "Try again shortly.").retry(retryBurst)
	case who.Person != "" && h.persons[who.Person] >= h.config.maxPerPerson:
		return tooManySockets()
	}
	h.reserved++
	h.persons[who.Person]++
	h.sockets.enter()
	return nil
}
