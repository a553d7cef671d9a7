package pass_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/pass"
)

// The answer must not tell what is wrong with a pass, nor take one from an address.
func TestThePassIsTakenFromHeaderOrCookieOnly(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	good, bad := f.sign(t, 1, "demo", "r1"), f.sign(t, 2, "demo", "r1")
	shop := f.verifier(t).Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := pass.FromContext(r.Context())
		require.True(t, ok)
		_, _ = w.Write([]byte(p.Request))
	}))
	ask := func(path string, headers, cookies []string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		for _, value := range headers {
			request.Header.Add(pass.Header, value)
		}
		for _, value := range cookies {
			request.AddCookie(&http.Cookie{Name: pass.Cookie, Value: value})
		}
		answer := httptest.NewRecorder()
		shop.ServeHTTP(answer, request)
		return answer
	}
	for _, ok := range []*httptest.ResponseRecorder{
		ask("/", []string{good}, nil), ask("/", nil, []string{good}), ask("/", []string{good}, []string{bad}),
	} {
		require.Equal(t, http.StatusOK, ok.Code)
		require.Equal(t, "r1", ok.Body.String())
	}
	for _, no := range []*httptest.ResponseRecorder{
		ask("/", nil, nil), ask("/?foyer-pass="+good+"&Foyer-Pass="+good, nil, nil), ask("/", []string{bad}, []string{good}),
		ask("/", []string{good, good}, nil), ask("/", []string{""}, []string{good}), ask("/", []string{f.sign(t, 1, "other", "r1")}, nil),
	} {
		require.Equal(t, http.StatusForbidden, no.Code)
		require.Equal(t, "A valid admission pass is needed.\n", no.Body.String())
		require.Equal(t, "no-store", no.Header().Get("Cache-Control"))
	}
	f.set(func() { f.down = true })
	fresh := f.verifier(t).Require(http.NotFoundHandler())
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set(pass.Header, good)
	answer := httptest.NewRecorder()
	fresh.ServeHTTP(answer, request)
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "2", answer.Header().Get("Retry-After"))
}
