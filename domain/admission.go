package domain

import (
	"math"
	"time"
)

// Status is where a person stands at a show.
type Status string

// The states of a place. The last four are final for that place.
const (
	StatusPrequeue Status = "PREQUEUE" // in the draw, no rank yet
	StatusWaiting  Status = "WAITING"
	StatusAdmitted Status = "ADMITTED" // may claim until ClaimBy
	StatusActive   Status = "ACTIVE"   // inside until ExpiresAt
	StatusExpired  Status = "EXPIRED"  // turn, session or grace ran out
	StatusLeft     Status = "LEFT"     // left, or done with a confirmed booking
	StatusSoldOut  Status = "SOLD_OUT" // was waiting when the last seat went
	StatusClosed   Status = "CLOSED"   // was waiting when the sale ended
)

// Place is one person's standing at a show as of Version.
type Place struct {
	RequestID  RequestID
	ShowID     ShowID
	Status     Status
	Rank       int64 // 1 is next; 0 when there is none to tell
	Score      int64 // order in the line; lower is earlier; 0 unless waiting
	Lane       int   // number of the line, by the show's settings; 0: the ordinary one, or not waiting
	Waiting    int64 // people waiting at the show, or in the same lane of it
	Active     int64 // people inside or with a turn
	ETA        *ETA
	Odds       *Odds      // whether seats will be left; nil unless waiting
	ClaimBy    *time.Time // deadline of the turn, while ADMITTED
	ExpiresAt  *time.Time // deadline of the session, while ACTIVE
	Epoch      int64
	Version    int64
	ServerTime time.Time
}

// ETA is an estimated wait as a range; both ends are whole seconds.
type ETA struct {
	MinSeconds int64 `json:"minSeconds"`
	MaxSeconds int64 `json:"maxSeconds"`
}

// Admitted is one person let in by an admit step.
type Admitted struct {
	RequestID RequestID `json:"requestId"`
	ClaimBy   time.Time `json:"claimBy"`
}

// etaSpread widens an estimate to a range: the future rate is not known better.
const etaSpread = 0.3

// EstimateWait turns a rank into a range of seconds. The rate is the smaller of
// the configured one and, while all slots are taken, the one measured over the
// last minute: a full house moves only as fast as people leave. It is nil when
// nothing can be said, and zero for the front of a moving line.
func EstimateWait(rank int64, s Stats) *ETA {
	vacancy := max(s.MaxActive-s.Active, 0)
	if rank <= 0 || s.Phase != PhaseOpen {
		return nil
	}
	rate := float64(s.RatePerMinute)
	ahead := float64(rank - 1)
	if rank > vacancy {
		if s.AdmittedLastMinute == 0 {
			return nil
		}
		rate = math.Min(rate, float64(s.AdmittedLastMinute))
		ahead = float64(rank)
	}
	seconds := ahead * 60 / rate
	return &ETA{
		MinSeconds: int64(seconds * (1 - etaSpread)),
		MaxSeconds: int64(math.Ceil(seconds * (1 + etaSpread))),
	}
}
