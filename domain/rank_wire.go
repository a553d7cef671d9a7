package domain

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// A million drawn places have scores of up to 13 digits: written out, the knots of
// one message would be 14 KB. On the wire a score is its distance from the one
// before, in the variable length of encoding/binary, and all of them are base64:
// less than 7 KB for a million, whatever the scores.

type knotsOnWire struct {
	Waiting int64       `json:"waiting"`
	Deltas  string      `json:"deltas"`
	Lanes   []RankKnots `json:"lanes,omitempty"`
}

var errScoresFall = errors.New("scores of rank knots fall")

// MarshalJSON writes the scores as distances. It fails when they are not rising.
func (k RankKnots) MarshalJSON() ([]byte, error) {
	var packed []byte
	last := int64(0)
	for _, score := range k.Scores {
		if score < last {
			return nil, errScoresFall
		}
		packed = binary.AppendUvarint(packed, uint64(score-last))
		last = score
	}
	return json.Marshal(knotsOnWire{k.Waiting, base64.RawStdEncoding.EncodeToString(packed), k.Lanes})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (k *RankKnots) UnmarshalJSON(text []byte) error {
	var wire knotsOnWire
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	packed, err := base64.RawStdEncoding.DecodeString(wire.Deltas)
	if err != nil {
		return fmt.Errorf("read rank knots: %w", err)
	}
	*k = RankKnots{Waiting: wire.Waiting, Lanes: wire.Lanes}
	last := int64(0)
	for len(packed) > 0 {
		delta, n := binary.Uvarint(packed)
		if n <= 0 || delta > uint64(2*DrawCeiling) {
			return errors.New("read rank knots: a distance is not a number")
		}
		packed, last = packed[n:], last+int64(delta)
		k.Scores = append(k.Scores, last)
	}
	return nil
}
