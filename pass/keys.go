package pass

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Life of a key set. A key that was withdrawn is refused after keysAge at the latest;
// a pass with an unknown key makes the set be read again at most once in keysPause, so
// that invented key ids cost Foyer nothing.
const (
	keysAge   = 5 * time.Minute
	keysPause = 10 * time.Second
	keysBytes = 256 << 10
)

// keys are those that may have signed a pass.
type keys struct {
	config Config
	reads  flight

	mu      sync.Mutex
	known   map[string]ed25519.PublicKey
	readAt  time.Time // of what was published; zero: never
	triedAt time.Time
	failure error // of the last reading, nil when it went well
}

func newKeys(config Config) *keys {
	return &keys{config: config, known: maps.Clone(config.Keys)}
}

// find returns the key that a token says it was signed with.
func (k *keys) find(ctx context.Context, token *jwt.Token) (any, error) {
	kid, _ := token.Header["kid"].(string)
	if kid == "" {
		return nil, errors.New("the pass names no key")
	}
	key, reread := k.lookUp(kid)
	if reread {
		if err := k.reads.do(ctx, k.read); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		key, _ = k.lookUp(kid)
	}
	if key != nil {
		return key, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil { // the key may have been published since
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, k.failure)
	}
	return nil, errors.New("the pass names an unknown key")
}

// lookUp returns a known key or nil, and whether to read the keys first.
func (k *keys) lookUp(kid string) (ed25519.PublicKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, now := k.known[kid], k.config.Now()
	mayRead := k.config.JWKSURL != "" && now.Sub(k.triedAt) >= keysPause
	return key, mayRead && (key == nil || k.config.Keys[kid] == nil && now.Sub(k.readAt) >= keysAge)
}

// read replaces what was published; on failure the old keys stay.
func (k *keys) read(ctx context.Context) {
	var set KeySet
	err := getJSON(ctx, k.config.Client, k.config.JWKSURL, keysBytes, &set)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.triedAt, k.failure = k.config.Now(), err
	if err != nil {
		k.failure = fmt.Errorf("read the keys of passes: %w", err)
		return
	}
	k.readAt, k.known = k.triedAt, set.public()
	maps.Copy(k.known, k.config.Keys)
}
