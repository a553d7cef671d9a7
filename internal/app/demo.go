package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"foyer/domain"
)

// demoShow is what dev has on sale when nothing else is: small enough that a
// crowd forms a line and that it sells out while one watches.
func demoShow(now time.Time) domain.Show {
	startsAt := now.Add(30 * 24 * time.Hour).Truncate(time.Hour)
	queue := domain.DefaultQueue()
	queue.MaxActive, queue.RatePerMinute, queue.TurnSeconds, queue.SessionSeconds = 20, 600, 60, 300
	seating := domain.DefaultSeating()
	seating.Sections = []domain.Section{
		{Name: "Stalls", Rows: 12, SeatsPerRow: 20, Price: 4500},
		{Name: "Balcony", Rows: 6, SeatsPerRow: 16, Price: 2950},
	}
	return domain.Show{
		ID: "demo", Title: "The Night Ferry", Venue: "Harbour Hall", StartsAt: &startsAt, OpensAt: now,
		Queue: queue, Seating: seating, DrawSeed: domain.NewDrawSeed(), Revision: 1, Epoch: 1, CreatedAt: now,
	}
}

// ensureDemo puts the demo show on sale where there is no show at all.
func (a *App) ensureDemo(ctx context.Context) error {
	shows, err := a.store.Shows(ctx)
	if err != nil {
		return fmt.Errorf("list shows: %w", err)
	}
	if len(shows) > 0 {
		return nil
	}
	show := demoShow(time.Now().UTC().Truncate(time.Microsecond))
	if err := a.store.CreateShow(ctx, show); err != nil && !errors.Is(err, domain.ErrShowExists) {
		return fmt.Errorf("create demo show: %w", err)
	}
	return nil
}

// devDirectory is where dev keeps its embedded file and keys. A fresh one is
// removed by the cleanup; one that was named is kept.
func devDirectory(named string) (dir string, cleanup func(), err error) {
	if named != "" {
		if err := os.MkdirAll(named, 0o700); err != nil {
			return "", nil, fmt.Errorf("make data directory: %w", err)
		}
		return named, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "foyer-dev-")
	if err != nil {
		return "", nil, fmt.Errorf("make data directory: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

const devKeyBytes = 32

// devKey reads a key from the data directory, making it at the first start, so
// that places and tokens outlive a restart where the directory does.
func devKey(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	if text, err := os.ReadFile(path); err == nil {
		key, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil || len(key) != devKeyBytes {
			return nil, fmt.Errorf("%s does not hold a key of %d bytes in hex", path, devKeyBytes)
		}
		return key, nil
	}
	key := make([]byte, devKeyBytes)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	if err := os.WriteFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("keep dev key: %w", err)
	}
	return key, nil
}
