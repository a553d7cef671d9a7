package pass

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Bounds and defaults of a verifier.
const (
	maxPassBytes    = 4 << 10
	maxLeeway       = time.Minute
	defaultInterval = time.Second
	defaultMaxStale = 30 * time.Second
	requestTimeout  = 3 * time.Second
)

// Config says which passes a verifier accepts. Show and one of JWKSURL and Keys are
// required.
type Config struct {
	Show string // the show whose passes are accepted

	// JWKSURL is where the keys are published: /.well-known/jwks.json of Foyer.
	JWKSURL string
	// Keys are keys by id, known beforehand. They count beside those of JWKSURL.
	Keys map[string]ed25519.PublicKey

	// RevocationsURL is the feed of passes that ended before their time:
	// /api/pass/revocations of Foyer. Empty: passes count until they are over.
	RevocationsURL string
	// RevocationInterval is how old the known revocations may be while the feed can
	// be read. 0 means 1 s.
	RevocationInterval time.Duration
	// MaxStale is for how long the known revocations count while the feed cannot be
	// read; after that no pass is accepted. 0 means 30 s.
	MaxStale time.Duration

	// Leeway accepts a pass for this long after its end, for a shop whose clock is
	// ahead. At most a minute; 0 accepts none.
	Leeway time.Duration

	Client *http.Client     // reads keys and feed; nil means one of its own, with a timeout
	Now    func() time.Time // nil means time.Now
}

// Verifier checks passes of one show. It is safe for use by many goroutines.
type Verifier struct {
	config  Config
	parser  *jwt.Parser
	keys    *keys
	revoked *revocations // nil: no feed
}

// NewVerifier checks the settings, reporting all that is wrong at once. It reads
// nothing: Foyer may be down while the shop starts.
func NewVerifier(config Config) (*Verifier, error) {
	if config.Client == nil {
		config.Client = &http.Client{Timeout: requestTimeout}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.RevocationInterval == 0 {
		config.RevocationInterval = defaultInterval
	}
	if config.MaxStale == 0 {
		config.MaxStale = max(defaultMaxStale, config.RevocationInterval)
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	v := &Verifier{config: config, keys: newKeys(config)}
	v.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(Issuer),
		jwt.WithExpirationRequired(), jwt.WithLeeway(config.Leeway), jwt.WithTimeFunc(config.Now))
	if config.RevocationsURL != "" {
		v.revoked = newRevocations(config)
	}
	return v, nil
}

func (c Config) check() error {
	var problems []error
	if c.Show == "" {
		problems = append(problems, errors.New("name the show whose passes are accepted"))
	}
	if c.JWKSURL == "" && len(c.Keys) == 0 {
		problems = append(problems, errors.New("name the address of the keys, or keys"))
	}
	for _, address := range []string{c.JWKSURL, c.RevocationsURL} {
		if u, err := url.Parse(address); address != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			problems = append(problems, fmt.Errorf("%q is not an http address", address))
		}
	}
	for kid, key := range c.Keys {
		if kid == "" || len(key) != ed25519.PublicKeySize {
			problems = append(problems, fmt.Errorf("key %q is not an Ed25519 key with an id", kid))
		}
	}
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		problems = append(problems, fmt.Errorf("the leeway must be from 0 to %s", maxLeeway))
	}
	if c.RevocationInterval < 0 || c.MaxStale < c.RevocationInterval {
		problems = append(problems, errors.New("revocations must be allowed to be as old as their interval"))
	}
	return errors.Join(problems...)
}

// Verify returns what a pass says, or the reason why it does not count: ErrMissing,
// ErrInvalid, ErrExpired, ErrWrongShow, ErrRevoked or ErrUnavailable. It may read keys
// or revocations before it answers; then it takes a few seconds at most.
func (v *Verifier) Verify(ctx context.Context, token string) (Pass, error) {
	if token == "" {
		return Pass{}, ErrMissing
	}
	if len(token) > maxPassBytes {
		return Pass{}, fmt.Errorf("%w: longer than %d bytes", ErrInvalid, maxPassBytes)
	}
	var c claims
	_, err := v.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical { // RFC 7515: whoever does not understand it must refuse
			return nil, errors.New("no critical header is understood here")
		}
		return v.keys.find(ctx, t)
	})
	switch {
	case errors.Is(err, ErrUnavailable):
		return Pass{}, err
	case err != nil && onlyExpired(err):
		return Pass{}, fmt.Errorf("%w: %w", ErrExpired, err)
	case err != nil:
		return Pass{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	p, err := c.pass()
	if err != nil {
		return Pass{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if p.Show != v.config.Show {
		return Pass{}, ErrWrongShow
	}
	if v.revoked != nil {
		if err := v.revoked.judge(ctx, p); err != nil {
			return Pass{}, err
		}
	}
	return p, nil
}

// onlyExpired tells a pass that was good once from one that never was.
func onlyExpired(err error) bool {
	return errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenSignatureInvalid) &&
		!errors.Is(err, jwt.ErrTokenInvalidIssuer) && !errors.Is(err, jwt.ErrTokenNotValidYet)
}
