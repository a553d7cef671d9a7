package pass

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Signer signs passes. Every process with the same seed signs alike.
type Signer struct {
	key ed25519.PrivateKey
	kid string
}

// NewSigner takes an Ed25519 seed of 32 bytes.
func NewSigner(seed []byte) (*Signer, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the signing key must have %d bytes, not %d", ed25519.SeedSize, len(seed))
	}
	s := &Signer{key: ed25519.NewKeyFromSeed(seed)}
	s.kid = keyID(s.public())
	return s, nil
}

func (s *Signer) public() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// Sign returns the pass of a person whose session ends at deadline. Asked again for
// the same session it returns the same bytes.
func (s *Signer) Sign(person, show, request string, epoch int64, deadline time.Time) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    Issuer,
			Subject:   person,
			ID:        SessionID(show, request, epoch, deadline),
			ExpiresAt: jwt.NewNumericDate(deadline),
		},
		Show:    show,
		Request: request,
		Epoch:   epoch,
	})
	token.Header["kid"] = s.kid
	signed, err := token.SignedString(s.key)
	if err != nil {
		return "", fmt.Errorf("sign the pass: %w", err)
	}
	return signed, nil
}

// KeySet is a JWKS: the public keys that passes are checked with.
type KeySet struct {
	Keys []Key `json:"keys"`
}

// Key is one public key as RFC 8037 writes it.
type Key struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	Use       string `json:"use,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	KeyID     string `json:"kid"`
	X         string `json:"x"`
}

// KeySet returns what to publish.
func (s *Signer) KeySet() KeySet { return NewKeySet(s.public()) }

// NewKeySet describes public keys. A signing key is changed without refusing anybody
// by publishing the old one beside the new until its last pass is over.
func NewKeySet(keys ...ed25519.PublicKey) KeySet {
	set := KeySet{Keys: []Key{}}
	for _, key := range keys {
		set.Keys = append(set.Keys, Key{
			KeyType: "OKP", Curve: "Ed25519", Use: "sig", Algorithm: "EdDSA",
			KeyID: keyID(key), X: base64.RawURLEncoding.EncodeToString(key),
		})
	}
	return set
}

// public returns the keys by id that passes may be signed with; others in the set are
// of no concern here.
func (s KeySet) public() map[string]ed25519.PublicKey {
	keys := map[string]ed25519.PublicKey{}
	for _, key := range s.Keys {
		if key.KeyType != "OKP" || key.Curve != "Ed25519" || key.KeyID == "" || key.Use != "" && key.Use != "sig" {
			continue
		}
		x, err := base64.RawURLEncoding.DecodeString(key.X)
		if err == nil && len(x) == ed25519.PublicKeySize {
			keys[key.KeyID] = x
		}
	}
	return keys
}

// keyID names a public key as RFC 7638 and RFC 8037 do, so that the name changes with
// the key and is the same on every process.
func keyID(key ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(key)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
