package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Limits of one connection.
const (
	openTimeout   = 10 * time.Second
	writeTimeout  = 5 * time.Second
	maxFrameBytes = 16 << 20
	subprotocol   = "foyer.v1"
)

// connection is one open socket. Its reader runs until the socket fails or close
// is called; then frames is closed and err tells why. One goroutine may write.
type connection struct {
	ws     *websocket.Conn
	frames chan []byte
	err    error // valid once frames is closed
	gone   chan struct{}
	once   sync.Once
	reader sync.WaitGroup
}

// open gets a one-time ticket and dials with it.
func (c *Client) open(ctx context.Context, silence time.Duration) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var answer struct {
		Ticket string `json:"ticket"`
	}
	if _, err := c.do(ctx, call{method: http.MethodPost, path: path("socket-tickets"), answer: &answer}); err != nil {
		return nil, fmt.Errorf("socket ticket: %w", err)
	}
	address := *c.base
	address.Scheme = strings.Replace(address.Scheme, "http", "ws", 1)
	address.Path += "/ws"
	address.RawQuery = url.Values{"ticket": {answer.Ticket}}.Encode()
	dialer := c.dialer()
	ws, resp, err := dialer.DialContext(ctx, address.String(), nil)
	if errors.Is(err, websocket.ErrBadHandshake) && resp != nil {
		return nil, fmt.Errorf("socket handshake: %w", problemOf(resp, resp.Body))
	}
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	conn := &connection{ws: ws, frames: make(chan []byte), gone: make(chan struct{})}
	ws.SetReadLimit(maxFrameBytes)
	conn.reader.Go(func() { conn.read(silence) })
	return conn, nil
}

// dialer goes the same way to the server as the http.Client does.
func (c *Client) dialer() websocket.Dialer {
	d := websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: openTimeout,
		Subprotocols: []string{subprotocol}, ReadBufferSize: 1024, WriteBufferSize: 1024,
	}
	if t, ok := c.http.Transport.(*http.Transport); ok {
		d.Proxy, d.NetDialContext = t.Proxy, t.DialContext
		if t.TLSClientConfig != nil {
			d.TLSClientConfig = t.TLSClientConfig.Clone()
			d.TLSClientConfig.NextProtos = nil // the transport's own may offer HTTP/2, on which no socket opens
		}
	}
	return d
}

// read passes frames on until the socket fails. silence is how long nothing at all,
// not even a ping, may come before the server is taken for dead.
func (conn *connection) read(silence time.Duration) {
	defer close(conn.frames)
	alive := func() { _ = conn.ws.SetReadDeadline(time.Now().Add(silence)) }
	pong := conn.ws.PingHandler()
	conn.ws.SetPingHandler(func(data string) error {
		alive()
		return pong(data)
	})
	for {
		alive()
		_, frame, err := conn.ws.ReadMessage()
		if err != nil {
			conn.err = fmt.Errorf("socket: %w", err)
			return
		}
		select {
		case conn.frames <- frame:
		case <-conn.gone:
			conn.err = ErrClosed
			return
		}
	}
}

// write sends one frame; a server that takes none for writeTimeout is given up on.
func (conn *connection) write(frame any) error {
	encoded, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	_ = conn.ws.SetWriteDeadline(time.Now().Add(writeTimeout))
	return conn.ws.WriteMessage(websocket.TextMessage, encoded)
}

// close says goodbye, closes the socket and waits for its reader. Safe twice.
func (conn *connection) close() {
	conn.once.Do(func() {
		close(conn.gone)
		goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "done")
		_ = conn.ws.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second))
		_ = conn.ws.Close()
	})
	conn.reader.Wait()
}
