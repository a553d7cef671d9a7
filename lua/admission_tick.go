package lua

import (
	"context"
	"fmt"
	"time"

	"foyer/domain"
)

// Bounds of one admit step; More asks for another.
const (
	maxAdmissions = 625 // let in
	maxEndings    = 200 // sessions ended, and silent waiters dropped, each
	maxKnots      = 400 // sampled by one call; the sample of a million is some thousand
)

// AdmitOptions say why an admit step runs and how much it may do.
type AdmitOptions struct {
	// Tick is the interval of regular steps. A step is skipped when less than half of
	// it has passed since the last and no session is over: a tick told twice counts
	// once, while one that comes a little early is not lost. 0: a slot was freed, or
	// limits have changed; run now.
	Tick time.Duration
	// Batch is how many to let in at most; 0 means 625, which is the most.
	Batch int
	// ByOperator lets people in while the show is paused too. It passes no limit.
	ByOperator bool
}

// AdmitResult is what an admit step did.
type AdmitResult struct {
	Admitted   []domain.Admitted  // in order
	Expired    []domain.RequestID // turns and sessions that ran out, waiters who fell silent
	FreedSeats []domain.SeatID    // of sessions that ran out
	Stats      domain.Stats
	Skipped    bool // too soon after the last step; nothing was done
	More       bool // there is more to do; call again at once
}

// Admit ends what has run out, drops waiters not heard of for the show's grace, and
// lets in as many as there is room and rate for, in order. Nobody is dropped for a
// while after the show was restored or nobody had ticked for 10 seconds: people may
// have been unable to make contact. Nobody is let in unless the show is open.
func (s *Steps) Admit(ctx context.Context, show domain.ShowID, opts AdmitOptions) (AdmitResult, error) {
	batch := opts.Batch
	if batch <= 0 || batch > maxAdmissions {
		batch = maxAdmissions
	}
	r, err := s.step(ctx, "admission_admit", show, opts.Tick.Milliseconds(), batch, maxEndings, oneIf(opts.ByOperator))
	if err != nil {
		return AdmitResult{}, err
	}
	result := AdmitResult{
		Skipped:    r.int(1) == 1,
		More:       r.int(2) == 1,
		Expired:    ids[domain.RequestID](r.list(5)),
		FreedSeats: ids[domain.SeatID](r.list(6)),
	}
	result.Stats, _ = r.list(0).stats(show)
	claimBy := instant(r.int(3))
	for _, request := range ids[domain.RequestID](r.list(4)) {
		result.Admitted = append(result.Admitted, domain.Admitted{RequestID: request, ClaimBy: claimBy})
	}
	return result, nil
}

// Knots samples the line at the ranks of domain.RankGrid, and each lane of a show that
// has some. Scores are secret while the draw is open: no rank may be told from them before.
func (s *Steps) Knots(ctx context.Context, show domain.ShowID) (domain.RankKnots, domain.Stats, error) {
	knots, stats, err := s.sample(ctx, show, domain.OrdinaryLane)
	for lane := 1; err == nil && lane < stats.Lanes.Len(); lane++ {
		var of domain.RankKnots
		if stats.Lanes[lane].Waiting > 0 {
			of, _, err = s.sample(ctx, show, lane)
		}
		knots.Lanes = append(knots.Lanes, of)
	}
	return knots, stats, err
}

// sample samples one lane, over as many calls as its length takes.
func (s *Steps) sample(ctx context.Context, show domain.ShowID, lane int) (domain.RankKnots, domain.Stats, error) {
	var knots domain.RankKnots
	var stats domain.Stats
	for last, score := int64(0), int64(0); last == 0 || last < knots.Waiting; {
		r, err := s.step(ctx, "admission_knots", show,
			domain.RankDense, fmt.Sprint(domain.RankRatio), s.whole, maxKnots, knots.Waiting, last, score, lane)
		if err != nil {
			return domain.RankKnots{}, domain.Stats{}, err
		}
		if last == 0 {
			stats, _ = r.list(0).stats(show)
			knots.Waiting = stats.WaitingIn(lane)
		}
		if knots.Waiting == 0 {
			break
		}
		last = r.int(1)
		for i := range r.rest(2) {
			score = r.int(2 + i)
			knots.Scores = append(knots.Scores, score%domain.LaneSpan)
		}
	}
	return knots, stats, nil
}
