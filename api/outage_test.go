package api

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/internal/testenv"
)

// barrier stands before a server and can cut everybody off.
type barrier struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]bool
}

func newBarrier(t *testing.T, target string) *barrier {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &barrier{listener: listener, target: target, conns: map[net.Conn]bool{}}
	b.running.Go(b.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		b.close()
		b.running.Wait()
	})
	return b
}

func (b *barrier) accept() {
	for {
		inner, err := b.listener.Accept()
		if err != nil {
			return
		}
		outer, err := net.Dial("tcp", b.target)
		if err != nil || !b.admit(inner, outer) {
			_ = inner.Close()
			if outer != nil {
				_ = outer.Close()
			}
			continue
		}
		b.running.Go(func() { pipe(inner, outer) })
		b.running.Go(func() { pipe(outer, inner) })
	}
}

func pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = from.Close(), to.Close()
}

func (b *barrier) admit(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		b.conns[c] = true
	}
	return !b.shut
}

func (b *barrier) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	for c := range b.conns {
		_ = c.Close()
	}
}

func (b *barrier) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = false
}

// unavailableNow requires an answer that says: not now, ask again then.
func (a answer) unavailableNow() {
	a.t.Helper()
	require.NotEmpty(a.t, a.fails(http.StatusServiceUnavailable, codeUnavailable).header.Get("Retry-After"))
}

func TestWithoutRedisEverythingThatNeedsItSaysNotNow(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	e := newEdgeOn(t, sqlite(t), server.URL)
	show := e.show(nil)
	me := e.inside(show)
	hold := e.hold(me, show, "A-1-1")
	room := e.newRoom(me)
	e.says(me, room, "x")
	server.Kill()
	for _, a := range []answer{
		e.call("", "GET", "/api/shows", nil),
		e.call("", "GET", show, nil),
		e.call(me, "POST", show+"/admission", nil),
		e.call(me, "GET", show+"/admission", nil),
		e.call(me, "DELETE", show+"/admission", nil),
		e.call(me, "POST", show+"/admission/claim", nil),
		e.call(me, "GET", show+"/seats", nil),
		e.call(me, "GET", show+"/holds", nil),
		e.call(me, "POST", show+"/holds", object{"seats": []string{"A-1-2"}}),
		e.call(me, "POST", show+"/holds", object{"best": object{"count": 1}}),
		e.call(me, "PUT", show+"/holds/"+hold, object{"seats": []string{"A-1-2"}}),
		e.call(me, "POST", show+"/holds/"+hold+"/extend", nil),
		e.call(me, "DELETE", show+"/holds/"+hold, nil),
		e.call(me, "POST", show+"/bookings", object{"holdId": hold}, headerKey, "k1"),
		e.call(me, "POST", room+"/read", object{"upTo": 1}),
		e.call(e.operator, "GET", "/api/operator/shows", nil),
		e.call(e.operator, "GET", "/api/operator/dead-letters", nil),
		e.call(me, "POST", "/api/socket-tickets", nil),
		e.call("", "GET", "/readyz", nil),
	} {
		a.unavailableNow()
	}
	// What SQL alone can tell goes on: bookings and the chat, read and written.
	require.Empty(t, e.call(me, "GET", "/api/bookings", nil).is(http.StatusOK).json["bookings"])
	e.call(me, "GET", room+"/messages", nil).is(http.StatusOK)
	e.says(me, room, "still here")
	require.Equal(t, int64(2), e.myRoom(me).LastSeq)
	server.Restart()
	testenv.Eventually(t, soon, "the show is back, in a new epoch", func() bool {
		return e.call("", "GET", show, nil).status == http.StatusOK
	})
	require.Greater(t, e.call("", "GET", show, nil).number("epoch"), int64(1))
	e.hold(e.inside(show), show, "A-1-1")
}

// A waiting room outlives its database: joining and waiting need what is in
// memory and in Redis. What sells or says something for good does not pretend.
func TestWithoutSQLTheWaitingRoomGoesOn(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(testenv.DatabaseURL(t))
	require.NoError(t, err)
	sql := newBarrier(t, database.Host)
	database.Host = sql.listener.Addr().String()
	e := newEdgeOn(t, database.String(), testenv.RedisURL(t))
	show := e.show(nil)
	me := e.inside(show)
	hold := e.hold(me, show, "A-1-1")
	room := e.newRoom(me)
	sql.close()
	e.server.shows.forgetAll()
	e.call("", "GET", show, nil).is(http.StatusOK)
	e.call(e.person(), "POST", show+"/admission", nil).is(http.StatusCreated)
	e.call(me, "GET", show+"/admission", nil).is(http.StatusOK)
	e.hold(me, show, "A-1-2")
	for _, a := range []answer{
		e.call(me, "POST", show+"/bookings", object{"holdId": hold}, headerKey, "k1"),
		e.call(me, "GET", "/api/bookings", nil),
		e.call(e.operator, "POST", "/api/shows", object{"title": "x"}),
		e.call(e.operator, "PATCH", show, object{"title": "x"}),
		e.call(me, "POST", room+"/messages", object{"text": "x"}),
		e.call(me, "GET", "/api/chat/rooms", nil),
		e.call("", "GET", "/api/shows/absent", nil),
		e.call("", "GET", "/readyz", nil),
	} {
		a.unavailableNow()
	}
	sql.open()
	testenv.Eventually(t, soon, "the same request books once SQL is back", func() bool {
		return e.call(me, "POST", show+"/bookings", object{"holdId": hold}, headerKey, "k1").status == http.StatusAccepted
	})
	require.Len(t, e.call(me, "GET", "/api/bookings", nil).json["bookings"], 1)
}
