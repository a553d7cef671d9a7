package app

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/internal/config"
	"foyer/internal/testenv"
)

// A process that starts while Redis reads its data waits for it: otherwise a restart of
// both leaves fewer workers than there were.
func TestNewWaitsForARedisThatIsLoading(t *testing.T) {
	t.Parallel()
	server, err := url.Parse(testenv.StartRedis(t).URL)
	require.NoError(t, err)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = front.Close() })
	var refused atomic.Int32
	go func() {
		for {
			conn, err := front.Accept()
			if err != nil {
				return
			}
			go loadFirst(conn, server.Host, &refused)
		}
	}()
	back := *server
	back.Host = front.Addr().String()
	settings, err := config.Flags{RedisURL: back.String(), DatabaseURL: "sqlite:" + t.TempDir() + "/f.db"}.Load(config.RoleWorker)
	require.NoError(t, err)
	a, err := New(t.Context(), settings, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	a.Close()
	require.GreaterOrEqual(t, refused.Load(), int32(loadingAnswers))
}

// loadingAnswers is how often the server is asked until it has read its data.
const loadingAnswers = 4

// loadFirst answers as Redis does while it reads its data, and then passes on to one.
func loadFirst(conn net.Conn, host string, refused *atomic.Int32) {
	defer conn.Close()
	asked := make([]byte, 4096)
	for {
		n, err := conn.Read(asked)
		if err != nil {
			return
		}
		if refused.Add(1) > loadingAnswers {
			passOn(conn, host, asked[:n])
			return
		}
		for range bytes.Count(asked[:n], []byte("*")) { // one for each command
			_, _ = conn.Write([]byte("-LOADING Redis is loading the dataset in memory\r\n"))
		}
	}
}

func passOn(conn net.Conn, host string, begun []byte) {
	back, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer back.Close()
	_, _ = back.Write(begun)
	go func() { _, _ = io.Copy(back, conn) }()
	_, _ = io.Copy(conn, back)
}
