package pass

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Revocations is one page of the feed of passes that no longer count. Passes that are
// over by time are forgotten by it.
type Revocations struct {
	// Cursor is where to go on: send it as since to get what came after.
	Cursor string `json:"cursor"`
	// MinEpoch is the lowest epoch whose passes can count: all places of earlier ones
	// were lost or reset.
	MinEpoch int64        `json:"minEpoch"`
	Revoked  []Revocation `json:"revoked"`
	More     bool         `json:"more"` // there is more already; ask at once
}

// Revocation is one session that has ended. It voids the pass of that id, and every
// pass of the same place from an earlier epoch.
type Revocation struct {
	Request   string    `json:"requestId"`
	ID        string    `json:"jti"`
	Epoch     int64     `json:"epoch"`
	At        time.Time `json:"at"`
	ExpiresAt time.Time `json:"expiresAt"` // when the pass would have been over by itself
}

const (
	feedBytes = 1 << 20
	// maxPages bounds one reading; what is left is read at the next call.
	maxPages = 50
	// forgetEvery is how often what is over by time is looked for.
	forgetEvery = time.Minute
)

// revocations is what is known of the feed.
type revocations struct {
	config Config
	reads  flight

	mu        sync.Mutex
	cursor    string
	minEpoch  int64
	sessions  map[string]time.Time  // jti -> when to forget it
	places    map[string]placeEnded // request -> its last ended session
	readAt    time.Time             // start of the last reading that went through; zero: never
	triedAt   time.Time
	failure   error
	forgotten time.Time
}

type placeEnded struct {
	epoch int64
	until time.Time
}

func newRevocations(config Config) *revocations {
	return &revocations{config: config, sessions: map[string]time.Time{}, places: map[string]placeEnded{}}
}

// judge tells whether a genuine pass still counts.
func (r *revocations) judge(ctx context.Context, p Pass) error {
	if r.due() {
		if err := r.reads.do(ctx, r.read); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ended := r.sessions[p.ID]
	if ended || p.Epoch < r.minEpoch || p.Epoch < r.places[p.Request].epoch {
		return ErrRevoked
	}
	if r.readAt.IsZero() || r.config.Now().Sub(r.readAt) > r.config.MaxStale {
		return errors.Join(ErrUnavailable, r.failure)
	}
	return nil
}

func (r *revocations) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Now().Sub(r.triedAt) >= r.config.RevocationInterval
}

// read takes in what is new. A failure leaves what is known, to be judged by its age.
func (r *revocations) read(ctx context.Context) {
	started := r.config.Now()
	err := r.readPages(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.triedAt, r.failure = started, err
	if err == nil {
		r.readAt = started
	}
	if started.Sub(r.forgotten) >= forgetEvery {
		r.forget(started)
	}
}

func (r *revocations) readPages(ctx context.Context) error {
	for range maxPages {
		var page Revocations
		if err := getJSON(ctx, r.config.Client, r.address(), feedBytes, &page); err != nil {
			return fmt.Errorf("read the revocations: %w", err)
		}
		r.take(page)
		if !page.More {
			return nil
		}
	}
	return fmt.Errorf("read the revocations: more than %d pages at once", maxPages)
}

func (r *revocations) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	query := url.Values{"show": {r.config.Show}}
	if r.cursor != "" {
		query.Set("since", r.cursor)
	}
	separator := "?"
	if strings.Contains(r.config.RevocationsURL, "?") {
		separator = "&"
	}
	return r.config.RevocationsURL + separator + query.Encode()
}

func (r *revocations) take(page Revocations) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursor, r.minEpoch = page.Cursor, max(r.minEpoch, page.MinEpoch)
	for _, ended := range page.Revoked {
		until := ended.ExpiresAt.Add(r.config.Leeway)
		r.sessions[ended.ID] = until
		place := r.places[ended.Request]
		r.places[ended.Request] = placeEnded{max(place.epoch, ended.Epoch), later(place.until, until)}
	}
}

// forget drops what is over by time: such a pass is refused as expired.
func (r *revocations) forget(now time.Time) {
	r.forgotten = now
	for id, until := range r.sessions {
		if now.After(until) {
			delete(r.sessions, id)
		}
	}
	for request, place := range r.places {
		if now.After(place.until) {
			delete(r.places, request)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
