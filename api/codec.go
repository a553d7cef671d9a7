package api

import (
	"net/http"
	"time"

	"github.com/gorilla/websocket"
)

// Subprotocols. A client that asks for none, or for none of these, gets foyer.v1, and
// at stompRoute STOMP.
const (
	subprotocol = "foyer.v1"
	protoStomp2 = "v12.stomp"
	protoStomp1 = "v11.stomp"
	protoStomp0 = "v10.stomp"
)

// Addresses of sockets. At stompRoute nothing but STOMP is spoken, also to clients
// that name no subprotocol.
const (
	socketRoute = "/ws"
	stompRoute  = "/stomp"
)

// subprotocols are those that the server speaks, the STOMP ones last.
func subprotocols() []string { return []string{subprotocol, protoStomp2, protoStomp1, protoStomp0} }

// chosenProtocol is the first that a client asks for and that is spoken here; ""
// when there is none.
func chosenProtocol(r *http.Request) string {
	for _, asked := range websocket.Subprotocols(r) {
		for _, spoken := range subprotocols() {
			if asked == spoken && (isStomp(spoken) || r.URL.Path != stompRoute) {
				return spoken
			}
		}
	}
	return ""
}

func isStomp(protocol string) bool {
	return protocol == protoStomp2 || protocol == protoStomp1 || protocol == protoStomp0
}

func speaksStomp(r *http.Request) bool {
	return r.URL.Path == stompRoute || isStomp(chosenProtocol(r))
}

// codec is the language of one connection. Registry, outbox, limits, expiry and
// drain are the same for all; a codec says what a client's message asks for, and
// how a frame is put. A frame's body is encoded once, whatever the codec.
type codec interface {
	// ready reports whether the client may be told things as soon as it is there;
	// otherwise received calls Hub.begin when it is.
	ready() bool
	// greet queues what the client hears first. It is called with mu held.
	greet(out *outbox, hello helloFrame)
	// message is the frame as it is sent; nil when this client is not to hear it.
	// It is called with mu held, and must not keep or change the frame.
	message(p *pending) []byte
	// heartbeat is how long a silence may last; 0: as long as it likes. It is
	// called with mu held.
	heartbeat() time.Duration
	// silent reports whether a client that promised to be heard is not. It is called
	// with mu held.
	silent(h *Hub, now time.Time) bool
	// received handles what the client sent.
	received(h *Hub, c *connection, message []byte, binary bool)
}

// codecFor makes the codec that a handshake asks for.
func (h *Hub) codecFor(r *http.Request) codec {
	if speaksStomp(r) {
		return &stompCodec{}
	}
	return h.json
}

// jsonCodec is foyer.v1: each message is one frame. It has no state, so that all
// connections share one.
type jsonCodec struct{ beat time.Duration }

func (*jsonCodec) ready() bool { return true }

func (*jsonCodec) greet(out *outbox, hello helloFrame) {
	out.empty(laneAdmission) // HELLO has them
	out.empty(laneRank)
	out.put(laneHello, &pending{event: eventHello, key: eventHello, data: encode(hello)})
}

func (*jsonCodec) message(p *pending) []byte { return p.data }

func (j *jsonCodec) heartbeat() time.Duration { return j.beat }

func (*jsonCodec) silent(*Hub, time.Time) bool { return false } // it promised nothing

func (*jsonCodec) received(h *Hub, c *connection, message []byte, binary bool) {
	c.await()
	switch {
	case !c.withinRate():
	case binary:
		c.reject("", "Frames are JSON text.")
	default:
		h.receivedFrame(c, message)
	}
}
