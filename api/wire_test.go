package api

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// tcpPair is both ends of a connection of the kernel; the client takes little at once.
func tcpPair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	client, err = net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	server, err = listener.Accept()
	require.NoError(t, err)
	require.NoError(t, client.(*net.TCPConn).SetReadBuffer(256<<10))
	require.NoError(t, server.(*net.TCPConn).SetWriteBuffer(256<<10))
	return server, client
}

// readFrame takes one frame of a server apart.
func readFrame(from *bufio.Reader) (kind byte, payload []byte, err error) {
	head := make([]byte, 2, maxFrameHead)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	length := uint64(head[1])
	more := map[byte]int{126: 2, 127: 8}[head[1]]
	if _, err := io.ReadFull(from, head[2:2+more]); err != nil {
		return 0, nil, err
	}
	switch more {
	case 2:
		length = uint64(binary.BigEndian.Uint16(head[2:4]))
	case 8:
		length = binary.BigEndian.Uint64(head[2:10])
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(from, payload)
	return head[0], payload, err
}

// R10: pings and frames were written at the same time, and the client saw neither.
// Here a hasty producer, pings and pongs share a line whose client takes little, so
// that most frames are begun by one side and finished by the other; each arrives
// whole and in its order, also where it cannot be known whether a write would wait.
func TestFramesStayWholeWhoeverWritesThem(t *testing.T) {
	t.Parallel()
	lines := map[string]func(*testing.T) (server, client net.Conn){
		"tcp":          tcpPair,
		"unknown line": func(*testing.T) (server, client net.Conn) { return net.Pipe() },
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const frames = 500
			lengths := []int{4, 125, 126, 300, maxAtOnce, maxAtOnce + 1, 0x10000}
			server, client := line(t)
			defer client.Close()
			defer server.Close()
			w := &wire{patience: socketWait}
			w.over(server)
			require.Equal(t, name == "tcp", w.raw != nil)
			calls, credit := make(chan struct{}, 1), make(chan struct{}, 1)
			pong := []byte{0x80 | websocket.PongMessage, 2, 'o', 'k'}
			var sides sync.WaitGroup
			sides.Go(func() { // melody's write goroutine
				for range calls {
					_, _ = w.Write([]byte{finalText, 0})
					credit <- struct{}{}
				}
			})
			asked := make(chan struct{}, frames)
			sides.Go(func() { // melody's read goroutine
				for range asked {
					_, _ = w.Write(pong)
				}
			})
			sides.Go(func() {
				defer close(calls)
				defer close(asked)
				for n := range frames {
					payload := make([]byte, lengths[n%len(lengths)])
					binary.BigEndian.PutUint32(payload, uint32(n))
					asked <- struct{}{}
					written, call := w.offer(payload)
					if call {
						calls <- struct{}{}
					}
					if !written { // wait for the credit, as a connection does
						<-credit
					}
					if sent, call := w.ping(); sent && call {
						calls <- struct{}{}
						<-credit
					}
				}
			})
			from := bufio.NewReader(client)
			_ = client.SetReadDeadline(time.Now().Add(6 * socketWait))
			for n := 0; n < frames; {
				kind, payload, err := readFrame(from)
				require.NoError(t, err)
				switch kind {
				case finalText:
					require.Len(t, payload, lengths[n%len(lengths)])
					require.EqualValues(t, n, binary.BigEndian.Uint32(payload))
					n++
				case pingFrame[0]:
					require.Empty(t, payload)
				default:
					require.Equal(t, pong, append([]byte{kind, byte(len(payload))}, payload...))
				}
			}
			_ = client.Close()
			sides.Wait()
		})
	}
}

// A frame that the client does not take is left in time, and nobody is written to
// behind half of it.
func TestWireBreaksWhenTimeRunsOut(t *testing.T) {
	t.Parallel()
	server, client := tcpPair(t)
	defer client.Close()
	defer server.Close()
	w := &wire{patience: 50 * time.Millisecond}
	w.over(server)
	const more = 32 << 20 // than any kernel keeps
	written, call := w.offer(make([]byte, more))
	require.False(t, written)
	require.True(t, call)
	_, err := w.Write([]byte{finalText, 0})
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.True(t, w.stalled.Load())
	written, call = w.offer([]byte("late"))
	require.False(t, written || call)
	_, err = w.Write(pingFrame[:])
	require.ErrorIs(t, err, net.ErrClosed)
}
