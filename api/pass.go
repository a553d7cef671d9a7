package api

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// passIssuer stands in every pass as iss.
const passIssuer = "foyer"

// passClaims prove to a shop's own servers that a person is inside until exp.
// Everything in them follows from the place, so a pass asked for twice is the
// same to the byte. There is no iat: nothing keeps when a session began, and
// its deadline says all that a shop has to check.
type passClaims struct {
	jwt.RegisteredClaims
	Show    domain.ShowID    `json:"show"`
	Request domain.RequestID `json:"requestId"`
	Epoch   int64            `json:"epoch"`
}

// passSigner signs admission passes. Every API process has the same key.
type passSigner struct {
	key ed25519.PrivateKey
	kid string
}

// newPassSigner takes an Ed25519 seed of 32 bytes.
func newPassSigner(seed []byte) (*passSigner, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the signing key must have %d bytes, not %d", ed25519.SeedSize, len(seed))
	}
	s := &passSigner{key: ed25519.NewKeyFromSeed(seed)}
	s.kid = thumbprint(s.public())
	return s, nil
}

func (s *passSigner) public() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// thumbprint names a public key as RFC 7638 and RFC 8037 do, so that the name
// changes with the key and is the same on every process.
func thumbprint(key ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(key)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// sign returns the pass of an active place. Asked again for the same session it
// returns the same bytes.
func (s *passSigner) sign(place domain.Place, person domain.PersonID) (string, error) {
	if place.Status != domain.StatusActive || place.ExpiresAt == nil {
		return "", errors.New("only an active place has a pass")
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, passClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    passIssuer,
			Subject:   string(person),
			ID:        passID(place),
			ExpiresAt: jwt.NewNumericDate(*place.ExpiresAt),
		},
		Show:    place.ShowID,
		Request: place.RequestID,
		Epoch:   place.Epoch,
	})
	token.Header["kid"] = s.kid
	pass, err := token.SignedString(s.key)
	if err != nil {
		return "", fmt.Errorf("sign the pass: %w", err)
	}
	return pass, nil
}

// passID names one session: the same place in another session gets another id.
func passID(place domain.Place) string {
	sum := sha256.Sum256([]byte(string(place.ShowID) + "\x00" + string(place.RequestID) + "\x00" +
		strconv.FormatInt(place.Epoch, 10) + "\x00" + strconv.FormatInt(place.ExpiresAt.UnixMilli(), 10)))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// jwk is one public key as RFC 8037 writes it.
type jwk struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	X         string `json:"x"`
}

// passKeys publishes the key that checks passes.
func (s *Server) passKeys(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.JSON(http.StatusOK, map[string][]jwk{"keys": {{
		KeyType: "OKP", Curve: "Ed25519", Use: "sig", Algorithm: "EdDSA",
		KeyID: s.pass.kid, X: base64.RawURLEncoding.EncodeToString(s.pass.public()),
	}}})
}
