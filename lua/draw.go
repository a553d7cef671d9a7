package lua

import (
	"context"
	"strconv"

	"foyer/domain"
)

// drawPage bounds how many entries of a draw one call reads.
const drawPage = 2000

// DrawRequests lists who took part in a show's draw, whatever became of them, in order
// of arrival. While the draw is open somebody may be missing who joins meanwhile; an id
// may stand twice.
func (s *Steps) DrawRequests(ctx context.Context, show domain.ShowID) ([]domain.RequestID, domain.Stats, error) {
	var requests []domain.RequestID
	stats, err := s.eachDrawn(ctx, show, 0, func(page []domain.RequestID, _ reply, _ int64) {
		requests = append(requests, page...)
	})
	return requests, stats, err
}

// Drawn is a draw beside the line that came of it, for whoever holds the one against
// the other.
type Drawn struct {
	Stats    domain.Stats
	Requests []domain.RequestID
	Waiting  map[domain.RequestID]int64 // the scores in the line of those who wait still
	Unlisted int64                      // who wait with a drawn place and are not among Requests
}

// Drawn reads a show's draw and where those of it stand who wait still.
func (s *Steps) Drawn(ctx context.Context, show domain.ShowID) (Drawn, error) {
	drawn := Drawn{Waiting: map[domain.RequestID]int64{}}
	standing := int64(0)
	stats, err := s.eachDrawn(ctx, show, 1, func(page []domain.RequestID, scores reply, waiting int64) {
		for i, request := range page {
			if score, err := strconv.ParseFloat(scores.str(i), 64); err == nil {
				drawn.Waiting[request] = int64(score) % domain.LaneSpan
			}
		}
		drawn.Requests, standing = append(drawn.Requests, page...), waiting
	})
	drawn.Stats, drawn.Unlisted = stats, max(standing-int64(len(drawn.Waiting)), 0)
	return drawn, err
}

// eachDrawn reads the draw in pages, with how many wait with a drawn place and, where
// they are wanted, the scores of those who wait still ("": not any more).
func (s *Steps) eachDrawn(ctx context.Context, show domain.ShowID, wanted int, see func(page []domain.RequestID, scores reply, waiting int64)) (domain.Stats, error) {
	for from := 0; ; {
		r, err := s.step(ctx, "draw_page", show, from, drawPage, domain.DrawCeiling, wanted)
		if err != nil {
			return domain.Stats{}, err
		}
		page := ids[domain.RequestID](r.list(3))
		see(page, r.list(4), r.int(2))
		from += len(page)
		if len(page) == 0 || int64(from) >= r.int(1) {
			stats, _ := r.list(0).stats(show)
			return stats, nil
		}
	}
}
