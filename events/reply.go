package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// errReply is an answer of Redis that is not what its protocol says.
var errReply = errors.New("answer of Redis cannot be read")

// readOnce reads up to so many new entries, waiting for the first at most Block.
//
// It reads the answer itself: the client library makes a map of each entry, which
// is the dearest part of consuming it. Answers that are errors it asks for again by
// the library's own command, which follows a slot that has moved and gives up a
// connection to a server that is no master any more.
func (s *subscription) readOnce(ctx context.Context, places int) ([]*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Block+readGrace)
	defer cancel()
	read := redis.NewRawCmd(ctx, "xreadgroup", "group", s.group, s.consumer, "count", places,
		"block", s.timing.Block.Milliseconds(), "streams", s.stream, ">")
	if err := s.readers.Process(ctx, read); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	entries, err := parseEntries(read.Val())
	if errors.Is(err, errRefused) {
		return s.readPlainly(ctx, places)
	}
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return entries, nil
}

// readPlainly is readOnce by the library's command.
func (s *subscription) readPlainly(ctx context.Context, places int) ([]*entry, error) {
	streams, err := s.readers.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: s.group, Consumer: s.consumer, Streams: []string{s.stream, ">"}, Count: int64(places), Block: s.timing.Block,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	var entries []*entry
	for _, stream := range streams {
		for _, m := range stream.Messages {
			entries = append(entries, &entry{id: m.ID, fields: fieldsOf(m.Values), attempt: 1})
		}
	}
	return entries, nil
}

var errRefused = errors.New("refused by Redis")

// parseEntries reads the answer to a read of one stream, of either version of the
// protocol: a list, or a map, of the stream's name and a list of entries. It fails
// with errRefused where the answer is an error.
func parseEntries(answer []byte) ([]*entry, error) {
	r := reply{answer: answer}
	kind, streams, err := r.head()
	switch {
	case err != nil:
		return nil, err
	case kind == '-' || kind == '!':
		return nil, errRefused
	case streams < 0:
		return nil, nil // nothing came in time
	}
	if kind == '*' {
		if _, err = r.list(); err != nil {
			return nil, err
		}
	}
	if _, err = r.text(); err != nil {
		return nil, err
	}
	n, err := r.list()
	if err != nil {
		return nil, err
	}
	entries := make([]*entry, 0, max(n, 0))
	var spans []span
	for range n {
		var e *entry
		if e, spans, err = r.entry(spans[:0]); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// reply is an answer that is read up to at.
type reply struct {
	answer []byte
	at     int
}

// span is where a text stands in an answer.
type span struct{ from, to int }

// head reads the beginning of a value: its kind, and its length where it has one,
// which is negative for a value that is not there.
func (r *reply) head() (kind byte, length int, err error) {
	end := bytes.IndexByte(r.answer[r.at:], '\n')
	if end < 2 {
		return 0, 0, errReply
	}
	line := r.answer[r.at : r.at+end-1]
	r.at += end + 1
	switch kind = line[0]; kind {
	case '*', '%', '$':
		length, err = number(line[1:])
	case '_':
		length = -1
	}
	return kind, length, err
}

// number reads a length. It is apart from strconv because there are more of these
// than of anything else in an answer.
func number(digits []byte) (n int, err error) {
	if string(digits) == "-1" {
		return -1, nil
	}
	if len(digits) == 0 || len(digits) > 9 { // Redis keeps no text longer than 512 MB
		return 0, errReply
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, errReply
		}
		n = 10*n + int(d-'0')
	}
	return n, nil
}

// list reads the beginning of a list and returns its length.
func (r *reply) list() (int, error) {
	kind, length, err := r.head()
	if err == nil && kind != '*' && kind != '_' {
		err = errReply
	}
	return length, err
}

// text reads a string and returns where it stands.
func (r *reply) text() (span, error) {
	kind, length, err := r.head()
	if err != nil || kind != '$' || length < 0 || length+2 > len(r.answer)-r.at {
		return span{}, errReply
	}
	text := span{r.at, r.at + length}
	r.at += length + 2
	return text, nil
}

// entry reads an entry that is delivered for the first time. All its texts are
// parts of one, so that what is kept of an entry keeps that entry in memory and no other.
// spans is room to work in, and is returned for the next.
func (r *reply) entry(spans []span) (*entry, []span, error) {
	if n, err := r.list(); err != nil || n != 2 {
		return nil, spans, errReply
	}
	from := r.at
	id, err := r.text()
	if err != nil {
		return nil, spans, err
	}
	texts, err := r.list()
	if err != nil {
		return nil, spans, err
	}
	for range texts {
		text, err := r.text()
		if err != nil {
			return nil, spans, err
		}
		spans = append(spans, text)
	}
	all := string(r.answer[from:r.at])
	cut := func(s span) string { return all[s.from-from : s.to-from] }
	e := &entry{id: cut(id), fields: make(fields, len(spans)/2), attempt: 1}
	for i := range e.fields {
		e.fields[i] = field{cut(spans[2*i]), cut(spans[2*i+1])}
	}
	return e, spans, nil
}
