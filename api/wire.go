package api

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// maxAtOnce bounds the payload that is written at once, in bytes. A longer one,
	// such as the map of a large hall, is left to the socket's own goroutine.
	maxAtOnce = 16 << 10
	// maxFrameHead is the longest head of a frame of the server, in bytes.
	maxFrameHead = 10
	// finalText is the first byte of a text frame that is one message.
	finalText = 0x80 | websocket.TextMessage
)

// pingFrame is a whole frame.
var pingFrame = [...]byte{0x80 | websocket.PingMessage, 0}

// wire is the network connection below a socket. Two sides write to it. Frames come
// from the hub's writers, and pings from its sweep: a few goroutines that serve all
// sockets and so must never wait for one of them. Pongs and the goodbye come from the
// two goroutines that melody keeps for this socket, which may wait. What the kernel has no room for
// is left to those: it stands in waiting, and goes before anything else of theirs.
//
// A frame goes out whole before the next one begins, whoever writes.
type wire struct {
	net.Conn
	raw      syscall.RawConn // nil: it cannot be known whether a write would wait
	patience time.Duration   // for the kernel to take what waits

	turn     sync.Mutex // held by who writes
	broken   bool       // guarded by turn; a write failed, perhaps within a frame
	mu       sync.Mutex
	waiting  [][]byte    // frames, the first perhaps begun; their length is bounded by the credit
	finished atomic.Bool // a closing frame is on its way to the client
	stalled  atomic.Bool // a write ran out of time
}

// over puts the wire on a network connection.
func (w *wire) over(conn net.Conn) {
	w.Conn = conn
	if system, ok := conn.(syscall.Conn); ok { // TLS is none: the bytes are not ours to write
		w.raw, _ = system.SyscallConn()
	}
}

// offer writes a text frame as far as that takes no waiting, and tells whether it is
// written. If not, it stands in waiting; call tells whether somebody is to be called
// to Write, which they are not if they were before.
func (w *wire) offer(payload []byte) (written, call bool) {
	var head [maxFrameHead]byte
	return w.put(textHead(head[:0], len(payload)), payload)
}

// ping asks the client for a sign of life; not sent when frames wait, which it would
// have to stand behind.
func (w *wire) ping() (sent, call bool) {
	if w.owes() {
		return false, false
	}
	written, call := w.put(pingFrame[:], nil)
	return written || call, call
}

func (w *wire) put(head, payload []byte) (written, call bool) {
	if !w.turn.TryLock() { // somebody writes, and perhaps waits
		return false, w.leave(head, payload)
	}
	defer w.turn.Unlock()
	if w.broken || w.finished.Load() {
		return false, false // nobody is left to read it
	}
	if w.raw == nil || len(payload) > maxAtOnce || w.owes() {
		return false, w.leave(head, payload)
	}
	a := attempts.Get().(*attempt)
	defer attempts.Put(a)
	a.frame = append(append(a.frame[:0], head...), payload...)
	n, err := a.write(w.raw)
	switch {
	case err != nil:
		w.broken = true
		_ = w.Close() // its pumps notice at once
		return false, false
	case n == len(a.frame):
		return true, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	call = len(w.waiting) == 0
	begun := [][]byte{slices.Clone(head[min(n, len(head)):]), payload[max(n-len(head), 0):]}
	w.waiting = append(begun, w.waiting...)
	return false, call
}

// leave has the socket's own goroutines write a frame.
func (w *wire) leave(head, payload []byte) (call bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	call = len(w.waiting) == 0
	w.waiting = append(w.waiting, slices.Clone(head), payload)
	return call
}

func (w *wire) owes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

func (w *wire) next() (part []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.waiting = nil
		return nil, false
	}
	part = w.waiting[0]
	w.waiting = w.waiting[1:]
	return part, true
}

// Write is what melody's goroutines write with: what waits, and then p. A text frame
// of theirs is no more than the call to do so (see socket.send) and goes nowhere.
func (w *wire) Write(p []byte) (int, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	for part, ok := w.next(); ok; part, ok = w.next() {
		if err := w.push(part); err != nil {
			return 0, err
		}
	}
	if len(p) == 0 || p[0] == finalText {
		return len(p), nil
	}
	return len(p), w.push(p)
}

// push waits until the kernel has taken p. It is called with turn held.
func (w *wire) push(p []byte) error {
	if w.broken {
		return net.ErrClosed
	}
	if len(p) == 0 {
		return nil
	}
	_ = w.Conn.SetWriteDeadline(time.Now().Add(w.patience))
	_, err := w.Conn.Write(p)
	_ = w.Conn.SetWriteDeadline(time.Time{}) // an attempt fails behind a deadline that passed
	if err != nil {
		w.broken = true
		w.stalled.Store(errors.Is(err, os.ErrDeadlineExceeded)) // which melody does not tell
	}
	return err
}

// SetWriteDeadline does nothing: only what waits needs a deadline, and push sets it.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// textHead appends the head of a text frame that is one message (RFC 6455, 5.2).
func textHead(to []byte, length int) []byte {
	switch {
	case length <= 125:
		return append(to, finalText, byte(length))
	case length <= 0xffff:
		return binary.BigEndian.AppendUint16(append(to, finalText, 126), uint16(length))
	}
	return binary.BigEndian.AppendUint64(append(to, finalText, 127), uint64(length))
}

// frameCount follows the frames that a client sends by their heads (RFC 6455, 5.2), however
// its bytes are cut into pieces. Its zero value is before the first frame.
type frameCount struct {
	left  uint64 // bytes of the frame to come; with more above 0, its length as far as it was read
	more  uint8  // bytes of the length to come
	key   uint8  // bytes of the masking key, which follows the length
	first bool   // the head's first byte was there, its second was not
}

// take counts the frames that begin in the next bytes.
func (f *frameCount) take(bytes []byte) (begun int) {
	for len(bytes) > 0 {
		next := bytes[0]
		switch {
		case f.more > 0:
			f.left, f.more = f.left<<8|uint64(next), f.more-1
			f.mask()
		case f.left > 0:
			n := min(f.left, uint64(len(bytes)))
			f.left -= n
			bytes = bytes[n:]
			continue
		case !f.first:
			f.first = true
			begun++
		default:
			f.head(next)
		}
		bytes = bytes[1:]
	}
	return begun
}

// head takes the head's second byte: whether there is a key, and the length or of how
// many bytes it is.
func (f *frameCount) head(second byte) {
	f.first = false
	f.key = second >> 7 * 4
	switch length := second & 0x7f; length {
	case 126:
		f.more = 2
	case 127:
		f.more = 8
	default:
		f.left = uint64(length)
	}
	f.mask()
}

// mask adds the key to what is to come, once the length is known.
func (f *frameCount) mask() {
	if f.more == 0 {
		f.left += uint64(f.key)
	}
}

// attempts are kept for reuse: one is needed for the instant of a write.
var attempts = sync.Pool{New: func() any {
	a := &attempt{frame: make([]byte, 0, maxFrameHead+maxAtOnce)}
	a.try = func(fd uintptr) bool {
		a.n, a.err = writeNow(fd, a.frame)
		return true // never wait to try again
	}
	return a
}}

// attempt is one write to a connection that takes what there is room for.
type attempt struct {
	frame []byte
	n     int
	err   error
	try   func(fd uintptr) bool
}

func (a *attempt) write(to syscall.RawConn) (n int, err error) {
	if err := to.Write(a.try); err != nil {
		return 0, err
	}
	return a.n, a.err
}
