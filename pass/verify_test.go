package pass_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"foyer/pass"
)

func TestAPassSaysWhoIsInsideUntilWhen(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	got, err := f.verifier(t).Verify(t.Context(), f.sign(t, 1, "demo", "r1"))
	require.NoError(t, err)
	deadline := opening.Add(10 * time.Minute)
	require.Equal(t, pass.Pass{
		Person: "ada", Show: "demo", Request: "r1", Epoch: 1, Expires: deadline,
		ID: pass.SessionID("demo", "r1", 1, deadline),
	}, got)
}

// T49: a pass that was issued again differed from the first.
func TestAPassIsTheSameToTheByteAndAnotherSessionsIsNot(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	require.Equal(t, f.sign(t, 1, "demo", "r1"), f.sign(t, 1, "demo", "r1"))
	one, err := pass.NewSigner(seed(1))
	require.NoError(t, err)
	at := opening.Add(10 * time.Minute)
	first, err := one.Sign("ada", "demo", "r1", 1, at)
	require.NoError(t, err)
	next, err := one.Sign("ada", "demo", "r1", 1, at.Add(time.Millisecond))
	require.NoError(t, err)
	require.NotEqual(t, first, next)
	_, err = pass.NewSigner(seed(1)[:31])
	require.Error(t, err)
}

// forge signs any claims with any method and key, with the kid of Foyer's key.
func forge(t *testing.T, method jwt.SigningMethod, key any, edit func(header map[string]any, c jwt.MapClaims)) string {
	t.Helper()
	c := jwt.MapClaims{
		"iss": pass.Issuer, "sub": "ada", "jti": "j", "exp": opening.Add(time.Minute).Unix(),
		"show": "demo", "requestId": "r1", "epoch": 1,
	}
	token := jwt.NewWithClaims(method, c)
	token.Header["kid"] = pass.NewKeySet(public(1)).Keys[0].KeyID
	if edit != nil {
		edit(token.Header, c)
	}
	signed, err := token.SignedString(key)
	require.NoError(t, err)
	return signed
}

func without(claim string) func(map[string]any, jwt.MapClaims) {
	return func(_ map[string]any, c jwt.MapClaims) { delete(c, claim) }
}

func with(claim string, value any) func(map[string]any, jwt.MapClaims) {
	return func(_ map[string]any, c jwt.MapClaims) { c[claim] = value }
}

// T41: a shop that checks less than all of this lets somebody in who made their own pass.
func TestWhatIsNoPassOfThisShowIsRefused(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	key := ed25519.NewKeyFromSeed(seed(1))
	genuine := f.sign(t, 1, "demo", "r1")
	parts := strings.Split(genuine, ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	altered := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), `"ada"`, `"bob"`, 1)))
	rename := func(h map[string]any, _ jwt.MapClaims) { delete(h, "kid") }
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"nothing":              {"", pass.ErrMissing},
		"not a token":          {"abc", pass.ErrInvalid},
		"too long":             {strings.Repeat("a", 5000), pass.ErrInvalid},
		"altered":              {parts[0] + "." + altered + "." + parts[2], pass.ErrInvalid},
		"signature cut":        {genuine[:len(genuine)-4], pass.ErrInvalid},
		"signature empty":      {parts[0] + "." + parts[1] + ".", pass.ErrInvalid},
		"another's key":        {f.sign(t, 2, "demo", "r1"), pass.ErrInvalid},
		"another's, named so":  {forge(t, jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed(seed(2)), nil), pass.ErrInvalid},
		"none":                 {forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil), pass.ErrInvalid},
		"public key as secret": {forge(t, jwt.SigningMethodHS256, []byte(public(1)), nil), pass.ErrInvalid},
		"no key id":            {forge(t, jwt.SigningMethodEdDSA, key, rename), pass.ErrInvalid},
		"critical header":      {forge(t, jwt.SigningMethodEdDSA, key, func(h map[string]any, _ jwt.MapClaims) { h["crit"] = []string{"b64"} }), pass.ErrInvalid},
		"another issuer":       {forge(t, jwt.SigningMethodEdDSA, key, with("iss", "mallory")), pass.ErrInvalid},
		"no issuer":            {forge(t, jwt.SigningMethodEdDSA, key, without("iss")), pass.ErrInvalid},
		"no end":               {forge(t, jwt.SigningMethodEdDSA, key, without("exp")), pass.ErrInvalid},
		"no person":            {forge(t, jwt.SigningMethodEdDSA, key, without("sub")), pass.ErrInvalid},
		"no session":           {forge(t, jwt.SigningMethodEdDSA, key, without("jti")), pass.ErrInvalid},
		"no place":             {forge(t, jwt.SigningMethodEdDSA, key, without("requestId")), pass.ErrInvalid},
		"no show":              {forge(t, jwt.SigningMethodEdDSA, key, without("show")), pass.ErrInvalid},
		"another show":         {f.sign(t, 1, "other", "r1"), pass.ErrWrongShow},
		"over":                 {forge(t, jwt.SigningMethodEdDSA, key, with("exp", opening.Unix())), pass.ErrExpired},
		"over and forged":      {forge(t, jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed(seed(2)), with("exp", 1)), pass.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := f.verifier(t).Verify(t.Context(), c.token)
			require.ErrorIs(t, err, c.want)
			require.Zero(t, p)
		})
	}
}

func TestAPassIsGoodUntilItsEndAndNoLonger(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	exact, lenient := f.verifier(t), f.verifier(t, func(c *pass.Config) { c.Leeway = 30 * time.Second })
	token := f.sign(t, 1, "demo", "r1")
	f.travel(10*time.Minute - time.Second)
	_, err := exact.Verify(t.Context(), token)
	require.NoError(t, err)
	f.travel(time.Second)
	_, err = exact.Verify(t.Context(), token)
	require.ErrorIs(t, err, pass.ErrExpired)
	_, err = lenient.Verify(t.Context(), token)
	require.NoError(t, err)
	f.travel(30 * time.Second)
	_, err = lenient.Verify(t.Context(), token)
	require.ErrorIs(t, err, pass.ErrExpired)
}

// A new signing key must refuse nobody, and a withdrawn one must not be good for ever.
func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v := f.verifier(t)
	old, next := f.sign(t, 1, "demo", "r1"), f.sign(t, 2, "demo", "r2")
	_, err := v.Verify(t.Context(), old)
	require.NoError(t, err)
	f.set(func() { f.keys = append(f.keys, public(2)) })
	f.travel(11 * time.Second)
	for _, token := range []string{next, old} {
		_, err = v.Verify(t.Context(), token)
		require.NoError(t, err)
	}
	f.set(func() { f.keys = f.keys[1:] })
	f.travel(5 * time.Minute)
	_, err = v.Verify(t.Context(), old)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = v.Verify(t.Context(), next)
	require.NoError(t, err)
}

// Whoever invents key ids must not make the shop ask Foyer each time.
func TestInventedKeysCostOneReading(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v := f.verifier(t)
	var wait sync.WaitGroup
	for n := range 50 {
		wait.Go(func() {
			_, err := v.Verify(t.Context(), f.sign(t, byte(100+n), "demo", "r"))
			if err == nil {
				t.Error("an unknown key was accepted")
			}
		})
	}
	wait.Wait()
	require.Equal(t, 1, f.readings("/jwks.json"))
}

func TestWithoutKeysNobodyIsJudged(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v, token := f.verifier(t), f.sign(t, 1, "demo", "r1")
	f.set(func() { f.down = true })
	for range 3 {
		_, err := v.Verify(t.Context(), token)
		require.ErrorIs(t, err, pass.ErrUnavailable)
	}
	require.Equal(t, 1, f.readings("/jwks.json"), "it is not asked at each request")
	f.set(func() { f.down = false })
	f.travel(10 * time.Second)
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	f.set(func() { f.down = true })
	f.travel(6 * time.Minute)
	known := f.verifier(t, func(c *pass.Config) { c.RevocationsURL = "" })
	_, err = known.Verify(t.Context(), token)
	require.ErrorIs(t, err, pass.ErrUnavailable)
}

func TestGivenKeysNeedNoAddress(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	kid := pass.NewKeySet(public(1)).Keys[0].KeyID
	v := f.verifier(t, func(c *pass.Config) {
		c.JWKSURL, c.RevocationsURL, c.Keys = "", "", map[string]ed25519.PublicKey{kid: public(1)}
	})
	_, err := v.Verify(t.Context(), f.sign(t, 1, "demo", "r1"))
	require.NoError(t, err)
	_, err = v.Verify(t.Context(), f.sign(t, 2, "demo", "r1"))
	require.ErrorIs(t, err, pass.ErrInvalid)
}

func TestASettingThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	_, err := pass.NewVerifier(pass.Config{RevocationsURL: "ftp://x", Leeway: time.Hour, Keys: map[string]ed25519.PublicKey{"": nil}})
	for _, said := range []string{"show", "ftp://x", "leeway", "Ed25519"} {
		require.ErrorContains(t, err, said)
	}
	_, err = pass.NewVerifier(pass.Config{Show: "demo"})
	require.ErrorContains(t, err, "keys")
}

// The reading is shared: the end of the request that began it must not fail the others.
func TestACallerWhoGoesAwayFailsNobodyElse(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := f.verifier(t)
	_, err := v.Verify(ctx, f.sign(t, 1, "demo", "r1"))
	require.NoError(t, err)
}

// People hold passes while Foyer is replaced by its next release.
func TestAPassStaysTheSameFromReleaseToRelease(t *testing.T) {
	t.Parallel()
	require.Equal(t, "eyJhbGciOiJFZERTQSIsImtpZCI6IlVERFJlT1psMWlwWEFmcDl3WXNtMTNzREJNSzVvZy0tUVdkQmp6dWY2bzQiLCJ0eXAiOiJKV1QifQ."+
		"eyJpc3MiOiJmb3llciIsInN1YiI6ImFkYSIsImV4cCI6MTkwNjUzOTAwMCwianRpIjoiVzdvV0ZZRkhwLWtIbDBHQ0pTb24yZyIsInNob3ciOiJkZW1vIiwicmVxdWVzdElkIjoicjEiLCJlcG9jaCI6MX0."+
		"gkWKmzgjtP_jIQQdSIFKWxEnbY2L_tE6xuv4VFs0tHnHonsRqxMPEXKB2_A61ZfHwHcjPyvF3_duKvqtlZPlCw", newFoyer(t).sign(t, 1, "demo", "r1"))
}
