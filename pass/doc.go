// Package pass is for shops that keep their own checkout: it checks the admission
// pass, by which Foyer says that a person is inside a show until an instant.
//
// A pass is a JWT signed with Ed25519. Its key is published as a JWKS, so a shop
// checks passes by itself, without asking Foyer at each request:
//
//	verifier, err := pass.NewVerifier(pass.Config{
//		Show:           "demo",
//		JWKSURL:        "https://tickets.example/.well-known/jwks.json",
//		RevocationsURL: "https://tickets.example/api/pass/revocations",
//	})
//	http.Handle("/checkout", verifier.Require(checkout))
//
// # Promises
//
// [Verifier.Verify] accepts a pass only when it was signed by a published key with
// Ed25519, was issued by Foyer for the verifier's show, is not over and, where a
// feed of revocations is named, was not revoked by one interval before the call.
// No other algorithm is tried, whatever a token says of itself. What a token claims
// is looked at only after its signature: who cannot sign learns nothing.
//
// Keys and revocations are read when a call first needs them and again when they are
// old. No goroutine is started, so there is nothing to close. While the feed cannot
// be read, the last known state counts for [Config.MaxStale]; then passes are refused
// with [ErrUnavailable]: a shop that cannot tell must not sell.
//
// [Signer] is the other side, used by Foyer itself, so that what is signed and what
// is checked are defined once.
package pass
