package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

// Reasons of a dead letter.
const (
	DeadUndecodable = "undecodable"     // the entry is not a whole command
	DeadUnknown     = "unknown command" // of a type or version that nobody here knows
	DeadPermanent   = "permanent error" // the handler said that trying again is useless
	DeadExhausted   = "exhausted"       // it has failed, or ended its worker, too often
)

// Fields of a dead letter, beside all those of its entry.
const (
	deadPrefix     = "dead."
	deadOrigin     = deadPrefix + "origin" // the entry's id
	deadReason     = deadPrefix + "reason"
	deadDeliveries = deadPrefix + "deliveries"
	deadFirstError = deadPrefix + "first_error"
	deadLastError  = deadPrefix + "last_error"
)

// MaxDeadLetters bounds what DeadLetters.List returns of one stream.
const MaxDeadLetters = 1000

// ErrDeadLetterNotFound is returned when no dead letter has the id.
var ErrDeadLetterNotFound = errors.New("dead letter not found")

// refusedError says that an entry cannot be given to any handler, and why.
type refusedError struct {
	reason string
	error
}

func (e refusedError) Unwrap() error { return e.error }

// deadStream is where a stream's dead letters are. On a Cluster both must live
// in one slot for a script to touch both, hence the braces there.
func deadStream(rdb redis.UniversalClient, stream string) string {
	if _, cluster := rdb.(*redis.ClusterClient); cluster {
		return "{" + stream + "}.dead"
	}
	return stream + ".dead"
}

// bury tells of an entry's death and makes it a dead letter. It reports true
// when one of these must be tried again.
func (s *subscription) bury(ctx context.Context, e *entry) (again bool) {
	// Who has lost an entry must not tell of its death: another may be running it.
	owned, err := s.own(ctx, 0, []*entry{e}, false)
	if err != nil {
		e.failures++
		return true
	}
	if owned[0] != entryOwned {
		s.forget(e)
		return false
	}
	if err := s.tell(ctx, e); err != nil {
		e.failures++
		s.log.WarnContext(ctx, "telling of a dead command failed", "command_id", e.commandID(), "entry_id", e.id, "error", err)
		return true
	}
	letter := []any{s.group, s.consumer, e.id,
		deadOrigin, e.id, deadReason, e.reason, deadDeliveries, e.attempt, deadFirstError, e.firstErr, deadLastError, e.lastErr}
	kept := 0
	for _, f := range e.fields {
		if kept++; kept > maxDeadFields || strings.HasPrefix(f.name, deadPrefix) {
			continue
		}
		letter = append(letter, f.name, f.value)
	}
	keys := []string{s.stream, deadStream(s.commands, s.stream)}
	result, err := buryScript.Run(context.WithoutCancel(ctx), s.commands, keys, letter...).Int()
	if err != nil {
		e.failures++
		s.log.WarnContext(ctx, "making a dead letter failed, trying again", "command_id", e.commandID(), "entry_id", e.id, "error", err)
		return true
	}
	if result != entryOwned {
		s.forget(e)
		return false
	}
	s.metrics.dead.WithLabelValues(s.stream, e.reason).Inc()
	s.log.ErrorContext(ctx, "command became a dead letter", "command_id", e.commandID(), "entry_id", e.id,
		"attempt", e.attempt, "reason", e.reason, "error", e.lastErr)
	s.owned.remove(e)
	return false
}

// tell calls whoever wants to know that an entry is given up. Its errors count
// like a command's; when they are too many, the dead letter is made without.
func (s *subscription) tell(ctx context.Context, e *entry) error {
	if s.dying == nil || e.told {
		return nil
	}
	telling, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), s.limits.Timeout, errHandlerTimeout)
	defer cancel()
	err := guard(func() error { return s.dying(telling, e.delivery(), e.fields, e.reason) })
	if err == nil {
		e.told = true
		return nil
	}
	var unavailable unavailableError
	if !errors.As(err, &unavailable) {
		e.rites++
	}
	e.told = e.rites >= s.limits.Deliveries
	return err
}

// DeadLetters lists, requeues and drops the commands that were given up on.
type DeadLetters struct {
	rdb redis.UniversalClient
}

// DeadLetter is one command that was given up on.
type DeadLetter struct {
	Stream     string            `json:"stream"`
	ID         string            `json:"id"`
	At         time.Time         `json:"at"` // of death, by Redis
	CommandID  domain.CommandID  `json:"commandId"`
	Type       string            `json:"type"`
	Reason     string            `json:"reason"`
	Deliveries int               `json:"deliveries"`
	FirstError string            `json:"firstError"`
	LastError  string            `json:"lastError"`
	OriginID   string            `json:"originId"` // of the entry it was
	Fields     map[string]string `json:"fields"`   // the entry as it was
}

// NewDeadLetters works on a client, which stays the caller's.
func NewDeadLetters(rdb redis.UniversalClient) *DeadLetters { return &DeadLetters{rdb: rdb} }

// Streams lists the streams that commands can die on.
func Streams() []string {
	var streams []string
	for _, g := range allGroups() {
		streams = append(streams, g.stream)
	}
	return streams
}

// List returns the latest dead letters of a stream, newest first, or of every
// stream, one after the other, when stream is "". limit is for each stream and
// at most MaxDeadLetters.
func (d *DeadLetters) List(ctx context.Context, stream string, limit int) ([]DeadLetter, error) {
	streams := []string{stream}
	if stream == "" {
		streams = Streams()
	}
	letters := []DeadLetter{}
	for _, stream := range streams {
		if !knownStream(stream) {
			continue
		}
		found, err := d.rdb.XRevRangeN(ctx, deadStream(d.rdb, stream), "+", "-", int64(min(max(limit, 1), MaxDeadLetters))).Result()
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		for _, m := range found {
			letters = append(letters, newDeadLetter(stream, m))
		}
	}
	return letters, nil
}

// Get returns one dead letter. It fails with ErrDeadLetterNotFound.
func (d *DeadLetters) Get(ctx context.Context, stream, id string) (DeadLetter, error) {
	if err := checkDeadLetter(stream, id); err != nil {
		return DeadLetter{}, err
	}
	found, err := d.rdb.XRange(ctx, deadStream(d.rdb, stream), id, id).Result()
	if err != nil {
		return DeadLetter{}, fmt.Errorf("get dead letter: %w", err)
	}
	if len(found) == 0 {
		return DeadLetter{}, ErrDeadLetterNotFound
	}
	return newDeadLetter(stream, found[0]), nil
}

// Requeue puts a dead letter's command back on its stream under its old command
// id, and removes the letter, in one step. It fails with ErrDeadLetterNotFound.
func (d *DeadLetters) Requeue(ctx context.Context, stream, id string) error {
	if err := checkDeadLetter(stream, id); err != nil {
		return err
	}
	done, err := requeueScript.Run(ctx, d.rdb, []string{deadStream(d.rdb, stream), stream}, id, deadPrefix).Int()
	if err != nil {
		return fmt.Errorf("requeue dead letter: %w", err)
	}
	if done == 0 {
		return ErrDeadLetterNotFound
	}
	return nil
}

// Drop removes a dead letter for good. It fails with ErrDeadLetterNotFound.
func (d *DeadLetters) Drop(ctx context.Context, stream, id string) error {
	if err := checkDeadLetter(stream, id); err != nil {
		return err
	}
	removed, err := d.rdb.XDel(ctx, deadStream(d.rdb, stream), id).Result()
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", err)
	}
	if removed == 0 {
		return ErrDeadLetterNotFound
	}
	return nil
}

func knownStream(stream string) bool {
	for _, known := range Streams() {
		if stream == known {
			return true
		}
	}
	return false
}

// checkDeadLetter refuses what cannot be the name of a dead letter, so that
// nobody reaches other keys of Redis through it.
func checkDeadLetter(stream, id string) error {
	if _, err := parseEntryID(id); err != nil || !knownStream(stream) {
		return ErrDeadLetterNotFound
	}
	return nil
}

func newDeadLetter(stream string, m redis.XMessage) DeadLetter {
	letter := DeadLetter{Stream: stream, ID: m.ID, Fields: map[string]string{}}
	text := map[string]string{}
	for name, value := range m.Values {
		text[name] = fmt.Sprint(value)
		if !strings.HasPrefix(name, deadPrefix) {
			letter.Fields[name] = text[name]
		}
	}
	if id, err := parseEntryID(m.ID); err == nil {
		letter.At = time.UnixMilli(int64(id.ms)).UTC()
	}
	letter.CommandID, letter.Type = domain.CommandID(text[fieldID]), text[fieldType]
	letter.Reason, letter.OriginID = text[deadReason], text[deadOrigin]
	letter.Deliveries, _ = strconv.Atoi(text[deadDeliveries]) // 0 when a foreign hand wrote it
	letter.FirstError, letter.LastError = text[deadFirstError], text[deadLastError]
	return letter
}
