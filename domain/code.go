package domain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// JoinCode is what a join code says: who may join which lane of which show. It is signed,
// so that no list of codes is kept anywhere.
type JoinCode struct {
	ID     string     // tells two codes that say the same apart, and counts uses
	ShowID ShowID     // the only show that it counts at
	Lane   string     // by its name
	Person PersonID   // the only one who may use it; empty: whoever has it
	Uses   int        // by so many people at most; 0: by any number
	Until  *time.Time // in whole seconds; not from this instant on. nil: as long as people may join
}

// NewCodeID returns an id for a code, short since people may have to type it: 48 random
// bits, enough for the codes of one show.
func NewCodeID() string { return NewID()[:8] }

// MaxCodeUses bounds Uses of a code, and MaxCodeBytes the length of one, which is enough
// for whatever a valid code says.
const (
	MaxCodeUses  = 1_000_000
	MaxCodeBytes = 2048
)

// InvalidCodeError is returned when a join code gives no place. Reason is a sentence for
// the person who typed it.
type InvalidCodeError struct{ Reason string }

func (e *InvalidCodeError) Error() string { return "join code is not valid: " + e.Reason }

// Reasons why a code gives no place.
var (
	errCodeForm    = &InvalidCodeError{"This is no join code."}
	errCodeForged  = &InvalidCodeError{"The code was not made here, or was altered."}
	errCodeShow    = &InvalidCodeError{"The code is for another show."}
	errCodeLane    = &InvalidCodeError{"The code is for a lane that this show does not have."}
	errCodeLate    = &InvalidCodeError{"The code has expired."}
	errCodeAnother = &InvalidCodeError{"The code is for somebody else."}
	// ErrCodeUsedUp is for whoever counts uses.
	ErrCodeUsedUp = &InvalidCodeError{"The code has been used by as many people as it is for."}
)

// Validate reports everything wrong with what a code is to say, as an *InvalidError.
func (c JoinCode) Validate(show *Show) error {
	var p problems
	if show.Queue.LaneNumber(c.Lane) == OrdinaryLane {
		p.add("lane", "is no lane of this show")
	}
	if c.Person != "" && !c.Person.Valid() {
		p.add("person", "must be text of at most %d characters", MaxPersonIDSize)
	}
	p.between("uses", c.Uses, 0, MaxCodeUses)
	if c.Until != nil && c.Until.Unix() <= time.Now().Unix() {
		p.add("until", "must be in the future")
	}
	return p.err()
}

// JoinCodes signs and checks join codes. Every process with the same secret makes and
// takes the same ones.
type JoinCodes struct {
	key   [sha256.Size]byte
	keyID string
}

// codeMACBytes is how much of the HMAC stands in a code: nobody finds 128 bits by trying.
const codeMACBytes = 16

// NewJoinCodes derives a key of its own from the secret, so that codes reveal nothing
// about other uses of it.
func NewJoinCodes(secret []byte) JoinCodes {
	var codes JoinCodes
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("foyer join code v1"))
	mac.Sum(codes.key[:0])
	id := sha256.Sum256(codes.key[:])
	codes.keyID = encode64(id[:3])
	return codes
}

// codeOnWire are the parts of a code, short since people may have to type it.
type codeOnWire struct {
	ID     string   `json:"i"`
	Show   ShowID   `json:"s"`
	Lane   string   `json:"l"`
	Person PersonID `json:"p,omitempty"`
	Uses   int      `json:"n,omitempty"`
	Until  int64    `json:"u,omitempty"` // seconds since 1970
}

// strict64 reads each text in one way only: nothing of a code can be changed unnoticed.
var strict64 = base64.RawURLEncoding.Strict()

func encode64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// Mint returns the code that says c, as KEY.WHAT.MAC in the letters of base64url.
func (codes JoinCodes) Mint(c JoinCode) (string, error) {
	wire := codeOnWire{ID: c.ID, Show: c.ShowID, Lane: c.Lane, Person: c.Person, Uses: c.Uses}
	if c.Until != nil {
		wire.Until = c.Until.Unix()
	}
	text, err := json.Marshal(wire)
	if err != nil {
		return "", fmt.Errorf("mint join code: %w", err)
	}
	signed := codes.keyID + "." + encode64(text)
	return signed + "." + encode64(codes.mac(signed)), nil
}

func (codes JoinCodes) mac(signed string) []byte {
	mac := hmac.New(sha256.New, codes.key[:])
	mac.Write([]byte(signed))
	return mac.Sum(nil)[:codeMACBytes]
}

// ErrOtherCodeKey is returned when a code was signed with another key than the one at hand.
var ErrOtherCodeKey = errors.New("join code was signed with another key")

// Inspect reads a code, also one that counts no more. It fails with *InvalidCodeError
// when it is no code or was altered, and with ErrOtherCodeKey when that cannot be told.
func (codes JoinCodes) Inspect(text string) (JoinCode, error) {
	c, err := ReadJoinCode(text)
	if err != nil {
		return c, err
	}
	text = strings.TrimSpace(text)
	at := strings.LastIndexByte(text, '.')
	mac, _ := strict64.DecodeString(text[at+1:])
	switch {
	case !strings.HasPrefix(text, codes.keyID+"."):
		return c, ErrOtherCodeKey
	case !hmac.Equal(mac, codes.mac(text[:at])):
		return c, errCodeForged
	}
	return c, nil
}

// ReadJoinCode tells what a code says without asking whether it is genuine.
func ReadJoinCode(text string) (JoinCode, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 || len(text) > MaxCodeBytes {
		return JoinCode{}, errCodeForm
	}
	raw, err := strict64.DecodeString(parts[1])
	var wire codeOnWire
	if err != nil || json.Unmarshal(raw, &wire) != nil {
		return JoinCode{}, errCodeForm
	}
	c := JoinCode{ID: wire.ID, ShowID: wire.Show, Lane: wire.Lane, Person: wire.Person, Uses: wire.Uses}
	if wire.Until != 0 {
		until := time.Unix(wire.Until, 0).UTC()
		c.Until = &until
	}
	return c, nil
}

// Open checks that a code gives a person a lane of a show now, but for its uses. It fails
// with *InvalidCodeError.
func (codes JoinCodes) Open(text string, show *Show, person PersonID, now time.Time) (c JoinCode, lane int, err error) {
	c, err = codes.Inspect(text)
	lane = show.Queue.LaneNumber(c.Lane)
	switch {
	case errors.Is(err, ErrOtherCodeKey):
		return c, 0, errCodeForged
	case err != nil:
		return c, 0, err
	case c.ShowID != show.ID:
		return c, 0, errCodeShow
	case lane == OrdinaryLane:
		return c, 0, errCodeLane
	case c.Until != nil && !now.Before(*c.Until):
		return c, 0, errCodeLate
	case c.Person != "" && c.Person != person:
		return c, 0, errCodeAnother
	}
	return c, lane, nil
}
