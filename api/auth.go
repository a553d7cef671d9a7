package api

import (
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"foyer/domain"
)

// Bounds of an identity token, so that nobody makes the server parse, keep or
// repeat data of arbitrary size.
const (
	maxTokenBytes = 8 << 10
	maxNameRunes  = 100
	minRSABits    = 2048
)

// roleOperator is the role that may change shows and see live numbers.
const roleOperator = "operator"

// Identity is a person whose token was checked.
type Identity struct {
	Person  domain.PersonID
	Name    string    // to show to others; the subject when the token has no name
	Roles   []string  // as the token names them
	Expires time.Time // end of the token; a socket ends with it
}

// Operator reports whether the person may run shows.
func (id Identity) Operator() bool { return slices.Contains(id.Roles, roleOperator) }

// claims are what Foyer reads from an identity token.
type claims struct {
	jwt.RegisteredClaims
	Name  string   `json:"name,omitempty"`
	Roles []string `json:"roles,omitempty"`
}

// lastInstant is the end of the year 9999, in seconds since 1970.
const lastInstant = 253_402_300_799

// UnmarshalJSON reads a token as every other reader of it does. Left alone, the decoder
// takes Sub for sub and Roles for roles, and the library an instant in quotes, or one that
// no calendar has.
func (c *claims) UnmarshalJSON(raw []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		var at *float64
		if value, there := all[name]; there && json.Unmarshal(value, &at) != nil {
			return errors.New("exp, nbf and iat must be numbers")
		}
		if at != nil && math.Abs(*at) > lastInstant {
			return errors.New("exp, nbf and iat must be within the years of a calendar")
		}
	}
	for name, field := range map[string]any{
		"iss": &c.Issuer, "sub": &c.Subject, "aud": &c.Audience, "exp": &c.ExpiresAt, "nbf": &c.NotBefore, "iat": &c.IssuedAt,
		"jti": &c.ID, "name": &c.Name, "roles": &c.Roles,
	} {
		if value, there := all[name]; there {
			if err := json.Unmarshal(value, field); err != nil {
				return fmt.Errorf("claim %s: %w", name, err)
			}
		}
	}
	return nil
}

// authenticator checks identity tokens. The algorithm of a token selects which
// kind of key may check it, so a public key is never taken for a shared secret.
type authenticator struct {
	secret []byte
	keys   *keySet // nil: no JWKS
	parser *jwt.Parser
}

// newAuthenticator allows HS256 when there is a secret, and RS256, ES256 and
// EdDSA when there is a key set (a file's path or a URL).
func newAuthenticator(secret []byte, jwks string) (*authenticator, error) {
	a := &authenticator{secret: secret}
	var allowed []string
	if len(secret) > 0 {
		allowed = append(allowed, jwt.SigningMethodHS256.Alg())
	}
	if jwks != "" {
		keys, err := newKeySet(jwks)
		if err != nil {
			return nil, err
		}
		a.keys = keys
		allowed = append(allowed, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg(), jwt.SigningMethodEdDSA.Alg())
	}
	if len(allowed) == 0 {
		return nil, errors.New("identity tokens need a secret or a JWKS to be checked with")
	}
	a.parser = jwt.NewParser(jwt.WithValidMethods(allowed), jwt.WithExpirationRequired())
	return a, nil
}

// Identify returns the person of a request's bearer token. Its error is a
// problem: 401, or 503 while the key set cannot be had.
func (a *authenticator) Identify(r *http.Request) (Identity, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return Identity{}, unauthorized("Send one Authorization header with a bearer token.")
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxTokenBytes {
		return Identity{}, unauthorized("The Authorization header must be a bearer token.")
	}
	var c claims
	_, err := a.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical { // RFC 7515: whoever does not understand it must refuse
			return nil, errors.New("no critical header is understood here")
		}
		if t.Method == jwt.SigningMethodHS256 {
			return a.secret, nil
		}
		return a.keys.verificationKey(r.Context(), t)
	})
	var p *problem
	switch {
	case errors.As(err, &p):
		return Identity{}, p
	case err != nil && onlyExpired(err):
		return Identity{}, newProblem(http.StatusUnauthorized, codeTokenExpired, "Token expired", "The token is over; get a new one.")
	case err != nil:
		return Identity{}, unauthorized("The token is not valid here.").because(err)
	}
	return c.identity()
}

// onlyExpired tells a token that was good once from one that never was.
func onlyExpired(err error) bool {
	return errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenSignatureInvalid) &&
		!errors.Is(err, jwt.ErrTokenNotValidYet)
}

// identity refuses subjects that could not be stored or told apart.
func (c claims) identity() (Identity, error) {
	sub := c.Subject
	if !domain.PersonID(sub).Valid() {
		return Identity{}, unauthorized(fmt.Sprintf("The token's sub must be Unicode text of 1 to %d characters.", domain.MaxPersonIDSize))
	}
	name := strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(c.Name, "\x00", ""), ""))
	if runes := []rune(name); len(runes) > maxNameRunes {
		name = string(runes[:maxNameRunes])
	}
	if name == "" {
		name = sub
	}
	return Identity{Person: domain.PersonID(sub), Name: name, Roles: c.Roles, Expires: c.ExpiresAt.Time}, nil
}

func unauthorized(detail string) *problem {
	return newProblem(http.StatusUnauthorized, codeUnauthorized, "Not authenticated", detail)
}

// forbidden is the answer to a person who is known but not an operator.
func forbidden() *problem {
	return newProblem(http.StatusForbidden, codeForbidden, "Operators only", "This needs the role operator.")
}

// strongEnough refuses public keys that are too short to trust.
func strongEnough(key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= minRSABits
	case ed25519.PublicKey:
		return len(k) == ed25519.PublicKeySize
	}
	return true
}
