package pass

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Issuer stands in every pass as iss.
const Issuer = "foyer"

// Why a pass was refused. Test for them with errors.Is; the cause is kept beside.
var (
	// ErrMissing is returned when a request carries no pass.
	ErrMissing = errors.New("no admission pass")
	// ErrInvalid is returned for what is not a pass of this issuer: another form,
	// algorithm, key or signature, or a claim that is missing.
	ErrInvalid = errors.New("not a valid admission pass")
	// ErrExpired is returned for a genuine pass whose session is over by time.
	ErrExpired = errors.New("admission pass is over")
	// ErrWrongShow is returned for a genuine pass of another show.
	ErrWrongShow = errors.New("admission pass is for another show")
	// ErrRevoked is returned for a genuine pass whose session ended before its time.
	ErrRevoked = errors.New("admission pass was revoked")
	// ErrUnavailable is returned while it cannot be told: the keys were never read,
	// or the revocations are older than Config.MaxStale.
	ErrUnavailable = errors.New("admission passes cannot be checked now")
)

// Pass is what a pass says: the person is inside the show until Expires.
type Pass struct {
	Person  string // subject of the identity token that the person joined with
	Show    string
	Request string    // the person's place at the show
	Epoch   int64     // grows when all places of the show were lost or reset
	ID      string    // names one session; see SessionID
	Expires time.Time // no later than the session's deadline; whole seconds
}

// SessionID is the jti of a pass: it follows from the session, so a pass asked for
// twice is the same, and the same place in another session has another id. deadline
// is the session's, to the millisecond.
func SessionID(show, request string, epoch int64, deadline time.Time) string {
	sum := sha256.Sum256([]byte(show + "\x00" + request + "\x00" +
		strconv.FormatInt(epoch, 10) + "\x00" + strconv.FormatInt(deadline.UnixMilli(), 10)))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// claims is a pass on the wire. Everything in it follows from the place, so it is the
// same to the byte each time. There is no iat: nothing keeps when a session began, and
// its deadline says all that a shop has to check.
type claims struct {
	jwt.RegisteredClaims
	Show    string `json:"show"`
	Request string `json:"requestId"`
	Epoch   int64  `json:"epoch"`
}

func (c claims) pass() (Pass, error) {
	p := Pass{Person: c.Subject, Show: c.Show, Request: c.Request, Epoch: c.Epoch, ID: c.ID}
	if p.Person == "" || p.Show == "" || p.Request == "" || p.ID == "" {
		return Pass{}, errors.New("a claim is missing")
	}
	p.Expires = c.ExpiresAt.UTC()
	return p, nil
}

type contextKey struct{}

// NewContext returns a context that carries the pass.
func NewContext(ctx context.Context, p Pass) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the pass that [Verifier.Require] put into a request's context.
func FromContext(ctx context.Context) (p Pass, ok bool) {
	p, ok = ctx.Value(contextKey{}).(Pass)
	return p, ok
}
