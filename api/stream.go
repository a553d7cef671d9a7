package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/events"
)

// streamRoute answers without an end, and so without requestTime.
const streamRoute = "/api/shows/:show/admission/stream"

// streamQueue holds the frame in flight, and what a goodbye has before it.
const streamQueue = 2 + maxErrorsQueued + 1

// Window in which a client of a stream that broke off is to come back; each is
// told a time of its own.
const (
	streamRetryLeast = time.Second
	streamRetryMost  = 5 * time.Second
)

// streamPlace answers GET /api/shows/{show}/admission/stream: server-sent events
// about one's own place, for clients that cannot have a socket. It is a connection
// of the hub like every socket, under the same limits, and ends as they do.
func (s *Server) streamPlace(c echo.Context, who Identity) error {
	show := showParam(c)
	if _, err := s.admissions.place(c.Request().Context(), who, show); err != nil {
		return err
	}
	return s.hub.stream(c, who, show)
}

func (h *Hub) stream(c echo.Context, who Identity, show domain.ShowID) error {
	if err := h.room(); err != nil {
		return err
	}
	if err := h.reserve(who); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	line := &stream{
		response: c.Response(), control: http.NewResponseController(c.Response()),
		messages: make(chan []byte, streamQueue), patience: h.config.writeWait, stop: cancel,
	}
	conn := newConnection(h, who, line, h.streamCodec(who, show))
	defer h.ended(conn)
	defer line.end()
	_ = line.control.SetReadDeadline(time.Time{}) // the request was read; from here on only its end counts
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	h.opened(conn)
	line.run(ctx, conn.written)
	return nil
}

// stream is the line of a connection whose client reads an answer that goes on.
type stream struct {
	response http.ResponseWriter
	control  *http.ResponseController
	messages chan []byte // nil is the end
	patience time.Duration
	stop     context.CancelFunc

	mu    sync.Mutex
	ended bool // the answer is not ours any more
}

// run writes what is sent until somebody says goodbye, or is gone.
func (s *stream) run(ctx context.Context, written func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case message := <-s.messages:
			if message == nil || s.write(message) != nil {
				return
			}
			written()
		}
	}
}

func (s *stream) write(message []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	if _, err := s.response.Write(message); err != nil {
		return err
	}
	return s.control.Flush()
}

// send never waits: there is one frame in flight, besides what close adds.
func (s *stream) send(message []byte) (written bool) {
	select {
	case s.messages <- message:
	default:
		s.cut()
	}
	return false
}

// ping does nothing: a client of a stream cannot answer, and its end is noticed.
func (*stream) ping() (sent bool) { return true }

// streamClose is the last event of a stream; the codes are those of sockets.
type streamClose struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

func (s *stream) finish(code int, reason string) {
	s.send(fmt.Appendf(nil, "event: close\ndata: %s\n\n", encode(streamClose{code, reason})))
	s.send(nil)
}

// cut ends a stream now, also one that is stuck in a write.
func (s *stream) cut() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended { // afterwards the network connection may serve another request
		_ = s.control.SetWriteDeadline(time.Now())
	}
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// streamCodec writes frames of one show as server-sent events.
type streamCodec struct {
	names map[string]string // of events, by topic
	beat  time.Duration
}

func (h *Hub) streamCodec(who Identity, show domain.ShowID) *streamCodec {
	request := h.deps.requests.For(show, who.Person)
	return &streamCodec{beat: h.config.heartbeat, names: map[string]string{
		admissionTopic(request): "admission", rankTopic(request): "rank", bookingTopic(request): "booking",
		statsTopic(show): "stats", soldOutTopic(show): "soldout",
	}}
}

func (*streamCodec) ready() bool { return true }

func (s *streamCodec) heartbeat() time.Duration { return s.beat }

func (*streamCodec) silent(*Hub, time.Time) bool { return false }

func (*streamCodec) received(*Hub, *connection, []byte, bool) {}

// greet leaves the place queued: it is the first event.
func (*streamCodec) greet(out *outbox, _ helloFrame) {
	retry := streamRetryLeast + rand.N(streamRetryMost-streamRetryLeast)
	out.put(laneHello, &pending{event: eventHello, key: eventHello, control: true, data: fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds())})
}

func (s *streamCodec) message(p *pending) []byte {
	name := s.names[p.topic]
	switch {
	case p.control:
		return p.data
	case p.event == events.EventHeartbeat:
		return []byte(":\n\n")
	case name == "":
		return nil
	}
	message := make([]byte, 0, len(p.data)+64)
	message = append(append(message, "event: "...), name...)
	message = strconv.AppendInt(append(message, "\nid: "...), p.stamp.epoch, 10)
	message = strconv.AppendInt(append(message, '-'), p.stamp.version, 10)
	message = append(append(message, "\ndata: "...), p.data...) // JSON of ours has no line ends
	return append(message, "\n\n"...)
}
