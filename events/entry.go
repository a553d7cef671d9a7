package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"foyer/domain"
)

// entry is a stream entry that this consumer owns, from its delivery until it is
// acknowledged, buried, lost to another consumer or handed back.
type entry struct {
	id       string
	fields   map[string]any
	failures int    // in a row, here; sets the delay
	reason   string // why it is given up; empty while it is not
	told     bool   // nobody is left to be told of its death
	rites    int    // failed tries to tell
	firstErr string
	lastErr  string
	// uncounted says that attempt is ahead of the count in Redis.
	uncounted bool

	mu      sync.Mutex
	attempt int  // deliveries, this one included
	started bool // a handler has been given it in this attempt
	since   time.Time
	cancel  context.CancelCauseFunc // of the running handler; nil when none runs
	lost    bool
	left    bool // nobody works on it any more, and it is not done
}

func (e *entry) begin(cancel context.CancelCauseFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started, e.since, e.cancel = true, time.Now(), cancel
}

func (e *entry) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel = nil
}

// interrupt ends the running handler's context. lost says that the entry has
// become another consumer's.
func (e *entry) interrupt(cause error, lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = e.lost || lost
	if e.cancel != nil {
		e.cancel(cause)
	}
}

func (e *entry) isLost() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost
}

func (e *entry) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left = true
}

func (e *entry) isLeft() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left
}

// stuck reports whether a handler has ignored the end of its context for so long
// that somebody else should try.
func (e *entry) stuck(timeout time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cancel != nil && time.Since(e.since) > immortal*timeout
}

// deliveries is the count that an entry is handed back with: an attempt that
// never began is not counted.
func (e *entry) deliveries() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started {
		return e.attempt - 1
	}
	return e.attempt
}

// failed keeps what went wrong. When the entry is to be tried again, the next
// attempt has another number, unless this one said nothing about the command.
func (e *entry) failed(err error, again bool) {
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
	if e.firstErr == "" {
		e.firstErr = text
	}
	e.lastErr = text
	e.failures++
	if !again {
		return
	}
	var unavailable unavailableError
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = false
	if !errors.As(err, &unavailable) {
		e.attempt++
		e.uncounted = true
	}
}

func (e *entry) field(name string) string {
	text, _ := e.fields[name].(string)
	return text
}

// commandID names the command in logs; an entry without one is named by its place.
func (e *entry) commandID() string {
	if id := e.field(fieldID); id != "" {
		return id
	}
	return e.id
}

// ledger is what one consumer owns right now. An entry in it is never started a
// second time here, however it is read again.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// add reports whether the entry was not owned yet.
func (l *ledger) add(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.entries[e.id]; ok {
		return false
	}
	l.entries[e.id] = e
	return true
}

func (l *ledger) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.entries[id]
	return ok
}

func (l *ledger) remove(entries ...*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		delete(l.entries, e.id)
	}
}

func (l *ledger) all() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*entry, 0, len(l.entries))
	for _, e := range l.entries {
		all = append(all, e)
	}
	return all
}

// receipt is a message's context and travels in it: what the handler is told, what
// runs it, and what became of it, because a Nack carries no error.
type receipt struct {
	context.Context           //nolint:containedctx // it is one
	deadline        time.Time // by which somebody cancels it
	delivery        Delivery
	run             func(context.Context) error
	err             error
}

type receiptKey struct{}

// Value implements context.Context.
func (r *receipt) Value(key any) any {
	if key == (receiptKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// Deadline implements context.Context, for clients that bound their waiting by it.
func (r *receipt) Deadline() (time.Time, bool) { return r.deadline, true }

// newReceipt makes a message of an entry, in a context that it is run in.
func newReceipt(ctx context.Context, deadline time.Time, e *entry) (*message.Message, *receipt) {
	msg := newMessage(e.id, e.fields)
	r := &receipt{Context: ctx, deadline: deadline, delivery: Delivery{
		CommandID: domain.CommandID(msg.UUID), EntryID: e.id, Attempt: e.attempt, At: madeAt(msg),
	}}
	msg.SetContext(r)
	return msg, r
}

func receiptOf(msg *message.Message) *receipt {
	r, _ := msg.Context().Value(receiptKey{}).(*receipt)
	return r
}

// Why an attempt or its context ended.
var (
	errHandlerTimeout = errors.New("handler timeout")
	errLostOwnership  = errors.New("another worker took the command over")
	errStopping       = errors.New("worker is stopping")
	errGone           = errors.New("handler did not return before the worker stopped")
	errNacked         = errors.New("handler refused the command")
	errCrashed        = errors.New("a worker ended while running it")
)

// entryID is a stream entry's id, which orders entries.
type entryID struct{ ms, seq uint64 }

func parseEntryID(text string) (entryID, error) {
	msText, seqText, _ := strings.Cut(text, "-")
	ms, err := strconv.ParseUint(msText, 10, 64)
	if err != nil {
		return entryID{}, fmt.Errorf("parse entry id %q: %w", text, err)
	}
	if seqText == "" {
		return entryID{ms: ms}, nil
	}
	seq, err := strconv.ParseUint(seqText, 10, 64)
	if err != nil {
		return entryID{}, fmt.Errorf("parse entry id %q: %w", text, err)
	}
	return entryID{ms, seq}, nil
}

func (id entryID) String() string {
	return strconv.FormatUint(id.ms, 10) + "-" + strconv.FormatUint(id.seq, 10)
}

func (id entryID) less(other entryID) bool {
	return id.ms < other.ms || id.ms == other.ms && id.seq < other.seq
}

func (id entryID) next() entryID {
	if id.seq++; id.seq == 0 {
		id.ms++
	}
	return id
}

func (id entryID) previous() entryID {
	if id == (entryID{}) {
		return id
	}
	if id.seq--; id.seq == ^uint64(0) {
		id.ms--
	}
	return id
}
