package api

import (
	"context"
	"math/rand/v2"
	"sync"

	"foyer/domain"
)

// seatMirrors keep which seats are taken, per show, so that choosing the best
// ones reads only what changed since the last choice and not a whole hall. A
// mirror may lag by a moment: it proposes, and the atomic step decides.
type seatMirrors struct {
	steps Steps

	mu    sync.Mutex
	shows map[domain.ShowID]*seatMirror
}

type seatMirror struct {
	mu             sync.RWMutex
	epoch, version int64 // version 0: nothing read yet
	taken          map[domain.SeatID]bool
}

func newSeatMirrors(steps Steps) *seatMirrors {
	return &seatMirrors{steps: steps, shows: map[domain.ShowID]*seatMirror{}}
}

func (m *seatMirrors) of(show domain.ShowID) *seatMirror {
	m.mu.Lock()
	defer m.mu.Unlock()
	mirror, ok := m.shows[show]
	if !ok {
		mirror = &seatMirror{}
		m.shows[show] = mirror
	}
	return mirror
}

// blocks proposes blocks of free seats as of now, best first; see
// domain.Seating.BestBlocks.
func (m *seatMirrors) blocks(ctx context.Context, show domain.Show, count int, section string) ([][]domain.SeatID, error) {
	mirror := m.of(show.ID)
	if err := mirror.refresh(ctx, m.steps, show.ID); err != nil {
		return nil, err
	}
	mirror.mu.RLock()
	defer mirror.mu.RUnlock()
	return show.Seating.BestBlocks(count, section, mirror.taken, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))), nil
}

// refresh reads what changed; everything the first time and after the show lost
// its state, which a new epoch tells.
func (m *seatMirror) refresh(ctx context.Context, steps Steps, show domain.ShowID) error {
	m.mu.RLock()
	epoch, version := m.epoch, m.version
	m.mu.RUnlock()
	if version > 0 {
		changes, err := steps.Seats(ctx, show, version, "")
		if err != nil {
			return err
		}
		if changes.Epoch == epoch && changes.Version >= version {
			m.apply(changes)
			return nil
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epoch != epoch || m.version != version {
		return nil // somebody else has just read it
	}
	whole, err := steps.Seats(ctx, show, 0, "")
	if err != nil {
		return err
	}
	m.epoch, m.version, m.taken = whole.Epoch, whole.Version, map[domain.SeatID]bool{}
	m.mark(whole.Seats)
	return nil
}

// apply lays changes over the mirror. Those that a faster reader has overtaken
// are left out, since the later ones hold them.
func (m *seatMirror) apply(changes domain.SeatChanges) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if changes.Epoch != m.epoch || changes.Version < m.version {
		return
	}
	m.version = changes.Version
	m.mark(changes.Seats)
}

func (m *seatMirror) mark(seats []domain.Seat) {
	for _, seat := range seats {
		if seat.State == domain.SeatFree {
			delete(m.taken, seat.ID)
			continue
		}
		m.taken[seat.ID] = true
	}
}
