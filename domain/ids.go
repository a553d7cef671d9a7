package domain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Ids are strings with a type, so that a hold is never passed for a booking.
type (
	// ShowID names the thing on sale: [a-z0-9-]{1,64}.
	ShowID string
	// PersonID is the verified subject of an identity token.
	PersonID string
	// RequestID names one person's place at one show: opaque, unguessable.
	RequestID string
	// SeatID is SECTION-ROW-NUMBER, such as A-3-12.
	SeatID string
	// HoldID names seats kept for one person for a short time.
	HoldID string
	// BookingID names seats sold, or asked for, in one booking.
	BookingID string
	// CommandID names one intent; every retry of the intent carries the same id.
	CommandID string
	// RoomID names a chat room.
	RoomID string
)

// MaxPersonIDSize bounds the subject of an identity token, in characters, so that no
// person can make keys or rows of arbitrary size.
const MaxPersonIDSize = 200

// Valid reports whether the id is Unicode text of 1 to MaxPersonIDSize characters. U+FFFD
// is none of them: it stands for what was no text, and two people could share it. Nor is
// U+0000, which SQL cannot keep.
func (id PersonID) Valid() bool {
	size := utf8.RuneCountInString(string(id))
	return size > 0 && size <= MaxPersonIDSize && !strings.ContainsAny(string(id), "\x00\uFFFD")
}

var showIDForm = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Valid reports whether the id has the form [a-z0-9-]{1,64}.
func (id ShowID) Valid() bool { return showIDForm.MatchString(string(id)) }

// NewID returns 128 random bits as 22 characters of base64url, fit for any of
// the opaque ids of this package. It never repeats and cannot be guessed.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// RequestIDs derives request ids from a secret that every API process shares.
// Deriving instead of storing makes joining idempotent by construction: the same
// person has the same id at a show on every process, after every restart and
// after Redis was lost, and nobody can try ids until the draw favours one.
type RequestIDs struct{ key [sha256.Size]byte }

// NewRequestIDs derives a key of its own from the secret, so that the ids
// reveal nothing about other uses of it.
func NewRequestIDs(secret []byte) RequestIDs {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("foyer request id v1"))
	var ids RequestIDs
	mac.Sum(ids.key[:0])
	return ids
}

// requestIDBytes is how many of the hash make an id: 80 bits, so that in a billion people
// at one show no two are likely to share one, and few enough that Redis keeps the 14
// characters in 16 bytes wherever an id stands; one more would take 32.
const requestIDBytes = 10

// For returns the request id of a person at a show: 14 characters of base64url.
func (ids RequestIDs) For(show ShowID, person PersonID) RequestID {
	mac := hmac.New(sha256.New, ids.key[:])
	mac.Write([]byte(show))
	mac.Write([]byte{0})
	mac.Write([]byte(person))
	var sum [sha256.Size]byte
	return RequestID(base64.RawURLEncoding.EncodeToString(mac.Sum(sum[:0])[:requestIDBytes]))
}
