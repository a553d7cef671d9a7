package domain

import "math"

// Odds tell somebody who waits, without flattery, whether seats will be left for them.
type Odds struct {
	SeatsLeft int64 `json:"seatsLeft"` // not sold; some are in baskets
	Ahead     int64 `json:"ahead"`     // people who choose before: inside, or earlier in the line
	// SeatsPerBuyer is what recent buyers took each; nil until somebody has bought.
	SeatsPerBuyer *float64 `json:"seatsPerBuyer"`
	// SoldOutLikely: were everybody ahead to buy as recent buyers did, nothing would
	// be left. Until somebody has bought, one seat each is reckoned with.
	SoldOutLikely bool `json:"soldOutLikely"`
}

// EstimateOdds are the odds at a rank; nil where there is no line or are no seats.
func EstimateOdds(rank int64, s Stats) *Odds {
	if rank <= 0 || s.Capacity == 0 {
		return nil
	}
	odds := Odds{SeatsLeft: max(s.Capacity-s.Sold, 0), Ahead: rank - 1 + s.Active}
	each := 1.0
	if s.SeatsPerBuyer > 0 {
		each = s.SeatsPerBuyer
		shown := math.Round(each*100) / 100
		odds.SeatsPerBuyer = &shown
	}
	odds.SoldOutLikely = float64(odds.Ahead)*each >= float64(odds.SeatsLeft)
	return &odds
}
