package api

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/olahol/melody"
)

// This file is the only one that knows melody. It uses melody for the upgrade,
// the two pumps and their life; never its broadcasts, whose cost grows with all
// sessions and which can block for ever, and never Session.Close alone, which
// does nothing while a session's buffer is full.

const (
	// socketReadBuffer holds what clients send at once, which is little: the longest
	// ping, and most frames. A longer frame is read in several goes.
	socketReadBuffer  = 128
	socketWriteBuffer = 256 // for what melody writes itself: pings, and the goodbye
	// socketQueue is melody's buffer of frames. A call to write and the closing frame
	// may stand here.
	socketQueue      = 8
	handshakeTimeout = 5 * time.Second
	never            = 365 * 24 * time.Hour
	// lingerTime is how long a socket that said goodbye waits for the client's
	// goodbye. Closing at once, with unread bytes on the line, would reset the
	// connection, and the client would never see why it was closed.
	lingerTime = time.Second
)

// socketConfig are the times and sizes of sockets; see hubConfig for defaults.
type socketConfig struct {
	writeWait, pongWait time.Duration
	maxFrame            int64 // bytes of one frame from a client
}

// socketEvents is what happens on sockets. Every function may panic: the socket
// it happened on is cut, and no other notices.
type socketEvents struct {
	opened   func(*connection)
	received func(c *connection, message []byte, binary bool)
	// begun counts frames of the wire that the client began, and tells whether it may
	// go on. If not, nothing more is read from it.
	begun    func(c *connection, frames int) (goOn bool)
	sent     func(*connection) // the frame given to send is written
	failed   func(c *connection, cause failure)
	panicked func(c *connection, value any)
}

// failure is why a socket ended from below.
type failure string

const (
	failureGone    failure = "gone"    // closed by the client, or broken
	failureSilent  failure = "silent"  // answered no ping in time
	failureTooBig  failure = "too_big" // sent a frame over the limit
	failureStalled failure = "stalled" // took no bytes in time
	failureFull    failure = "full"    // the queue overflowed, a defect of ours
)

// sockets upgrades requests and runs the pumps of every socket of the process.
type sockets struct {
	melody *melody.Melody
	events socketEvents
	// open counts sockets from when a handshake is let in until its socket is gone.
	open sync.WaitGroup
}

// newSockets starts melody's own goroutine; stop ends it.
func newSockets(config socketConfig, on socketEvents) *sockets {
	m := melody.New()
	m.Config.WriteWait = config.writeWait
	m.Config.PongWait = config.pongWait
	// The hub's sweep pings: a ping of melody's own wakes a goroutine and makes its
	// stack grow, for good, to twice its size.
	m.Config.PingPeriod = never
	m.Config.MaxMessageSize = config.maxFrame
	m.Config.MessageBufferSize = socketQueue
	m.Upgrader = &websocket.Upgrader{
		HandshakeTimeout: handshakeTimeout,
		ReadBufferSize:   socketReadBuffer,
		WriteBufferSize:  socketWriteBuffer,
		WriteBufferPool:  &sync.Pool{},
		Subprotocols:     subprotocols(),
		// The hub has judged the origin before the connection was taken over.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	s := &sockets{melody: m, events: on}
	m.HandleConnect(func(session *melody.Session) {
		s.guard(session, func(c *connection) {
			session.Request = nil // the upgrade has read it, and melody would keep it
			socketOf(c).session.Store(session)
			on.opened(c)
		})
	})
	m.HandleMessage(func(session *melody.Session, frame []byte) { s.receive(session, frame, false) })
	m.HandleMessageBinary(func(session *melody.Session, frame []byte) { s.receive(session, frame, true) })
	m.HandleSentMessage(func(session *melody.Session, _ []byte) { s.guard(session, on.sent) })
	// Nothing may be written or closed in here: on a full queue melody calls it
	// from inside the write, which would call it again, without end.
	m.HandleError(func(session *melody.Session, err error) {
		s.guard(session, func(c *connection) { on.failed(c, socketOf(c).classify(err)) })
	})
	return s
}

// receive hands a client's frame over, before the next one is read. That is done on a
// goroutine for the moment: steps into Redis and SQL go deep, and what a stack has
// grown by stays with an idle socket for long.
func (s *sockets) receive(session *melody.Session, frame []byte, binary bool) {
	var aside sync.WaitGroup
	aside.Go(func() {
		s.guard(session, func(c *connection) { s.events.received(c, frame, binary) })
	})
	aside.Wait()
}

// guard runs a callback for the session's connection. A panic ends that socket
// alone: melody would leave it open for ever, or the process would die.
func (s *sockets) guard(session *melody.Session, callback func(*connection)) {
	c := session.RemoteAddr().(*socket).owner
	defer func() {
		if value := recover(); value != nil {
			s.events.panicked(c, value)
		}
	}()
	callback(c)
}

// socketOf is the line of a connection that serve was given.
func socketOf(c *connection) *socket { return c.socket.(*socket) }

// enter counts a socket that is about to be served; leave must follow.
func (s *sockets) enter() { s.open.Add(1) }

// leave counts a socket that is gone, or never came about.
func (s *sockets) leave() { s.open.Done() }

// serve runs one socket until it is gone, then calls ended, which must leave. The
// connection has been taken over from the HTTP server already: what the server kept
// for the request (buffers, a deep stack) is free while the socket lives, which
// halves the memory of an idle one.
func (s *sockets) serve(c *connection, r *http.Request, ended func()) {
	socketOf(c).owner, socketOf(c).begun = c, s.events.begun
	go func() { // stop waits for it, by what enter counts
		defer ended()
		defer c.socket.cut()
		defer func() {
			if value := recover(); value != nil {
				s.events.panicked(c, value)
			}
		}()
		// A failed upgrade has nobody left to tell: the client's end is cut.
		_ = s.melody.HandleRequest(&takenOver{conn: socketOf(c)}, trimmed(r))
	}()
}

// stop waits until every socket is gone and ends melody's goroutine. No socket
// may enter any more: melody.Close leaves handlers blocked otherwise.
func (s *sockets) stop() {
	s.open.Wait()
	_ = s.melody.Close()
}

// trimmed keeps of a request what the upgrade reads, so that a socket does not
// hold on to cookies, tokens and the rest for as long as it lives.
func trimmed(r *http.Request) *http.Request {
	kept := http.Header{}
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Version", "Sec-Websocket-Key"} {
		if values, ok := r.Header[name]; ok {
			kept[name] = values
		}
	}
	if protocol := chosenProtocol(r); protocol != "" { // nothing else is left to choose
		kept["Sec-Websocket-Protocol"] = []string{protocol}
	}
	return &http.Request{Method: r.Method, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Host: r.Host, Header: kept}
}

// takenOver is the response of a request whose connection is ours: all it can do
// is to hand the connection on.
type takenOver struct {
	conn   net.Conn
	header http.Header
}

func (t *takenOver) Header() http.Header {
	if t.header == nil {
		t.header = http.Header{}
	}
	return t.header
}

// Write and WriteHeader take melody's error pages, for which it is too late.
func (t *takenOver) Write(p []byte) (int, error) { return len(p), nil }
func (t *takenOver) WriteHeader(int)             {}

func (t *takenOver) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	const smallest = 16 // the upgrade only looks whether bytes are waiting
	return t.conn, bufio.NewReadWriter(bufio.NewReaderSize(t.conn, smallest), bufio.NewWriterSize(t.conn, smallest)), nil
}

// takeOver hijacks the connection of a request; patience is for the kernel to take a
// frame. An error means that the response
// can still be written.
func takeOver(w http.ResponseWriter, patience time.Duration) (*socket, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	s := &socket{wire: wire{patience: patience}}
	s.over(conn)
	if buffered.Reader.Buffered() > 0 { // frames sent before the handshake's answer: not a client to keep
		s.cut()
	}
	return s, nil
}

// socket is one client's line: the network connection and melody's session on it.
type socket struct {
	wire
	owner    *connection
	begun    func(c *connection, frames int) (goOn bool)
	incoming frameCount
	session  atomic.Pointer[melody.Session] // set when the connect callback runs
	closing  sync.Once
}

// Read counts the frames that pass, before they are understood or answered. What comes
// after too many of them is thrown away until the line ends: an error here would end it
// before the goodbye, which says why.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	begun := s.incoming.take(p[:n])
	if begun == 0 || s.begun(s.owner, begun) {
		return n, err
	}
	for err == nil {
		_, err = s.Conn.Read(p)
	}
	return 0, err
}

// classify tells why the pumps ended. Where the client said goodbye or was told
// so by the pumps, Close waits for the other side of it.
func (s *socket) classify(err error) failure {
	var network net.Error
	switch {
	case errors.Is(err, melody.ErrMessageBufferFull):
		return failureFull
	case errors.Is(err, websocket.ErrReadLimit):
		s.finished.Store(true)
		return failureTooBig
	case s.stalled.Load():
		return failureStalled
	case errors.As(err, &network) && network.Timeout():
		return failureSilent
	}
	s.finished.Store(true)
	return failureGone
}

// RemoteAddr is the socket itself, which tells the address and, to guard, whose it is:
// a session has keys of its own, but a map for a single one is much for an idle socket.
func (s *socket) RemoteAddr() net.Addr { return s }

// Network and String are those of the client's address.
func (s *socket) Network() string { return s.Conn.RemoteAddr().Network() }
func (s *socket) String() string  { return s.Conn.RemoteAddr().String() }

// send writes one text frame. What would have to wait for the client is left to
// melody's write goroutine, which is called with an empty frame; that it is written
// is told by the sent event.
func (s *socket) send(payload []byte) (written bool) {
	written, call := s.offer(payload)
	if call {
		s.call()
	}
	return written
}

// ping asks the client for a sign of life, and tells whether it could.
func (s *socket) ping() (sent bool) {
	sent, call := s.wire.ping()
	if call {
		s.call()
	}
	return sent
}

// call has melody's write goroutine write what waits.
func (s *socket) call() {
	if session := s.session.Load(); session != nil {
		_ = session.Write(nil) // a closed session is told by the end of its pumps
	}
}

// finish queues a closing frame behind what is queued. It does nothing to a
// client that reads nothing: the sweep cuts that one.
func (s *socket) finish(code int, reason string) {
	s.finished.Store(true)
	if session := s.session.Load(); session != nil {
		_ = session.CloseWithMsg(melody.FormatCloseMessage(code, reason))
	}
}

// cut ends the socket now, whatever is in flight; its pumps notice at once.
func (s *socket) cut() { s.closing.Do(func() { _ = s.Conn.Close() }) }

// Close is what melody calls at the end of a session. When the end was ours it
// waits for the client's side of the goodbye, at most lingerTime.
func (s *socket) Close() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if ok && s.finished.Load() {
		late := time.AfterFunc(lingerTime, s.cut)
		if half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, s.Conn)
		}
		late.Stop()
	}
	s.cut()
	return nil
}
