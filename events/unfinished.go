package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

// What entries and dead letters of a BookSeats and a CancelBooking say their type is.
const (
	TypeBookSeats     = "BOOK_SEATS"
	TypeCancelBooking = "CANCEL_BOOKING"
)

// Unfinished is a command on a stream that its group has not done yet.
type Unfinished struct {
	Stream     string
	EntryID    string
	At         time.Time // when Redis took it
	CommandID  domain.CommandID
	Type       string
	ShowID     domain.ShowID    // where the command names one
	BookingID  domain.BookingID // likewise
	Pending    bool             // delivered to a consumer; otherwise nobody has it yet
	Consumer   string           // of a pending one
	Deliveries int64            // of a pending one
	Idle       time.Duration    // since a pending one was delivered or renewed
	Deleted    bool             // pending, and its entry is no longer on the stream
}

// Backlog reads what is unfinished. Its client stays the caller's.
type Backlog struct{ rdb redis.UniversalClient }

// NewBacklog works on a client, which stays the caller's.
func NewBacklog(rdb redis.UniversalClient) *Backlog { return &Backlog{rdb: rdb} }

// MaxUnfinished bounds the entries that Backlog.Unfinished reads of each kind.
const MaxUnfinished = 20_000

const backlogPage = 500

// Unfinished lists the commands of a stream that are not done: first those that
// consumers have, then those that nobody has read. A stream or group that does not
// exist has none. It is not of one instant: what moves meanwhile may stand in it
// twice, or not at all.
func (b *Backlog) Unfinished(ctx context.Context, stream string) ([]Unfinished, error) {
	name := ""
	for _, g := range allGroups() {
		if g.stream == stream {
			name = g.group
		}
	}
	if name == "" {
		return nil, fmt.Errorf("there is no stream of commands %q", stream)
	}
	groups, err := b.rdb.XInfoGroups(ctx, stream).Result()
	if err != nil && strings.Contains(err.Error(), "no such key") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect groups: %w", err)
	}
	delivered := "0-0"
	for _, g := range groups {
		if g.Name == name {
			delivered = g.LastDeliveredID
		}
	}
	pending, err := b.pending(ctx, stream, name)
	if err != nil {
		return nil, err
	}
	unread, err := b.unread(ctx, stream, delivered)
	return append(pending, unread...), err
}

func (b *Backlog) pending(ctx context.Context, stream, group string) ([]Unfinished, error) {
	var all []Unfinished
	for start := "-"; len(all) < MaxUnfinished; {
		page, err := b.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: stream, Group: group, Start: start, End: "+", Count: backlogPage}).Result()
		if groupMissing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list pending entries: %w", err)
		}
		part, err := b.describe(ctx, stream, page)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if len(page) < backlogPage {
			break
		}
		last, err := parseEntryID(page[len(page)-1].ID)
		if err != nil {
			return nil, err
		}
		start = last.next().String()
	}
	return all, nil
}

// describe reads the entries of a page. One that is gone was done meanwhile, or was
// taken off the stream by somebody; the caller tells by looking again.
func (b *Backlog) describe(ctx context.Context, stream string, page []redis.XPendingExt) ([]Unfinished, error) {
	if len(page) == 0 {
		return nil, nil
	}
	entries := make([]*redis.XMessageSliceCmd, len(page))
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, p := range page {
			entries[i] = pipe.XRange(ctx, stream, p.ID, p.ID)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pending entries: %w", err)
	}
	all := make([]Unfinished, len(page))
	for i, p := range page {
		u := Unfinished{Stream: stream, EntryID: p.ID, At: takenAt(p.ID), Deleted: true}
		if found := entries[i].Val(); len(found) > 0 {
			u = unfinished(stream, found[0])
		}
		u.Pending, u.Consumer, u.Deliveries, u.Idle = true, p.Consumer, p.RetryCount, p.Idle
		all[i] = u
	}
	return all, nil
}

func (b *Backlog) unread(ctx context.Context, stream, delivered string) ([]Unfinished, error) {
	last, err := parseEntryID(delivered)
	if err != nil {
		return nil, err
	}
	var all []Unfinished
	for len(all) < MaxUnfinished {
		page, err := b.rdb.XRangeN(ctx, stream, last.next().String(), "+", backlogPage).Result()
		if err != nil {
			return nil, fmt.Errorf("list unread entries: %w", err)
		}
		for _, m := range page {
			all = append(all, unfinished(stream, m))
		}
		if len(page) < backlogPage {
			break
		}
		if last, err = parseEntryID(page[len(page)-1].ID); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// aboutWire is what the payloads of commands say about whom they are for.
type aboutWire struct {
	ShowID    domain.ShowID    `json:"showId"`
	BookingID domain.BookingID `json:"bookingId"`
}

func unfinished(stream string, m redis.XMessage) Unfinished {
	f := fieldsOf(m.Values)
	var about aboutWire
	_ = json.Unmarshal([]byte(f.Get(fieldPayload)), &about) // an entry that says nothing is about nobody
	return Unfinished{
		Stream: stream, EntryID: m.ID, At: takenAt(m.ID), CommandID: commandID(m.ID, f), Type: f.Get(fieldType),
		ShowID: about.ShowID, BookingID: about.BookingID,
	}
}

// takenAt is when Redis took an entry, which is in its id.
func takenAt(entry string) time.Time {
	id, err := parseEntryID(entry)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(id.ms)).UTC()
}

// About tells which show and booking a dead letter's command names, where it does.
func (l DeadLetter) About() (domain.ShowID, domain.BookingID) {
	var about aboutWire
	_ = json.Unmarshal([]byte(l.Fields[fieldPayload]), &about) // an entry that says nothing is about nobody
	return about.ShowID, about.BookingID
}
