package lua

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"foyer/domain"
)

// Revocation is a session that has ended, by time or before it. Its pass counts no more.
type Revocation struct {
	RequestID domain.RequestID
	Epoch     int64     // in which it ended
	Deadline  time.Time // when it would have been over by itself
	EndedAt   time.Time
}

// RevocationCursor is how far somebody has read the ended sessions of a show. The zero
// value has read nothing.
type RevocationCursor struct {
	// MinEpoch is the lowest epoch whose passes can count: all sessions of earlier ones
	// are gone.
	MinEpoch int64
	Number   int64
}

// maxRevocations bounds one page.
const maxRevocations = 1000

// Revocations tells the sessions of a show that ended after a cursor, in that order, at
// most limit or 1000, where to go on, and whether there are more already. A session is
// forgotten some minutes after its deadline. A cursor from before Redis was lost reads
// from the beginning.
func (s *Steps) Revocations(ctx context.Context, show domain.ShowID, since RevocationCursor, limit int) (list []Revocation, next RevocationCursor, more bool, err error) {
	if limit <= 0 || limit > maxRevocations {
		limit = maxRevocations
	}
	r, err := s.step(ctx, "show_revocations", show, since.MinEpoch, since.Number, limit)
	if err != nil {
		return nil, since, false, err
	}
	for _, text := range ids[string](r.rest(3)) {
		revocation, err := parseRevocation(text)
		if err != nil {
			return nil, since, false, err
		}
		list = append(list, revocation)
	}
	return list, RevocationCursor{MinEpoch: r.int(0), Number: r.int(1)}, r.int(2) == 1, nil
}

// parseRevocation reads what revoke() in prelude_ending.lua writes.
func parseRevocation(text string) (Revocation, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return Revocation{}, fmt.Errorf("ended session %q is not understood", text)
	}
	deadline, err1 := strconv.ParseInt(parts[1], 10, 64)
	epoch, err2 := strconv.ParseInt(parts[2], 10, 64)
	ended, err3 := strconv.ParseInt(parts[3], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Revocation{}, fmt.Errorf("ended session %q is not understood: %w", text, err)
	}
	return Revocation{
		RequestID: domain.RequestID(parts[0]), Epoch: epoch, Deadline: instant(deadline), EndedAt: instant(ended),
	}, nil
}
