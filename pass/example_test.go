package pass_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"foyer/pass"
)

// A shop lets only people to its checkout who are inside. Here it knows Foyer's key;
// usually it names Config.JWKSURL and Config.RevocationsURL instead.
func Example() {
	signer, err := pass.NewSigner(bytes.Repeat([]byte{1}, ed25519.SeedSize)) // as Foyer does
	if err != nil {
		panic(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	verifier, err := pass.NewVerifier(pass.Config{
		Show: "demo",
		Keys: map[string]ed25519.PublicKey{signer.KeySet().Keys[0].KeyID: key},
	})
	if err != nil {
		panic(err)
	}
	checkout := verifier.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := pass.FromContext(r.Context())
		fmt.Fprintf(w, "welcome, %s", p.Person)
	}))

	token, err := signer.Sign("ada", "demo", "r1", 1, time.Now().Add(time.Minute))
	if err != nil {
		panic(err)
	}
	for _, header := range []string{token, ""} {
		request := httptest.NewRequest(http.MethodGet, "/checkout", nil)
		if header != "" {
			request.Header.Set(pass.Header, header)
		}
		answer := httptest.NewRecorder()
		checkout.ServeHTTP(answer, request)
		fmt.Println(answer.Code, answer.Body)
	}
	// Output:
	// 200 welcome, ada
	// 403 A valid admission pass is needed.
}
