package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"foyer/domain"
)

// check reports all that is wrong with a plan at once.
func (p Plan) check() error {
	opens := time.Unix(0, 0)
	show := domain.Show{ID: "simulated", Title: "Simulated", OpensAt: opens, Queue: p.Queue, Seating: domain.DefaultSeating()}
	var problems []error
	if err := show.Validate(); err != nil {
		problems = append(problems, err)
	}
	if p.Seats < 0 || p.Seats > domain.MaxSeatsPerShow {
		problems = append(problems, fmt.Errorf("seats must be from 0 to %d", domain.MaxSeatsPerShow))
	}
	if p.Prequeue < 0 || p.Prequeue > maxSale {
		problems = append(problems, fmt.Errorf("prequeue must be from 0 to %s", maxSale))
	}
	if p.Sale <= 0 || p.Sale > maxSale {
		problems = append(problems, fmt.Errorf("sale must be positive and at most %s", maxSale))
	}
	if p.Tick < 50*time.Millisecond || p.Tick > time.Minute {
		problems = append(problems, errors.New("tick must be from 50ms to 1m"))
	}
	if late := time.Duration(p.Queue.LateJoinSeconds) * time.Second; late >= p.Sale && p.Sale > 0 {
		problems = append(problems, errors.New("the sale must be longer than people may join the draw late"))
	}
	return errors.Join(problems...)
}

var errLaneShares = errors.New("lane shares must be one of each lane at most, none negative, and at most 1 together")

// checkLanes reports shares of lanes that the plan does not have, or that are none.
func (c Crowd) checkLanes(p Plan) error {
	total := 0.0
	for _, share := range c.LaneShares {
		if !(share >= 0 && share <= 1) { // also what is no number at all
			return errLaneShares
		}
		total += share
	}
	if len(c.LaneShares) > len(p.Queue.Lanes) || total > 1 {
		return errLaneShares
	}
	return nil
}

func (c Crowd) check() error {
	var problems []error
	if c.People < 1 || c.People > maxPeople {
		problems = append(problems, fmt.Errorf("people must be from 1 to %d", maxPeople))
	}
	for name, share := range map[string]float64{
		"prequeue share": c.PrequeueShare, "burst share": c.BurstShare, "no-show share": c.NoShowShare,
		"give-up share": c.GiveUpShare, "look share": c.LookShare,
	} {
		if !(share >= 0 && share <= 1) {
			problems = append(problems, fmt.Errorf("%s must be from 0 to 1", name))
		}
	}
	if c.PrequeueShare+c.BurstShare > 1 {
		problems = append(problems, errors.New("prequeue share and burst share must be at most 1 together"))
	}
	for name, d := range map[string]time.Duration{
		"burst decay": c.BurstDecay, "trickle": c.Trickle, "patience": c.Patience, "claim after": c.ClaimAfter, "inside": c.Inside,
	} {
		if d < 0 || d > maxSale {
			problems = append(problems, fmt.Errorf("%s must be from 0 to %s", name, maxSale))
		}
	}
	total := 0.0
	for _, weight := range c.Seats {
		if !(weight >= 0) {
			total = -1
			break
		}
		total += weight
	}
	if len(c.Seats) == 0 || len(c.Seats) > maxSeats || !(total > 0) || math.IsInf(total, 1) {
		problems = append(problems, fmt.Errorf("seats of a buyer must be 1 to %d weights, none negative and one positive", maxSeats))
	}
	return errors.Join(problems...)
}
