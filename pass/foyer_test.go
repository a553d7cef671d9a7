package pass_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/pass"
)

var opening = time.Date(2030, 6, 1, 10, 0, 0, 0, time.UTC)

// foyer publishes keys and revocations as Foyer does. What the real one publishes is
// tested against this package in api.
type foyer struct {
	*httptest.Server
	mu       sync.Mutex
	now      time.Time
	keys     []ed25519.PublicKey
	down     bool
	reads    map[string]int // by path
	minEpoch int64
	ended    []pass.Revocation
	page     int
}

func newFoyer(t testing.TB) *foyer {
	f := &foyer{now: opening, reads: map[string]int{}, page: 1000, keys: []ed25519.PublicKey{public(1)}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func seed(n byte) []byte { return bytes.Repeat([]byte{n}, ed25519.SeedSize) }

func public(n byte) ed25519.PublicKey {
	return ed25519.NewKeyFromSeed(seed(n)).Public().(ed25519.PublicKey)
}

func (f *foyer) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads[r.URL.Path]++
	if f.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/jwks.json" {
		_ = json.NewEncoder(w).Encode(pass.NewKeySet(f.keys...))
		return
	}
	since, _ := strconv.Atoi(r.URL.Query().Get("since"))
	until := min(since+f.page, len(f.ended))
	_ = json.NewEncoder(w).Encode(pass.Revocations{
		Cursor: strconv.Itoa(until), MinEpoch: f.minEpoch, Revoked: f.ended[since:until], More: until < len(f.ended),
	})
}

// set changes something while the server runs.
func (f *foyer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *foyer) travel(d time.Duration) { f.set(func() { f.now = f.now.Add(d) }) }

func (f *foyer) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *foyer) readings(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads[path]
}

// revoke ends a session as Foyer tells it.
func (f *foyer) revoke(request string, epoch int64, deadline time.Time) {
	f.set(func() {
		f.ended = append(f.ended, pass.Revocation{
			Request: request, ID: pass.SessionID("demo", request, epoch, deadline), Epoch: epoch, At: f.now, ExpiresAt: deadline,
		})
	})
}

func (f *foyer) verifier(t testing.TB, edits ...func(*pass.Config)) *pass.Verifier {
	t.Helper()
	config := pass.Config{
		Show: "demo", JWKSURL: f.URL + "/jwks.json", RevocationsURL: f.URL + "/revocations", Now: f.clock, Client: f.Client(),
	}
	for _, edit := range edits {
		edit(&config)
	}
	v, err := pass.NewVerifier(config)
	require.NoError(t, err)
	return v
}

// sign makes a pass of a person who is inside for ten more minutes.
func (f *foyer) sign(t testing.TB, key byte, show, request string) string {
	t.Helper()
	signer, err := pass.NewSigner(seed(key))
	require.NoError(t, err)
	token, err := signer.Sign("ada", show, request, 1, opening.Add(10*time.Minute))
	require.NoError(t, err)
	return token
}
