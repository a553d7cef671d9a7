package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"foyer/domain"
)

// entry is a stream entry that this consumer owns, from its delivery until it is
// acknowledged, buried, lost to another consumer or handed back.
type entry struct {
	id       string
	fields   fields
	in       *lane  // where it has a place; nil when it has none
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
	running *receipt // of the running handler; nil when none runs
	lost    bool
	left    bool // nobody works on it any more, and it is not done
}

// depart gives the entry's place back. Only who works on the entry may.
func (e *entry) depart() {
	if e.in != nil {
		e.in.leave(1)
		e.in = nil
	}
}

func (e *entry) begin(r *receipt, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started, e.since, e.running = true, now, r
}

// end notes that the handler has returned, and reports whether the entry has
// become another consumer's.
func (e *entry) end() (lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = nil
	return e.lost
}

// interrupt ends the running handler's context. lost says that the entry has
// become another consumer's.
func (e *entry) interrupt(cause error, lost bool) {
	e.mu.Lock()
	running := e.running
	e.lost = e.lost || lost
	e.mu.Unlock()
	if running != nil {
		running.end(cause)
	}
}

// overdue reports whether a handler has been running for longer than it may.
func (e *entry) overdue(now time.Time, timeout time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running != nil && now.Sub(e.since) >= timeout
}

// leave notes that nobody works on the entry any more though it is not done.
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

// commandID names the command in logs.
func (e *entry) commandID() domain.CommandID { return commandID(e.id, e.fields) }

// delivery is what a handler is told of the attempt that is about to begin.
func (e *entry) delivery() Delivery {
	return Delivery{CommandID: e.commandID(), EntryID: e.id, Attempt: e.attempt, made: e.fields.Get(fieldAt)}
}

// ledger is what one consumer owns right now. An entry in it is never started a
// second time here, however it is read again.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// add returns those of the entries that were not owned yet, in their place.
func (l *ledger) add(entries []*entry) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	added := entries[:0]
	for _, e := range entries {
		if _, ok := l.entries[e.id]; !ok {
			l.entries[e.id] = e
			added = append(added, e)
		}
	}
	return added
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

// Why an attempt or its context ended.
var (
	errHandlerTimeout = errors.New("handler timeout")
	errLostOwnership  = errors.New("another worker took the command over")
	errStopping       = errors.New("worker is stopping")
	errGone           = errors.New("handler did not return before the worker stopped")
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
