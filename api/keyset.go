package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/singleflight"
)

// Life of a key set. A key that was withdrawn is refused after keySetAge at the
// latest; a token with an unknown key makes the set be read again at most once
// in keySetPause, so that invented key ids cost the identity provider nothing.
const (
	keySetAge     = 5 * time.Minute
	keySetPause   = 10 * time.Second
	keySetTimeout = 5 * time.Second
	keySetBytes   = 1 << 20
)

// keySet is a JWKS from a file or URL, read when a token first needs it and
// again when it is old or lacks a key. It starts no goroutine.
type keySet struct {
	source string
	reads  singleflight.Group

	mu      sync.Mutex
	keys    keyfunc.Keyfunc // nil until read
	readAt  time.Time       // of keys
	triedAt time.Time
	failure error // of the last reading, nil when it went well
}

// newKeySet reads a file at once, so that a wrong path ends the start and not
// the first request. A URL may be down at the start; it is read when needed.
func newKeySet(source string) (*keySet, error) {
	k := &keySet{source: source}
	if k.remote() {
		return k, nil
	}
	raw, err := os.ReadFile(source)
	if err != nil {
		return nil, fmt.Errorf("read the JWKS file: %w", err)
	}
	return k, k.set(raw)
}

func (k *keySet) remote() bool {
	return strings.HasPrefix(k.source, "https://") || strings.HasPrefix(k.source, "http://")
}

// verificationKey finds the public key of a token. It fails with a problem of
// status 503 when there is no key set to look in.
func (k *keySet) verificationKey(ctx context.Context, token *jwt.Token) (any, error) {
	keys, stale := k.current()
	if stale {
		k.read(ctx)
		keys, _ = k.current()
	}
	if keys == nil {
		return nil, newProblem(http.StatusServiceUnavailable, codeUnavailable, "Temporarily unavailable",
			"The keys that identity tokens are checked with cannot be read.").retry(retryUnavailable).because(k.lastFailure())
	}
	key, err := keys.KeyfuncCtx(ctx)(token)
	if err != nil && k.mayRead() {
		k.read(ctx)
		keys, _ = k.current()
		key, err = keys.KeyfuncCtx(ctx)(token)
	}
	if err != nil {
		return nil, fmt.Errorf("find the token's key: %w", err)
	}
	if !strongEnough(key) {
		return nil, errors.New("the token's key is too short")
	}
	return key, nil
}

// current returns the keys and whether it is time to read them again.
func (k *keySet) current() (keyfunc.Keyfunc, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys, time.Since(k.readAt) > keySetAge && time.Since(k.triedAt) > keySetPause
}

func (k *keySet) mayRead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.triedAt) > keySetPause
}

// read replaces the keys; on failure the old ones stay. Callers at the same time
// share one reading, which one caller's end must not break off for the others.
func (k *keySet) read(ctx context.Context) {
	_, _, _ = k.reads.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keySetTimeout)
		defer cancel()
		raw, err := k.fetch(ctx)
		if err == nil {
			err = k.set(raw)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.triedAt, k.failure = time.Now(), err
		return nil, err
	})
}

func (k *keySet) lastFailure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failure
}

func (k *keySet) fetch(ctx context.Context) ([]byte, error) {
	if !k.remote() {
		return os.ReadFile(k.source)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.source, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the JWKS: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for the JWKS: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for the JWKS: status %d", response.StatusCode)
	}
	return io.ReadAll(io.LimitReader(response.Body, keySetBytes))
}

func (k *keySet) set(raw []byte) error {
	keys, err := keyfunc.NewJWKSetJSON(raw)
	if err != nil {
		return fmt.Errorf("understand the JWKS: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.readAt = keys, time.Now()
	return nil
}
