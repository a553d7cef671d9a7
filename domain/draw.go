package domain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// DrawCeiling is above every drawn score; who joins after the opening gets
// DrawCeiling plus a number from the show's counter, so the drawn come first.
const DrawCeiling int64 = 1 << 40

const drawSeedBytes = 32

// NewDrawSeed returns a secret seed in hex for a show's draw.
func NewDrawSeed() string {
	var b [drawSeedBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// SeedHash is the SHA-256 of a seed, in hex. Published before the draw, it lets
// anybody check afterwards that the revealed seed was fixed in advance.
func SeedHash(seed string) string {
	raw, err := hex.DecodeString(seed)
	if err != nil {
		raw = []byte(seed)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// DrawMark tells seeds apart without giving one away: the first 48 bits of its hash, which
// a script can compare as a number.
func DrawMark(seed string) int64 {
	mark, _ := strconv.ParseInt(SeedHash(seed)[:12], 16, 64) // always hexadecimal
	return mark
}

// DrawScore is the place that the draw gives a request id: the first 40 bits of
// HMAC-SHA256 keyed with the seed, plus one so that no score is zero. Lower is
// earlier. Anybody with the revealed seed can recompute it.
func DrawScore(seed string, id RequestID) int64 {
	raw, err := hex.DecodeString(seed)
	if err != nil {
		raw = []byte(seed)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(id))
	sum := mac.Sum(nil)
	return min(int64(binary.BigEndian.Uint64(sum)>>24)+1, DrawCeiling-1)
}

// DrawAlgorithm says in words how places are drawn, for whoever recomputes them.
const DrawAlgorithm = "score = the first 40 bits, as a big-endian number, of HMAC-SHA256(key = the bytes that the seed writes in hex, " +
	"message = the request id in ASCII), plus 1 and at most 2^40 - 1; places count from 1 by rising score, and by rising request id " +
	"byte by byte where scores are equal. seedHash = SHA-256 of the bytes of the seed, in hex."

// DrawEntry is what the draw gave to one request.
type DrawEntry struct {
	RequestID RequestID `json:"requestId"`
	Place     int64     `json:"place"` // from 1, among all who were drawn
	Score     int64     `json:"score"`
}

func (e DrawEntry) compare(other DrawEntry) int {
	if e.Score != other.Score {
		return int(min(max(e.Score-other.Score, -1), 1))
	}
	return strings.Compare(string(e.RequestID), string(other.RequestID))
}

// Draw is the whole draw, by place: what follows from the seed and the ids of those
// who took part, in any order. An id that stands twice counts once.
func Draw(seed string, ids []RequestID) []DrawEntry {
	entries := make([]DrawEntry, len(ids))
	for i, id := range ids {
		entries[i] = DrawEntry{RequestID: id, Score: DrawScore(seed, id)}
	}
	slices.SortFunc(entries, DrawEntry.compare)
	entries = slices.CompactFunc(entries, func(a, b DrawEntry) bool { return a.RequestID == b.RequestID })
	for i := range entries {
		entries[i].Place = int64(i + 1)
	}
	return entries
}

// FindDrawn looks up in a draw what a request was given.
func FindDrawn(entries []DrawEntry, seed string, id RequestID) (DrawEntry, bool) {
	at, found := slices.BinarySearchFunc(entries, DrawEntry{RequestID: id, Score: DrawScore(seed, id)}, DrawEntry.compare)
	if !found {
		return DrawEntry{}, false
	}
	return entries[at], true
}
