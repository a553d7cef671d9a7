package api

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// bearer is a request with one Authorization header.
func bearer(t *testing.T, token string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func claimsFor(sub string) jwt.MapClaims {
	return jwt.MapClaims{"sub": sub, "exp": time.Now().Add(time.Hour).Unix()}
}

func codeOf(t *testing.T, err error) string {
	t.Helper()
	require.Error(t, err)
	return problemFor(err).Code
}

func TestASharedSecretIdentifies(t *testing.T) {
	t.Parallel()
	a, err := newAuthenticator([]byte(testSecret), "")
	require.NoError(t, err)
	claims := claimsFor("ada")
	claims["name"], claims["roles"] = "  Ada ", []string{"operator", "other"}
	who, err := a.Identify(bearer(t, signToken(t, jwt.SigningMethodHS256, []byte(testSecret), "", claims)))
	require.NoError(t, err)
	require.Equal(t, domain.PersonID("ada"), who.Person)
	require.Equal(t, "Ada", who.Name)
	require.True(t, who.Operator())
	require.Equal(t, claims["exp"], who.Expires.Unix())
	who, err = a.Identify(bearer(t, signToken(t, jwt.SigningMethodHS256, []byte(testSecret), "", claimsFor("bob"))))
	require.NoError(t, err)
	require.Equal(t, "bob", who.Name, "without a name the subject is shown")
	require.False(t, who.Operator())
}

// A provider that lets people choose claims of their own must not have let them choose who
// they are: SUB and Roles are nobody's sub and roles, wherever they stand.
func TestClaimsInOtherLettersAreNotOurs(t *testing.T) {
	t.Parallel()
	a, err := newAuthenticator([]byte(testSecret), "")
	require.NoError(t, err)
	claims := claimsFor("ada")
	for _, name := range []string{"SUB", "Sub", "sUb", "suB", "subject"} {
		claims[name] = "victim"
	}
	claims["Roles"], claims["ROLES"], claims["NAME"], claims["Exp"], claims["zExp"] = []string{roleOperator}, []string{roleOperator}, 7, 1, "x"
	who, err := a.Identify(bearer(t, signToken(t, jwt.SigningMethodHS256, []byte(testSecret), "", claims)))
	require.NoError(t, err)
	require.Equal(t, domain.PersonID("ada"), who.Person)
	require.Equal(t, "ada", who.Name)
	require.False(t, who.Operator())
}

// critical is a token that says that its reader must understand something.
func critical(t *testing.T) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claimsFor("ada"))
	token.Header["crit"], token.Header["b64"] = []string{"b64"}, true
	signed, err := token.SignedString([]byte(testSecret))
	require.NoError(t, err)
	return signed
}

func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	a, err := newAuthenticator([]byte(testSecret), "")
	require.NoError(t, err)
	with := func(change func(jwt.MapClaims)) string {
		c := claimsFor("ada")
		change(c)
		return signToken(t, jwt.SigningMethodHS256, []byte(testSecret), "", c)
	}
	none := signToken(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", claimsFor("ada"))
	cases := map[string]struct{ token, code string }{
		"expired":            {with(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Second).Unix() }), codeTokenExpired},
		"expired and forged": {signToken(t, jwt.SigningMethodHS256, []byte("other"), "", jwt.MapClaims{"sub": "ada", "exp": 1}), codeUnauthorized},
		"without exp":        {with(func(c jwt.MapClaims) { delete(c, "exp") }), codeUnauthorized},
		"not yet":            {with(func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() }), codeUnauthorized},
		"without sub":        {with(func(c jwt.MapClaims) { delete(c, "sub") }), codeUnauthorized},
		"sub is a number":    {with(func(c jwt.MapClaims) { c["sub"] = 7 }), codeUnauthorized},
		"sub is too long":    {with(func(c jwt.MapClaims) { c["sub"] = strings.Repeat("x", 201) }), codeUnauthorized},
		"sub has U+0000":     {with(func(c jwt.MapClaims) { c["sub"] = "a\x00b" }), codeUnauthorized},
		"roles is a text":    {with(func(c jwt.MapClaims) { c["roles"] = map[string]int{} }), codeUnauthorized},
		"another secret":     {signToken(t, jwt.SigningMethodHS256, []byte("other"), "", claimsFor("ada")), codeUnauthorized},
		"another algorithm":  {signToken(t, jwt.SigningMethodHS512, []byte(testSecret), "", claimsFor("ada")), codeUnauthorized},
		"no algorithm":       {none, codeUnauthorized},
		"exp is a text":      {with(func(c jwt.MapClaims) { c["exp"] = strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10) }), codeUnauthorized},
		"nbf is a text":      {with(func(c jwt.MapClaims) { c["nbf"] = "1" }), codeUnauthorized},
		"iat is a text":      {with(func(c jwt.MapClaims) { c["iat"] = "1" }), codeUnauthorized},
		"exp is past years":  {with(func(c jwt.MapClaims) { c["exp"] = 1e20 }), codeUnauthorized},
		"Sub is not sub":     {with(func(c jwt.MapClaims) { delete(c, "sub"); c["Sub"] = "ada" }), codeUnauthorized},
		"sub is no text":     {with(func(c jwt.MapClaims) { c["sub"] = "a\xff" }), codeUnauthorized},
		"critical header":    {critical(t), codeUnauthorized},
		"no token":           {"", codeUnauthorized},
		"nonsense":           {"a.b.c", codeUnauthorized},
		"too large":          {with(func(c jwt.MapClaims) { c["x"] = strings.Repeat("x", maxTokenBytes) }), codeUnauthorized},
	}
	for name, c := range cases {
		_, err := a.Identify(bearer(t, c.token))
		require.Equal(t, c.code, codeOf(t, err), name)
	}
	twice := bearer(t, with(func(jwt.MapClaims) {}))
	twice.Header.Add("Authorization", twice.Header.Get("Authorization"))
	_, err = a.Identify(twice)
	require.Equal(t, codeUnauthorized, codeOf(t, err), "two headers may be two people")
	basic := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	basic.SetBasicAuth("ada", "x")
	_, err = a.Identify(basic)
	require.Equal(t, codeUnauthorized, codeOf(t, err))
}

func TestA401SaysHowToAuthenticate(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	old := signToken(t, jwt.SigningMethodHS256, []byte(testSecret), "", jwt.MapClaims{"sub": "ada", "exp": 1})
	for _, token := range []string{"", "nonsense", old} {
		refused := e.call(token, "GET", show+"/seats", nil)
		require.Equal(t, http.StatusUnauthorized, refused.status)
		require.True(t, strings.HasPrefix(refused.header.Get("WWW-Authenticate"), "Bearer "))
	}
}

// keyPair is one key of a JWKS.
type keyPair struct {
	method jwt.SigningMethod
	key    any
	jwk    map[string]string
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func makeKeys(t *testing.T) map[string]keyPair {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	c, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return map[string]keyPair{
		"rsa": {jwt.SigningMethodRS256, r, map[string]string{"kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig",
			"n": b64(r.N.Bytes()), "e": b64(big.NewInt(int64(r.E)).Bytes())}},
		"ec": {jwt.SigningMethodES256, c, map[string]string{"kty": "EC", "kid": "ec", "alg": "ES256", "crv": "P-256",
			"x": b64(c.X.FillBytes(make([]byte, 32))), "y": b64(c.Y.FillBytes(make([]byte, 32)))}},
		"ed": {jwt.SigningMethodEdDSA, private, map[string]string{"kty": "OKP", "kid": "ed", "alg": "EdDSA", "crv": "Ed25519", "x": b64(public)}},
	}
}

func jwksOf(t *testing.T, keys map[string]keyPair, kids ...string) []byte {
	t.Helper()
	var set []map[string]string
	for _, kid := range kids {
		set = append(set, keys[kid].jwk)
	}
	raw, err := json.Marshal(map[string]any{"keys": set})
	require.NoError(t, err)
	return raw
}

func TestKeysFromAFile(t *testing.T) {
	t.Parallel()
	keys := makeKeys(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(file, jwksOf(t, keys, "rsa", "ec", "ed"), 0o600))
	a, err := newAuthenticator([]byte(testSecret), file)
	require.NoError(t, err)
	for kid, pair := range keys {
		who, err := a.Identify(bearer(t, signToken(t, pair.method, pair.key, kid, claimsFor("ada"))))
		require.NoError(t, err, kid)
		require.Equal(t, domain.PersonID("ada"), who.Person)
	}
	_, err = a.Identify(bearer(t, signToken(t, jwt.SigningMethodHS256, []byte(testSecret), "", claimsFor("ada"))))
	require.NoError(t, err, "a secret and keys go together")
	// A public key is public: taken for a shared secret it would let anybody sign.
	confused := signToken(t, jwt.SigningMethodHS256, []byte(keys["ed"].jwk["x"]), "ed", claimsFor("ada"))
	_, err = a.Identify(bearer(t, confused))
	require.Equal(t, codeUnauthorized, codeOf(t, err))
	_, err = newAuthenticator(nil, filepath.Join(t.TempDir(), "absent.json"))
	require.Error(t, err, "a wrong path ends the start")
	_, err = newAuthenticator(nil, "")
	require.Error(t, err, "somebody must be able to identify")
}

func TestWithoutASecretNoSharedSecretIsAccepted(t *testing.T) {
	t.Parallel()
	keys := makeKeys(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(file, jwksOf(t, keys, "ed"), 0o600))
	a, err := newAuthenticator(nil, file)
	require.NoError(t, err)
	for _, secret := range []string{"", testSecret} {
		_, err = a.Identify(bearer(t, signToken(t, jwt.SigningMethodHS256, []byte(secret), "", claimsFor("ada"))))
		require.Equal(t, codeUnauthorized, codeOf(t, err))
	}
}

// A token with a key id that nobody knows must cost the identity provider no
// request each, nor keep the caller waiting.
func TestKeysFromAURLAreReadAgainWhenOneIsNewAndNotForEveryUnknownOne(t *testing.T) {
	t.Parallel()
	keys := makeKeys(t)
	var reads atomic.Int64
	var published atomic.Pointer[[]byte]
	first := jwksOf(t, keys, "rsa")
	published.Store(&first)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		_, _ = w.Write(*published.Load())
	}))
	defer provider.Close()
	a, err := newAuthenticator(nil, provider.URL)
	require.NoError(t, err)
	require.Zero(t, reads.Load(), "nothing is asked for before a token needs it")
	_, err = a.Identify(bearer(t, signToken(t, keys["rsa"].method, keys["rsa"].key, "rsa", claimsFor("ada"))))
	require.NoError(t, err)
	rotated := jwksOf(t, keys, "rsa", "ec")
	published.Store(&rotated)
	a.keys.triedAt = time.Now().Add(-keySetPause - time.Second)
	_, err = a.Identify(bearer(t, signToken(t, keys["ec"].method, keys["ec"].key, "ec", claimsFor("ada"))))
	require.NoError(t, err, "a new key is found without a restart")
	require.Equal(t, int64(2), reads.Load())
	for range 20 {
		_, err = a.Identify(bearer(t, signToken(t, keys["ed"].method, keys["ed"].key, "invented", claimsFor("ada"))))
		require.Equal(t, codeUnauthorized, codeOf(t, err))
	}
	require.Equal(t, int64(2), reads.Load())
}

func TestAProviderThatIsAwayIs503AndOldKeysGoOn(t *testing.T) {
	t.Parallel()
	keys := makeKeys(t)
	var away atomic.Bool
	away.Store(true)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(jwksOf(t, keys, "ed"))
	}))
	defer provider.Close()
	a, err := newAuthenticator(nil, provider.URL)
	require.NoError(t, err, "a provider that is away does not keep the server from starting")
	token := signToken(t, keys["ed"].method, keys["ed"].key, "ed", claimsFor("ada"))
	_, err = a.Identify(bearer(t, token))
	require.Equal(t, codeUnavailable, codeOf(t, err))
	away.Store(false)
	a.keys.triedAt = time.Time{}
	_, err = a.Identify(bearer(t, token))
	require.NoError(t, err)
	away.Store(true)
	a.keys.readAt, a.keys.triedAt = time.Time{}, time.Time{}
	_, err = a.Identify(bearer(t, token))
	require.NoError(t, err)
}

func TestAShortRSAKeyIsRefused(t *testing.T) {
	t.Parallel()
	n, _ := new(big.Int).SetString(strings.Repeat("F", 256), 16) // 1024 bits
	require.False(t, strongEnough(&rsa.PublicKey{N: n, E: 65537}))
	require.True(t, strongEnough(ed25519.PublicKey(make([]byte, 32))))
	require.True(t, strongEnough(&ecdsa.PublicKey{}))
}

// A dev token is good for everything, and outside dev mode nobody makes one.
func TestTheDevTokenExistsInDevModeOnly(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.call("", "POST", "/api/dev/token", object{"sub": "ada"}).fails(http.StatusNotFound, codeNotFound)
	dev := newEdge(t, func(c *Config, _ *Deps) { c.DevMode = true })
	token := dev.call("", "POST", "/api/dev/token", object{"sub": "ada", "name": "Ada", "roles": []string{"operator"}}).is(http.StatusOK).text("token")
	dev.call(token, "POST", "/api/shows", object{"title": "x"}).is(http.StatusCreated)
	dev.call("", "POST", "/api/dev/token", object{"sub": ""}).fails(http.StatusUnprocessableEntity, codeInvalid)
	dev.call("", "POST", "/api/dev/token", object{"sub": "x", "exp": 1}).fails(http.StatusBadRequest, codeUnknownField)
}
