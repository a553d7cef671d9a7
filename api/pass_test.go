package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
	"foyer/pass"
)

// verifier is what a shop has that keeps its own checkout.
func (e *edge) verifier(show string) *pass.Verifier {
	e.t.Helper()
	verifier, err := pass.NewVerifier(pass.Config{
		Show: strings.TrimPrefix(show, "/api/shows/"), JWKSURL: e.url + "/.well-known/jwks.json",
		RevocationsURL: e.url + "/api/pass/revocations", RevocationInterval: 10 * time.Millisecond,
	})
	require.NoError(e.t, err)
	return verifier
}

// A shop checks a pass with nothing but what is published.
func TestAPassCanBeCheckedWithThePublishedKey(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	me := e.inside(show)
	place := e.call(me, "GET", show+"/admission", nil).is(http.StatusOK)
	published := e.call("", "GET", "/.well-known/jwks.json", nil).is(http.StatusOK)
	require.JSONEq(t, string(published.body), string(e.call("", "GET", "/api/pass/jwks.json", nil).is(http.StatusOK).body))
	got, err := e.verifier(show).Verify(t.Context(), place.text("pass"))
	require.NoError(t, err)
	require.Equal(t, show, "/api/shows/"+got.Show)
	require.Equal(t, place.text("requestId"), got.Request)
	require.Equal(t, place.number("epoch"), got.Epoch)
	require.True(t, strings.HasPrefix(got.Person, "p-"))
	expires, err := time.Parse(time.RFC3339Nano, place.text("expiresAt"))
	require.NoError(t, err)
	require.Equal(t, expires.Unix(), got.Expires.Unix(), "the pass ends with the session")
	_, err = e.verifier(e.show(nil)).Verify(t.Context(), place.text("pass"))
	require.ErrorIs(t, err, pass.ErrWrongShow)
}

// T49: a pass that was issued again differed from the first: its header lacked the
// key's id. It is the same to the byte, on every process, and also after the
// operator changed how long sessions are. T43: so a pass that an app lost when it was
// killed is had again by asking.
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

// T48: a shop with a checkout of its own went on serving people who had left. It is a shop
// as its people see it: a page behind the middleware, in front of the real API.
func TestAShopLetsOnlyPeopleInWhoAreInside(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	checkout := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := pass.FromContext(r.Context())
		_, _ = w.Write([]byte(p.Request))
	})
	shop := httptest.NewServer(e.verifier(show).Require(checkout))
	t.Cleanup(shop.Close)
	visit := func(token string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shop.URL, nil)
		require.NoError(t, err)
		request.Header.Set(pass.Header, token)
		response, err := shop.Client().Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		var body bytes.Buffer
		_, err = body.ReadFrom(response.Body)
		require.NoError(t, err)
		return response.StatusCode, body.String()
	}
	status, _ := visit("")
	require.Equal(t, http.StatusForbidden, status)

	me, other := e.inside(show), e.inside(show)
	mine := e.call(me, "GET", show+"/admission", nil)
	others := e.call(other, "GET", show+"/admission", nil).text("pass")
	status, body := visit(mine.text("pass"))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, mine.text("requestId"), body)

	e.call(me, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	testenv.Eventually(t, time.Second, "the shop knows that the person has left", func() bool {
		status, _ := visit(mine.text("pass"))
		return status == http.StatusForbidden
	})
	status, _ = visit(others)
	require.Equal(t, http.StatusOK, status)

	e.call(me, "POST", show+"/admission", nil).is(http.StatusCreated)
	again := e.call(me, "POST", show+"/admission/claim", nil).is(http.StatusOK).text("pass")
	status, _ = visit(again)
	require.Equal(t, http.StatusOK, status, "who comes back has a new pass")
	status, _ = visit(mine.text("pass"))
	require.Equal(t, http.StatusForbidden, status)
}

func TestRevocationsAreReadFromACursorOn(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	feed := "/api/pass/revocations?show=" + strings.TrimPrefix(show, "/api/shows/")
	begin := e.call("", "GET", feed, nil).is(http.StatusOK)
	require.Empty(t, begin.json["revoked"])
	require.False(t, begin.json["more"].(bool))
	me := e.inside(show)
	place := e.call(me, "GET", show+"/admission", nil)
	e.call(me, "DELETE", show+"/admission", nil).is(http.StatusNoContent)
	var page pass.Revocations
	next := e.call("", "GET", feed+"&since="+begin.text("cursor"), nil).is(http.StatusOK)
	next.into(&page)
	require.Len(t, page.Revoked, 1)
	require.Equal(t, place.text("requestId"), page.Revoked[0].Request)
	require.Equal(t, place.text("expiresAt"), page.Revoked[0].ExpiresAt.Format("2006-01-02T15:04:05.999Z07:00"))
	require.Empty(t, e.call("", "GET", feed+"&since="+next.text("cursor"), nil).is(http.StatusOK).json["revoked"])
	for _, since := range []string{"x", "1", "1.x", "-1.1", "1.-1", "1.99999999999999999", "1.1&since=1.1"} {
		e.call("", "GET", feed+"&since="+since, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
	e.call("", "GET", feed+"&show=other", nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call("", "GET", "/api/pass/revocations", nil).fails(http.StatusNotFound, codeShowNotFound)
	e.call("", "GET", "/api/pass/revocations?show=none", nil).fails(http.StatusNotFound, codeShowNotFound)
}

func TestOnlyAnActivePlaceHasAPass(t *testing.T) {
	t.Parallel()
	signer, err := newPassSigner(bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	_, err = signer.sign(domain.Place{Status: domain.StatusAdmitted}, "ada")
	require.Error(t, err)
	_, err = newPassSigner([]byte("short"))
	require.Error(t, err)
}
