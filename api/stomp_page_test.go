package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// stompPage is a page with a STOMP client, frame by frame.
type stompPage struct {
	t    *testing.T
	conn *websocket.Conn

	mu      sync.Mutex
	frames  []stompTold
	literal bool // 1.0 is spoken
	beats   int
	err     error // why reading ended
}

// stompTold is a frame of the server and, of a MESSAGE or ERROR, what its body tells.
type stompTold struct {
	stompFrame
	told  told
	taken bool
}

// dialStomp opens a socket without saying whose it is, unless header does.
func (w *hubWorld) dialStomp(header http.Header) *stompPage {
	w.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protoStomp2, protoStomp1, protoStomp0}}
	conn, _, err := dialer.DialContext(w.t.Context(), w.url(""), header)
	require.NoError(w.t, err)
	require.Equal(w.t, protoStomp2, conn.Subprotocol())
	page := &stompPage{t: w.t, conn: conn}
	w.reading(conn, page.read)
	return page
}

// connectStomp opens a socket and says whose it is.
func (w *hubWorld) connectStomp(person string) *stompPage {
	w.t.Helper()
	page := w.dialStomp(nil)
	page.send("CONNECT\naccept-version:1.2,1.1,1.0\nheart-beat:0,0\nAuthorization:Bearer " + w.token(person, time.Hour) + "\n\n")
	page.await("CONNECTED")
	return page
}

func (p *stompPage) read() {
	for {
		_, data, err := p.conn.ReadMessage()
		p.mu.Lock()
		if err != nil {
			p.err = err
			p.mu.Unlock()
			return
		}
		if bytes.Equal(data, []byte("\n")) {
			p.beats++
		}
		for len(bytes.TrimSpace(data)) > 0 {
			f, rest, err := parseStomp(data, p.literal)
			if err != nil {
				p.t.Errorf("frame %q: %v", data, err)
			}
			of := stompTold{stompFrame: f}
			if f.get("content-type") == "application/json" {
				if err := json.Unmarshal(f.body, &of.told); err != nil {
					p.t.Errorf("body %q: %v", f.body, err)
				}
			}
			p.frames, data = append(p.frames, of), rest
		}
		p.mu.Unlock()
	}
}

// send writes a frame; the NUL at its end is added.
func (p *stompPage) send(frame string) {
	p.t.Helper()
	require.NoError(p.t, p.conn.WriteMessage(websocket.TextMessage, []byte(frame+"\x00")))
}

func (p *stompPage) subscribe(id, destination string) {
	p.t.Helper()
	p.send("SUBSCRIBE\nid:" + id + "\ndestination:" + destination + "\n\n")
}

// await returns the earliest frame of a command that ok agrees to and that was not
// awaited before.
func (p *stompPage) await(command string, ok ...func(stompTold) bool) stompTold {
	p.t.Helper()
	var found stompTold
	testenv.Eventually(p.t, socketWait, command+" frame", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.frames {
			f := &p.frames[i]
			if !f.taken && f.command == command && (len(ok) == 0 || ok[0](*f)) {
				f.taken, found = true, *f
				return true
			}
		}
		if p.err != nil {
			p.t.Fatalf("no %s frame; socket: %v; frames: %+v", command, p.err, p.frames)
		}
		return false
	})
	return found
}

// heard returns the events that were told to a subscription so far.
func (p *stompPage) heard(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var heard []string
	for _, f := range p.frames {
		if f.command == "MESSAGE" && f.get("subscription") == id {
			heard = append(heard, f.told.Event)
		}
	}
	return heard
}

// settle waits until all that was asked for is done.
func (p *stompPage) settle() {
	p.t.Helper()
	ref := domain.NewID()
	p.send("SUBSCRIBE\nid:" + ref + "\ndestination:/user/queue/errors\nreceipt:" + ref + "\n\n")
	p.await("RECEIPT", func(f stompTold) bool { return f.get("receipt-id") == ref })
	p.send("UNSUBSCRIBE\nid:" + ref + "\n\n")
}

func (p *stompPage) ended() (code int, reason string) {
	p.t.Helper()
	testenv.Eventually(p.t, socketWait, "the socket's end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err != nil
	})
	var closed *websocket.CloseError
	if errors.As(p.err, &closed) {
		return closed.Code, closed.Text
	}
	return websocket.CloseAbnormalClosure, p.err.Error()
}

func toldTo(id, event string) func(stompTold) bool {
	return func(f stompTold) bool { return f.get("subscription") == id && f.told.Event == event }
}
