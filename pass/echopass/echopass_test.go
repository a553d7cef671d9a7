package echopass_test

import (
	"bytes"
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"foyer/pass"
	"foyer/pass/echopass"
)

func TestOnlyPeopleWithAPassReachTheHandler(t *testing.T) {
	t.Parallel()
	seed := bytes.Repeat([]byte{1}, ed25519.SeedSize)
	signer, err := pass.NewSigner(seed)
	require.NoError(t, err)
	key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	known := pass.Config{Show: "demo", Keys: map[string]ed25519.PublicKey{signer.KeySet().Keys[0].KeyID: key}}
	unreachable := known
	unreachable.RevocationsURL = "http://127.0.0.1:1/"
	token, err := signer.Sign("ada", "demo", "r1", 1, time.Now().Add(time.Minute))
	require.NoError(t, err)
	for _, c := range []struct {
		config pass.Config
		token  string
		status int
		cause  error
	}{
		{known, token, http.StatusOK, nil},
		{known, "", http.StatusForbidden, pass.ErrMissing},
		{known, token[:len(token)-9], http.StatusForbidden, pass.ErrInvalid},
		{unreachable, token, http.StatusServiceUnavailable, pass.ErrUnavailable},
	} {
		verifier, err := pass.NewVerifier(c.config)
		require.NoError(t, err)
		e := echo.New()
		var seen error
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			seen = err
			e.DefaultHTTPErrorHandler(err, c)
		}
		e.GET("/checkout", func(c echo.Context) error {
			p, ok := echopass.From(c)
			require.True(t, ok)
			return c.String(http.StatusOK, p.Person)
		}, echopass.Require(verifier))
		request := httptest.NewRequest(http.MethodGet, "/checkout", nil)
		if c.token != "" {
			request.Header.Set(pass.Header, c.token)
		}
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, request)
		require.Equal(t, c.status, answer.Code)
		if c.cause == nil {
			require.Equal(t, "ada", answer.Body.String())
			continue
		}
		require.ErrorIs(t, seen, c.cause)
	}
}
