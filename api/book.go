package api

import (
	"sync"
	"time"

	"foyer/domain"
)

// showBook is what a hub remembers of shows between notifications.
type showBook struct {
	mu    sync.Mutex
	shows map[domain.ShowID]*showState
}

type showState struct {
	stats domain.Stats         // the newest known
	known bool                 // stats are
	at    time.Time            // when they became known
	queue domain.QueueSettings // zero while not known
	seats seatFeed
}

// seatFeed follows the version of a show's seats. Deltas are passed on in an
// unbroken chain of versions; where one is missing, or came late, what changed is
// read from Redis instead, so that no subscriber's map misses a seat.
type seatFeed struct {
	on      bool  // somebody here listened once
	epoch   int64 // of the versions below
	version int64 // everything up to it was passed on
	highest int64 // the highest version heard of
}

// state is called with mu held.
func (b *showBook) state(show domain.ShowID) *showState {
	s := b.shows[show]
	if s == nil {
		s = &showState{}
		if b.shows == nil {
			b.shows = map[domain.ShowID]*showState{}
		}
		b.shows[show] = s
	}
	return s
}

// note keeps newer stats. It reports whether they are not older than those known,
// and whether the phase changed with them.
func (b *showBook) note(s domain.Stats) (current, turned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.state(s.ShowID)
	if state.known && statsStamp(s).before(statsStamp(state.stats)) {
		return false, false
	}
	turned = state.known && state.stats.Phase != s.Phase
	state.stats, state.known, state.at = s, true, time.Now()
	return true, turned
}

// stats returns the newest stats known, and their age.
func (b *showBook) stats(show domain.ShowID) (s domain.Stats, age time.Duration, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.shows[show]
	if state == nil || !state.known {
		return domain.Stats{ShowID: show}, 0, false
	}
	return state.stats, time.Since(state.at), true
}

// queue returns a show's settings, the default's while they are not known.
func (b *showBook) queue(show domain.ShowID) domain.QueueSettings {
	b.mu.Lock()
	defer b.mu.Unlock()
	if state := b.shows[show]; state != nil && state.queue.GraceSeconds > 0 {
		return state.queue
	}
	return domain.DefaultQueue()
}

// learn keeps what of live shows is needed where SQL cannot be asked, and drops other
// shows that nobody here follows: who does is still to be told how it ended. It returns
// those that were not there before.
func (b *showBook) learn(shows []domain.Show, followed func(domain.ShowID) bool) (fresh []domain.ShowID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := make(map[domain.ShowID]bool, len(shows))
	for _, show := range shows {
		live[show.ID] = true
		state := b.state(show.ID)
		if state.queue.GraceSeconds == 0 {
			fresh = append(fresh, show.ID)
		}
		state.queue = show.Queue
	}
	for id := range b.shows {
		if !live[id] && !followed(id) {
			delete(b.shows, id)
		}
	}
	return fresh
}

// meet keeps what of one show is needed, and reports whether it was new.
func (b *showBook) meet(show domain.Show) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.state(show.ID)
	fresh := state.queue.GraceSeconds == 0
	state.queue = show.Queue
	return fresh
}

// feedStep is what a seat notification asks for.
type feedStep uint8

const (
	feedIgnore feedStep = iota // nobody listens, or it is known
	feedPass                   // the next in the chain: pass it on
	feedRead                   // one is missing: read what changed
)

// hear takes note of a seat version.
func (b *showBook) hear(show domain.ShowID, epoch, version int64) feedStep {
	b.mu.Lock()
	defer b.mu.Unlock()
	feed := &b.state(show).seats
	if epoch > feed.epoch {
		*feed = seatFeed{on: feed.on, epoch: epoch}
	}
	if epoch < feed.epoch {
		return feedIgnore
	}
	feed.highest = max(feed.highest, version)
	switch {
	case !feed.on || version <= feed.version:
		return feedIgnore
	case version == feed.version+1:
		feed.version = version
		return feedPass
	}
	return feedRead
}

// heard returns the epoch and version that were passed on.
func (b *showBook) heard(show domain.ShowID) (epoch, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	feed := b.state(show).seats
	return feed.epoch, feed.version
}

// begin takes note of the map that a new subscriber was given. It reports whether
// the map is good to go on from: one older than what was passed on already is not
// and must be read again.
func (b *showBook) begin(show domain.ShowID, changes domain.SeatChanges) (good, behind bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	feed := &b.state(show).seats
	if !feed.on || feed.epoch < changes.Epoch && feed.version == 0 {
		highest := feed.highest
		if feed.epoch != changes.Epoch {
			highest = changes.Version
		}
		*feed = seatFeed{on: true, epoch: changes.Epoch, version: changes.Version, highest: highest}
		return true, highest > changes.Version
	}
	if changes.Epoch < feed.epoch || changes.Epoch == feed.epoch && changes.Version < feed.version {
		return false, false
	}
	return true, changes.Epoch > feed.epoch || feed.highest > feed.version
}

// fill takes note of a reading of what changed since the last that was passed on,
// which is about to be passed on. It reports whether there is anything new in it,
// and whether even newer seats were heard of.
func (b *showBook) fill(show domain.ShowID, changes domain.SeatChanges) (news, behind bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	feed := &b.state(show).seats
	switch {
	case changes.Epoch < feed.epoch:
		return false, true
	case changes.Epoch > feed.epoch:
		*feed = seatFeed{on: feed.on, epoch: changes.Epoch, version: changes.Version, highest: changes.Version}
		return true, false
	}
	news = changes.Version > feed.version
	feed.version = max(feed.version, changes.Version)
	return news, feed.highest > feed.version
}
