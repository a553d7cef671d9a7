package events

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// S33, S34: Redis is killed and comes back with its file while commands are
// published and consumed. Whatever was published without an error runs.
func TestRedisKilledAndRestartedLosesNothing(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	w := worldOn(t, server.URL)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Consumers = 2 })

	var accepted []domain.CommandID
	publishing := make(chan struct{})
	enough := make(chan struct{})
	go func() {
		defer close(publishing)
		for !isClosed(enough) {
			id := domain.CommandID(domain.NewID())
			if w.commands.BookSeats(t.Context(), id, BookSeats{Booking: booking(id)}) == nil {
				accepted = append(accepted, id)
			}
		}
	}()
	for range 2 {
		before := ran.distinct()
		w.eventually("commands flow", func() bool { return ran.distinct() > before+200 })
		server.Kill()
		server.Restart()
	}
	before := ran.distinct()
	w.eventually("commands flow again", func() bool { return ran.distinct() > before+200 })
	close(enough)
	<-publishing
	w.eventually("every accepted command has run", func() bool {
		for _, id := range accepted {
			if ran.of(id) == 0 {
				return false
			}
		}
		return true
	})
	w.settled()
	require.Empty(t, w.letters())
}

// S17: Redis comes back empty, without the group.
func TestRedisRestartedEmptyIsConsumedAgain(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	w := worldOn(t, server.URL)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.book(10)
	w.eventually("the first have run", func() bool { return ran.distinct() == 10 })
	server.Kill()
	server.Restart()
	w.eventually("Redis answers", func() bool { return w.rdb.Ping(t.Context()).Err() == nil })
	w.book(10)
	w.eventually("those after have run too", func() bool { return ran.distinct() == 20 })
}

// A worker that is started before Redis waits for it.
func TestWorkerStartedBeforeRedisWaits(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	server.Kill()
	w := worldOn(t, server.URL)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	server.Restart()
	w.eventually("Redis answers", func() bool { return w.rdb.Ping(t.Context()).Err() == nil })
	w.book(5)
	w.eventually("they have run", func() bool { return ran.distinct() == 5 })
}

// Trap 8, S13: a frozen server. What was read in vain is found again, and nothing
// hangs once the server goes on.
func TestTrap08FrozenRedisIsConsumedAgain(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	w := worldOn(t, server.URL)
	var ran tally
	w.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.book(10)
	w.eventually("the first have run", func() bool { return ran.distinct() == 10 })
	server.Stop(syscall.SIGSTOP)
	before := w.dials.Load()
	w.eventually("the reader gives its connection up", func() bool { return w.dials.Load() > before })
	server.Stop(syscall.SIGCONT)
	w.eventually("Redis answers", func() bool { return w.rdb.Ping(t.Context()).Err() == nil })
	w.book(10)
	w.eventually("those after have run too", func() bool { return ran.distinct() == 20 })
	w.settled()
}

// Trap 8: on a half-open connection, one that swallows what is sent and brings
// nothing, an endless block stayed stuck after the network had healed. Ours gives
// the connection up, dials anew, and takes over what it was sent in vain.
func TestTrap08HalfOpenConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	w := worldOn(t, server.URL)
	hole := newBlackHole(t, server.Addr)
	through := *w
	through.url = "redis://" + hole.addr + "/0"
	var ran tally
	through.work(Handlers{BookSeats: func(_ context.Context, d Delivery, _ BookSeats) error {
		ran.add(d.CommandID)
		return nil
	}})
	w.book(5)
	w.eventually("the first have run", func() bool { return ran.distinct() == 5 })
	w.settled()
	hole.swallow()
	w.book(5)
	w.eventually("those after have run too", func() bool { return ran.distinct() == 10 })
	w.settled()
}

// blackHole forwards connections until it is told to swallow them; connections
// made afterwards are forwarded again.
type blackHole struct {
	addr string
	mu   sync.Mutex
	gone []*atomic.Bool
}

func newBlackHole(t *testing.T, target string) *blackHole {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &blackHole{addr: listener.Addr().String()}
	var forwarding sync.WaitGroup
	var conns []net.Conn
	forwarding.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			swallowed := &atomic.Bool{}
			h.mu.Lock()
			h.gone = append(h.gone, swallowed)
			conns = append(conns, in, out)
			h.mu.Unlock()
			forwarding.Go(func() { forward(out, in, swallowed) })
			forwarding.Go(func() { forward(in, out, swallowed) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		h.mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		forwarding.Wait()
	})
	return h
}

func forward(to io.Writer, from net.Conn, swallowed *atomic.Bool) {
	buf := make([]byte, 16*1024)
	for {
		n, err := from.Read(buf)
		if err != nil {
			if c, ok := to.(net.Conn); ok && !swallowed.Load() {
				_ = c.Close()
			}
			return
		}
		if swallowed.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (h *blackHole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.gone {
		g.Store(true)
	}
}

// S43 and the embedded twin: all of it works on miniredis too, which `foyer dev`
// runs everything on.
func TestEmbeddedRedisCarriesCommands(t *testing.T) {
	t.Parallel()
	embedded := miniredis.RunT(t)
	w := worldOn(t, "redis://"+embedded.Addr()+"/0")
	ctx := t.Context()
	old := w.book(30)
	w.abandon(old...)
	poison := w.book(1)[0]
	w.raw("nonsense", "1")
	var ran tally
	worker := w.work(Handlers{BookSeats: func(ctx context.Context, d Delivery, _ BookSeats) error {
		if ran.add(d.CommandID) == 1 && d.CommandID == old[0] {
			return pause(ctx, 3*fast().Idle/2) // renewed meanwhile
		}
		if d.CommandID == poison {
			panic("poison")
		}
		return nil
	}}, func(cfg *ConsumerConfig) { cfg.Consumers = 2 })
	w.book(200)
	w.eventually("all have run", func() bool { return ran.distinct() == 231 })
	w.eventually("two are dead", func() bool { return len(w.letters()) == 2 })
	w.settled()
	require.Equal(t, 5, ran.of(poison))
	require.Equal(t, 231+4, ran.total())
	for _, letter := range w.letters() {
		if letter.CommandID == poison {
			require.NoError(t, NewDeadLetters(w.rdb).Requeue(ctx, StreamBooking, letter.ID))
		}
	}
	w.eventually("the requeued one has run", func() bool { return ran.of(poison) > 5 })
	w.eventually("it is dead again", func() bool { return len(w.letters()) == 2 })
	w.eventually("the stream is trimmed", func() bool { return w.rdb.XLen(ctx, StreamBooking).Val() == 0 })
	require.NoError(t, w.rdb.Del(ctx, StreamBooking).Err())
	w.book(5)
	w.eventually("the group is made again", func() bool { return ran.distinct() == 236 })
	worker.stop()
	consumers, err := w.rdb.XInfoConsumers(ctx, StreamBooking, "booking-workers").Result()
	require.NoError(t, err)
	for _, c := range consumers {
		require.Equal(t, ghost, c.Name)
	}
}

// Several groups in one process, each with its own stream, and the clients made
// for them are closed when the consumer has ended.
func TestConsumerClosesItsClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var clients []*redis.Client
	admitted := make(chan AdmitShow, 1)
	read := make(chan MarkRead, 1)
	worker := w.work(Handlers{
		AdmitShow: func(_ context.Context, _ Delivery, c AdmitShow) error { admitted <- c; return nil },
		MarkRead:  func(_ context.Context, _ Delivery, c MarkRead) error { read <- c; return nil },
	}, func(cfg *ConsumerConfig) {
		cfg.Groups = []string{GroupAdmission, GroupChat}
		cfg.Redis = func(string) redis.UniversalClient {
			clients = append(clients, w.client())
			return clients[len(clients)-1]
		}
	})
	admit := AdmitShow{ShowID: "t-show", Reason: ReasonTick, Tick: 1500 * time.Millisecond}
	require.NoError(t, w.commands.AdmitShow(t.Context(), admit))
	mark := MarkRead{domain.ReadMark{RoomID: "r", PersonID: "ann", UpTo: 7, Epoch: 2}}
	require.NoError(t, w.commands.MarkRead(t.Context(), mark))
	require.Equal(t, admit, <-admitted)
	require.Equal(t, mark, <-read)
	worker.stop()
	require.Len(t, clients, 3)
	for _, c := range clients {
		require.ErrorIs(t, c.Ping(context.WithoutCancel(t.Context())).Err(), redis.ErrClosed)
	}
}
