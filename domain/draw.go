package domain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
