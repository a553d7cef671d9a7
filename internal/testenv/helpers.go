package testenv

import (
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"

	"foyer/domain"
)

// ShowID returns a random show id, so that tests sharing a Redis keep apart.
func ShowID(t testing.TB) domain.ShowID {
	t.Helper()
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return domain.ShowID("t-" + hex.EncodeToString(b[:]))
}

// Eventually polls ok every 5 ms and returns true as soon as it is. It ends the
// test, saying what was waited for, when that takes longer than within. Call it
// from the test's own goroutine.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) bool {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
	return true
}

// Browser returns the path of a Chromium, which pages are tested in.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium-browser", "google-chrome"} {
		if path := find(name, nil); path != "" {
			return path
		}
	}
	path, err := program("chromium", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
