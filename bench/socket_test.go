package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/events"
	"foyer/internal/testenv"
	"foyer/store"
)

// The addresses of the office that a process of this test binary serves.
const (
	officeRedis    = "FOYER_BENCH_OFFICE_REDIS"
	officeDatabase = "FOYER_BENCH_OFFICE_DATABASE"
)

// collections are what stacks take to shrink to what they need: each halves them.
const collections = 3

func serveOffice(redisURL, databaseURL string) error {
	office, err := OpenOffice(context.Background(), redisURL, databaseURL)
	if err != nil {
		return err
	}
	fmt.Println(office.URL)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); { // each asks for the garbage to be taken out
		for range collections {
			debug.FreeOSMemory()
		}
		fmt.Println()
	}
	return office.Close()
}

// process is an office in a process of its own.
type officeProcess struct {
	url    string
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

func (s *stage) startOffice(b *testing.B) *officeProcess {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), officeRedis+"="+s.redisURL, officeDatabase+"="+s.sqlURL, "GOGC=100")
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(b, err)
	pipe, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	output := bufio.NewReader(pipe)
	line, err := output.ReadString('\n')
	require.NoError(b, err)
	return &officeProcess{url: strings.TrimSpace(line), cmd: cmd, input: input, output: output}
}

// close lets the process drain and end.
func (p *officeProcess) close(b *testing.B) {
	b.Helper()
	_ = p.input.Close()
	require.NoError(b, p.cmd.Wait())
}

// resident is the memory of the process in bytes, as the system counts it when
// garbage is collected and given back.
func (p *officeProcess) resident(b *testing.B) float64 {
	b.Helper()
	_, err := io.WriteString(p.input, "\n")
	require.NoError(b, err)
	_, err = p.output.ReadString('\n')
	require.NoError(b, err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			require.NoError(b, err)
			return 1024 * kilobytes
		}
	}
	b.Fatal("the system does not tell the memory of a process")
	return 0
}

// crowd is open sockets, read by a goroutine each.
type crowd struct {
	conns   []*websocket.Conn
	readers sync.WaitGroup
	hellos  atomic.Int64
	frames  atomic.Int64 // after HELLO
	codes   sync.Map     // close code to *atomic.Int64
}

// connect opens a socket for each of n people, at most 256 at once. Before its
// connection each has joined the show, where there is one.
func (s *stage) connect(b *testing.B, url string, show domain.ShowID, n int, took []time.Duration) *crowd {
	b.Helper()
	c := &crowd{conns: make([]*websocket.Conn, n)}
	const atOnce = 256
	var next atomic.Int64
	var dialling sync.WaitGroup
	failed := make(chan error, atOnce)
	for range atOnce {
		dialling.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				began := time.Now()
				conn, err := Dial(b.Context(), url, "person-"+strconv.FormatInt(i, 10))
				if err != nil {
					failed <- err
					return
				}
				c.conns[i] = conn
				_, _, err = conn.ReadMessage() // HELLO
				if err == nil && show != "" {
					err = conn.WriteJSON(map[string]string{"type": "join", "showId": string(show)})
				}
				if err != nil {
					failed <- err
					return
				}
				if took != nil {
					took[i] = time.Since(began)
				}
				c.hellos.Add(1)
				c.readers.Go(func() { c.read(conn) })
			}
		})
	}
	dialling.Wait()
	close(failed)
	require.NoError(b, <-failed)
	return c
}

func (c *crowd) read(conn *websocket.Conn) {
	for {
		if _, _, err := conn.NextReader(); err != nil {
			code := 1006
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				code = closed.Code
			}
			count, _ := c.codes.LoadOrStore(code, &atomic.Int64{})
			count.(*atomic.Int64).Add(1)
			_ = conn.Close()
			return
		}
		c.frames.Add(1)
	}
}

func (c *crowd) closed(code int) float64 {
	count, ok := c.codes.Load(code)
	if !ok {
		return 0
	}
	return float64(count.(*atomic.Int64).Load())
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.readers.Wait()
}

// embedded is the stage with a database in a file.
func (s *stage) embedded(b *testing.B) *stage {
	b.Helper()
	s.sqlURL = "sqlite:" + b.TempDir() + "/foyer.db"
	db, err := store.Open(b.Context(), s.sqlURL)
	require.NoError(b, err)
	b.Cleanup(func() { _ = db.Close() })
	require.NoError(b, db.Migrate(b.Context()))
	s.store = db
	return s
}

const socketCount = 10_000

// BenchmarkSocketMemory measures an idle socket of somebody who looks on, and of
// somebody who waits.
func BenchmarkSocketMemory(b *testing.B) {
	s := redisStage(b).embedded(b)
	Comparison{
		Name: "realtime-1-memory", Title: "Memory of an idle socket",
		About:   fmt.Sprintf("%d sockets in one process of their own. Its resident memory is read before the first and after the last, each time after three collections of garbage, as an idle process has in six minutes.", socketCount),
		Servers: s.servers,
		Metrics: []Metric{{"bytes", "bytes a socket"}},
		Variants: []Variant{
			{"idle socket", func(b *testing.B) Sample { return s.socketMemory(b, "") }},
			{"of somebody who waits", func(b *testing.B) Sample {
				return s.socketMemory(b, s.newShow(b, func(show *domain.Show) { show.Queue.MaxActive = 1 }).ID)
			}},
		},
		Goals: []Goal{
			{Text: "at most 16 KB each", Metric: "bytes", Variant: "idle socket", AtMost: 16 << 10},
			{Text: "at most 16 KB each, with a place in the line", Metric: "bytes", Variant: "of somebody who waits", AtMost: 16 << 10},
		},
		Repeats: 3,
	}.Run(b)
}

func (s *stage) socketMemory(b *testing.B, show domain.ShowID) Sample {
	p := s.startOffice(b)
	defer p.close(b)
	empty := p.resident(b)
	c := s.connect(b, p.url, show, socketCount, nil)
	defer c.leave()
	if show != "" {
		const answers = 2 // to a join: the place, and the show's numbers
		testenv.Eventually(b, time.Minute, "all have a place", func() bool { return c.frames.Load() >= answers*socketCount })
	}
	return Sample{"bytes": (p.resident(b) - empty) / socketCount}
}

// BenchmarkReconnectStorm lets everybody come at once.
func BenchmarkReconnectStorm(b *testing.B) {
	s := redisStage(b).embedded(b)
	Comparison{
		Name: "realtime-2-storm", Title: "Reconnect storm",
		About: fmt.Sprintf("%d people connect to a process that has just started, 256 at once, until each has its HELLO. "+
			"The limit of 300 handshakes a second, which protects a process in production, is lifted.", socketCount),
		Servers: s.servers,
		Metrics: []Metric{{"seconds", "seconds until all are in"}, {"rate", "sockets/s"}, {"p99", "p99 of one, ms"}},
		Variants: []Variant{{"10,000 sockets", func(b *testing.B) Sample {
			p := s.startOffice(b)
			defer p.close(b)
			took := make([]time.Duration, socketCount)
			meter := StartMeter()
			c := s.connect(b, p.url, "", socketCount, took)
			wall, _ := meter.Read()
			c.leave()
			return Sample{"seconds": wall.Seconds(), "rate": socketCount / wall.Seconds(), "p99": Millis(Quantile(took, 0.99))}
		}}},
		Repeats: 3,
	}.Run(b)
}

// BenchmarkDrain stops a process with people on it.
func BenchmarkDrain(b *testing.B) {
	const people = 2_000
	s := redisStage(b).embedded(b)
	Comparison{
		Name: "realtime-3-drain", Title: "Drain",
		About:   fmt.Sprintf("A process with %d sockets is told to stop. Each client should be told 1012, and come back elsewhere.", people),
		Servers: s.servers,
		Metrics: []Metric{{"restart", "closed with 1012"}, {"torn", "torn (1006)"}, {"seconds", "seconds until the process has ended"}},
		Variants: []Variant{{"2,000 sockets", func(b *testing.B) Sample {
			p := s.startOffice(b)
			c := s.connect(b, p.url, "", people, nil)
			meter := StartMeter()
			p.close(b)
			wall, _ := meter.Read()
			c.readers.Wait()
			return Sample{"restart": c.closed(websocket.CloseServiceRestart), "torn": c.closed(1006), "seconds": wall.Seconds()}
		}}},
		Goals: []Goal{{Text: "all of 2,000 are told 1012", Metric: "restart", Variant: "2,000 sockets", AtLeast: people}},
	}.Run(b)
}

// BenchmarkFreedSlot measures the way from a slot that becomes free, at one
// process, to the frame of who comes in next, on a socket of another.
func BenchmarkFreedSlot(b *testing.B) {
	s := newStage(b)
	Comparison{
		Name: "queue-5-freed-slot", Title: "From a freed slot to the next person's ADMISSION",
		About: "One person leaves by HTTP at one API process; the next hears of their turn on a socket of another. Between them: the script, the command on its stream, " +
			"the worker's step, the notification. 200 times, timed from before the request.",
		Servers:  s.servers,
		Metrics:  []Metric{{"p50", "p50 ms"}, {"p99", "p99 ms"}},
		Variants: []Variant{{"Foyer", s.freedSlot}},
		Goals: []Goal{
			{Text: "p50 below 10 ms on an idle machine", Metric: "p50", Variant: "Foyer", AtMost: 10},
			{Text: "p99 below 50 ms on an idle machine", Metric: "p99", Variant: "Foyer", AtMost: 50},
		},
	}.Run(b)
}

// guest is one of the two who take turns at the only slot.
type guest struct {
	web      *client.Client
	conn     *websocket.Conn
	admitted chan time.Time
}

func (s *stage) newGuest(b *testing.B, here, there *Office, show domain.ShowID, name string) *guest {
	b.Helper()
	web, err := client.New(here.URL, client.WithToken(Token(name)))
	require.NoError(b, err)
	conn, err := Dial(b.Context(), there.URL, name)
	require.NoError(b, err)
	_, _, err = conn.ReadMessage() // HELLO: from now on the socket hears
	require.NoError(b, err)
	g := &guest{web: web, conn: conn, admitted: make(chan time.Time, 16)}
	go func() {
		for {
			_, text, err := conn.ReadMessage()
			if err != nil {
				return
			}
			at := time.Now()
			var f Frame
			if json.Unmarshal(text, &f) == nil && f.Event == events.EventAdmission && f.Status == domain.StatusAdmitted {
				g.admitted <- at
			}
		}
	}()
	_, _, err = web.Join(b.Context(), show)
	require.NoError(b, err)
	return g
}

func (s *stage) freedSlot(b *testing.B) Sample {
	const rounds = 200
	show := s.newShow(b, func(show *domain.Show) { show.Queue.MaxActive, show.Queue.TurnSeconds = 1, 3600 })
	here, err := OpenOffice(b.Context(), s.redisURL, s.sqlURL)
	require.NoError(b, err)
	there, err := OpenOffice(b.Context(), s.redisURL, s.sqlURL)
	require.NoError(b, err)
	stop := s.work(b, events.GroupAdmission, s.store)
	inside, outside := s.newGuest(b, here, there, show.ID, "ann"), s.newGuest(b, here, there, show.ID, "bob")
	took := make([]time.Duration, rounds)
	for i := range took {
		for len(outside.admitted) > 0 {
			<-outside.admitted // told again of an earlier turn
		}
		began := time.Now()
		require.NoError(b, inside.web.Leave(b.Context(), show.ID))
		select {
		case at := <-outside.admitted:
			took[i] = at.Sub(began)
		case <-time.After(10 * time.Second):
			b.Fatal("nobody was let in within 10 s")
		}
		_, _, err := inside.web.Join(b.Context(), show.ID)
		require.NoError(b, err)
		inside, outside = outside, inside
	}
	_, _ = inside.conn.Close(), outside.conn.Close()
	stop()
	require.NoError(b, errors.Join(here.Close(), there.Close()))
	return Sample{"p50": Millis(Quantile(took, 0.5)), "p99": Millis(Quantile(took, 0.99))}
}
