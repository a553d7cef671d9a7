package client

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"foyer/domain"
)

// Limits of one session.
const (
	maxFollowed = 64 // shows, and as many chat rooms
	maxTopics   = 64
	maxSending  = 256 // client frames waiting for their turn
	// opensBeforePolling is how many openings in a row must fail before
	// admission is polled instead.
	opensBeforePolling = 2
)

var (
	errTooMany  = errors.New("too many on one session")
	errNoShow   = errors.New("no show named")
	errNoTopic  = errors.New("no topic named")
	errNoRoom   = errors.New("no chat room named, or nothing read")
	errSilenced = errors.New("server sends what is no frame")
)

// session is the state of a Live. Everything in it belongs to the goroutine of run;
// opening and polling happen in goroutines of their own, one of each at most, which
// answer over channels and are waited for at the end.
type session struct {
	client *Client
	opts   LiveOptions
	out    chan<- Frame
	orders <-chan order

	shows   map[domain.ShowID]*followed
	topics  map[string]string       // with the ref of its subscription
	refs    int                     // given so far
	unread  map[domain.RoomID]int64 // read marks not sent yet
	newest  newest
	outbox  []Frame // delivered before anything more is received
	backoff backoff

	conn     *connection
	openedAt time.Time
	sending  []order // in order, while conn is there
	budget   sendBudget
	opened   chan opening
	polled   chan []answer
	failed   int  // openings in a row
	polling  bool // a poll is out

	openAt, pollAt, sendAt *time.Timer
	helpers                sync.WaitGroup
}

// followed is a show whose admission matters to the person.
type followed struct {
	want orderKind // join, claim or leave that the server has not answered; else ""
	ref  string    // of want
}

type opening struct {
	conn *connection
	err  error
}

func newSession(c *Client, opts LiveOptions, out chan<- Frame, orders <-chan order) *session {
	return &session{
		client: c, opts: opts, out: out, orders: orders,
		shows: map[domain.ShowID]*followed{}, topics: map[string]string{}, unread: map[domain.RoomID]int64{},
		newest:  newest{},
		backoff: backoff{least: opts.BackoffLeast, most: opts.BackoffMost},
		opened:  make(chan opening), polled: make(chan []answer),
	}
}

// run is the loop; it returns nil when ctx ended, else why going on is pointless.
func (s *session) run(ctx context.Context) error {
	s.openAt, s.pollAt, s.sendAt = time.NewTimer(0), stoppedTimer(), stoppedTimer()
	ctx, cancel := context.WithCancel(ctx)
	defer s.end(cancel)
	for {
		// A full queue of frames to send makes callers wait.
		orders := s.orders
		if len(s.sending) >= maxSending {
			orders = nil
		}
		// While a frame waits for the reader of Frames no further one is taken in.
		var in <-chan []byte
		var out chan<- Frame
		var head Frame
		if len(s.outbox) > 0 {
			out, head = s.out, s.outbox[0]
		} else if s.conn != nil {
			in = s.conn.frames
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case out <- head:
			s.outbox = s.outbox[1:]
		case o := <-orders:
			o.taken <- s.take(o)
		case raw, ok := <-in:
			if err = s.receive(raw, ok); err != nil {
				return err
			}
		case <-s.openAt.C:
			s.startOpening(ctx)
		case o := <-s.opened:
			err = s.openingDone(o)
		case <-s.pollAt.C:
			s.startPoll(ctx)
		case answers := <-s.polled:
			s.pollDone(answers)
		case <-s.sendAt.C:
			s.send()
		}
		if err != nil {
			return err
		}
	}
}

// end stops what is out and gives everything back.
func (s *session) end(cancel context.CancelFunc) {
	cancel()
	for _, timer := range []*time.Timer{s.openAt, s.pollAt, s.sendAt} {
		timer.Stop()
	}
	s.helpers.Wait()
	if s.conn != nil {
		s.conn.close()
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// startOpening opens a socket beside the loop, which meanwhile polls and takes orders.
func (s *session) startOpening(ctx context.Context) {
	s.helpers.Go(func() {
		conn, err := s.client.open(ctx, s.opts.Silence)
		select {
		case s.opened <- opening{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				conn.close()
			}
		}
	})
}

func (s *session) openingDone(o opening) error {
	if o.err != nil {
		if finalOpen(o.err) {
			return o.err
		}
		if s.failed++; s.failed == opensBeforePolling {
			s.pollAt.Reset(0)
		}
		s.openAt.Reset(s.backoff.next(o.err))
		return nil
	}
	s.conn, s.openedAt, s.failed = o.conn, time.Now(), 0
	s.pollAt.Stop()
	s.budget = sendBudget{left: sendBurst, at: s.openedAt}
	s.sending = nil
	for topic, ref := range s.topics {
		s.sending = append(s.sending, order{kind: orderSubscribe, topic: topic, ref: ref})
	}
	for show, f := range s.shows {
		if f.want != "" {
			s.sending = append(s.sending, order{kind: f.want, show: show, ref: f.ref})
		}
	}
	for room, upTo := range s.unread {
		s.sending = append(s.sending, order{kind: orderRead, room: room, upTo: upTo, ref: s.newRef(orderRead)})
	}
	s.send()
	return nil
}

// receive handles a frame of the socket, or its end.
func (s *session) receive(raw []byte, ok bool) error {
	if !ok {
		return s.lost(s.conn.err)
	}
	f, err := decodeFrame(raw)
	if err != nil {
		return s.lost(errors.Join(errSilenced, err))
	}
	s.deliver(f)
	if f.Hello != nil {
		for _, p := range f.Hello.Places {
			s.deliver(placeFrame(p))
		}
	}
	return nil
}

// deliver queues a frame unless it is older than what was delivered before.
func (s *session) deliver(f Frame) {
	if s.newest.stale(f) {
		return
	}
	s.note(&f)
	s.outbox = append(s.outbox, f)
}

// lost gives the socket up and plans the next, unless the server said not to come.
func (s *session) lost(err error) error {
	s.conn.close()
	if time.Since(s.openedAt) >= s.opts.Stable {
		s.backoff.reset()
	}
	s.conn, s.sending = nil, nil
	s.sendAt.Stop()
	if err := finalClose(err); err != nil {
		return err
	}
	s.openAt.Reset(s.backoff.next(err))
	return nil
}

// note keeps up with what the server said about places.
func (s *session) note(f *Frame) {
	switch f.Event {
	case EventAdmission:
		s.settle(f.ShowID, f.Admission.Status)
	case EventError:
		s.noteRefusal(f)
	}
}

// noteRefusal forgets what was refused, so that it is not sent again, and names the
// show that it was about.
func (s *session) noteRefusal(f *Frame) {
	for show, followed := range s.shows {
		if followed.want != "" && f.Error.Ref == followed.ref {
			f.ShowID = show
			s.refused(show, followed)
		}
	}
	for topic, ref := range s.topics {
		if ref == f.Error.Ref {
			f.Topic = topic
			delete(s.topics, topic)
		}
	}
}

// settle takes a status for the answer to what was wanted.
func (s *session) settle(show domain.ShowID, status domain.Status) {
	f := s.shows[show]
	switch {
	case f == nil && !final(status) && len(s.shows) < maxFollowed:
		s.shows[show] = &followed{}
	case f == nil:
	case f.want == orderJoin && final(status):
		// It is the end of an earlier place; the join is still on its way.
		if status == domain.StatusSoldOut || status == domain.StatusClosed {
			delete(s.shows, show)
		}
	case final(status):
		delete(s.shows, show)
	case f.want == orderJoin, f.want == orderClaim && status == domain.StatusActive:
		f.want = ""
	}
}

// refused drops what the server will not do; a place that is there is followed on.
func (s *session) refused(show domain.ShowID, f *followed) {
	if f.want == orderJoin {
		delete(s.shows, show)
		return
	}
	f.want = ""
}

// take accepts an order, and sends it when there is a socket.
func (s *session) take(o order) error {
	o.ref = s.newRef(o.kind)
	if err := s.record(o); err != nil || o.kind == orderFollow {
		return err
	}
	if s.conn != nil {
		s.sending = append(s.sending, o)
		s.send()
	} else if s.failed >= opensBeforePolling && o.show != "" {
		s.pollAt.Reset(0)
	}
	return nil
}

// record keeps what must outlive a connection.
func (s *session) record(o order) error {
	switch o.kind {
	case orderSubscribe:
		if o.topic == "" {
			return errNoTopic
		}
		if _, known := s.topics[o.topic]; !known && len(s.topics) >= maxTopics {
			return errTooMany
		}
		s.topics[o.topic] = o.ref
	case orderUnsubscribe:
		delete(s.topics, o.topic)
	case orderRead:
		if o.room == "" || o.upTo <= 0 {
			return errNoRoom
		}
		if _, known := s.unread[o.room]; !known && len(s.unread) >= maxFollowed {
			return errTooMany
		}
		s.unread[o.room] = max(s.unread[o.room], o.upTo)
	default:
		return s.want(o)
	}
	return nil
}

func (s *session) want(o order) error {
	if o.show == "" {
		return errNoShow
	}
	f := s.shows[o.show]
	if f == nil {
		if len(s.shows) >= maxFollowed {
			return errTooMany
		}
		f = &followed{}
		s.shows[o.show] = f
	}
	if o.kind != orderFollow {
		f.want, f.ref = o.kind, o.ref
	}
	return nil
}

// newRef is a short name for a client frame: the kind tells a reader what was
// refused, the number which.
func (s *session) newRef(kind orderKind) string {
	s.refs++
	return string(kind) + "-" + strconv.Itoa(s.refs)
}
