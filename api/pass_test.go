package api

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// A shop checks a pass with nothing but the published key.
func TestAPassCanBeCheckedWithThePublishedKey(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	place := e.call(me, "GET", show+"/admission", nil).is(http.StatusOK)
	published := e.call("", "GET", "/.well-known/jwks.json", nil).is(http.StatusOK)
	require.JSONEq(t, string(published.body), string(e.call("", "GET", "/api/pass/jwks.json", nil).is(http.StatusOK).body))
	key := published.json["keys"].([]any)[0].(map[string]any)
	public, err := base64.RawURLEncoding.DecodeString(key["x"].(string))
	require.NoError(t, err)
	var claims passClaims
	token, err := jwt.ParseWithClaims(place.text("pass"), &claims, func(token *jwt.Token) (any, error) {
		require.Equal(t, key["kid"], token.Header["kid"])
		return ed25519.PublicKey(public), nil
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithExpirationRequired())
	require.NoError(t, err)
	require.True(t, token.Valid)
	require.Equal(t, show, "/api/shows/"+string(claims.Show))
	require.Equal(t, place.text("requestId"), string(claims.Request))
	require.Equal(t, place.number("epoch"), claims.Epoch)
	expires, err := time.Parse(time.RFC3339Nano, place.text("expiresAt"))
	require.NoError(t, err)
	require.Equal(t, expires.Unix(), claims.ExpiresAt.Unix(), "the pass ends with the session")
}

// T49: a pass that was issued again differed from the first: its header lacked the
// key's id. It is the same to the byte, on every process, and also after the
// operator changed how long sessions are.
func TestAPassAskedForAgainIsTheSameToTheByte(t *testing.T) {
	t.Parallel()
	url := sqlite(t)
	one, other := newEdgeOn(t, url, testenv.RedisURL(t)), newEdgeOn(t, url, testenv.RedisURL(t))
	show := one.show(nil)
	me := one.inside(show)
	first := one.call(me, "GET", show+"/admission", nil).text("pass")
	require.Equal(t, first, one.call(me, "POST", show+"/admission", nil).is(http.StatusOK).text("pass"))
	require.Equal(t, first, other.call(me, "GET", show+"/admission", nil).text("pass"))
	one.call(one.operator, "PATCH", show, object{"queue": object{"sessionSeconds": 60}}).is(http.StatusOK)
	require.Equal(t, first, one.call(me, "POST", show+"/admission/claim", nil).is(http.StatusOK).text("pass"))
}

func TestOnlyAnActivePlaceHasAPass(t *testing.T) {
	t.Parallel()
	signer, err := newPassSigner(bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	_, err = signer.sign(domain.Place{Status: domain.StatusAdmitted}, "ada")
	require.Error(t, err)
	_, err = newPassSigner([]byte("short"))
	require.Error(t, err)
	until := time.UnixMilli(1_900_000_000_000)
	place := domain.Place{Status: domain.StatusActive, ExpiresAt: &until, ShowID: "s", RequestID: "r", Epoch: 1}
	same, err := signer.sign(place, "ada")
	require.NoError(t, err)
	later := until.Add(time.Millisecond)
	place.ExpiresAt = &later
	next, err := signer.sign(place, "ada")
	require.NoError(t, err)
	require.NotEqual(t, same, next, "another session has another pass")
}
