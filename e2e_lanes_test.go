package foyer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/client"
	"foyer/domain"
	"foyer/internal/testenv"
)

// A sale with a lane, through the whole program: codes of one process count at another, a
// bad one gives no place, slots that come free go to both lines by weight, nobody's number
// rises, and Redis is restored with the lane and its weight.
func TestE2ELanesShareASale(t *testing.T) {
	d := deploy(t, 2, 2)
	const each, weight, slots = 20, 3, 4
	operator := d.as(t, 0, "operator", "operator")
	show := d.putOnSale(t, func(s *client.NewShow) {
		queue := domain.DefaultQueue()
		queue.MaxActive, queue.Lanes = slots, []domain.Lane{{Name: "fans", Weight: weight}}
		s.Queue = &queue
	})
	for i := range slots {
		_, _, err := d.as(t, i, fmt.Sprint("inside-", i)).Join(t.Context(), show)
		require.NoError(t, err)
	}
	codes, err := operator.MintCodes(t.Context(), show, client.CodeOrder{Lane: "fans", Uses: each})
	require.NoError(t, err)
	name := func(lane string, i int) string { return fmt.Sprintf("%s-%d", lane, i) }

	errs := make([]error, 2*each)
	together(2*each, func(i int) {
		if i%2 == 0 {
			_, _, errs[i] = d.as(t, i/2, name("ordinary", i/2)).Join(t.Context(), show)
			return
		}
		_, _, errs[i] = d.as(t, i/2, name("fan", i/2)).JoinWithCode(t.Context(), show, codes[0])
	})
	require.NoError(t, errors.Join(errs...))
	var refused *client.Error
	late := d.as(t, 1, "too-late")
	_, _, err = late.JoinWithCode(t.Context(), show, codes[0])
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "INVALID_CODE", refused.Code, "it is used up, and both processes know")
	_, err = late.Place(t.Context(), show)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "NOT_JOINED", refused.Code)

	ranks := map[string]int64{}
	standing := func() (waiting map[string]int) {
		waiting = map[string]int{}
		for i := range each {
			for _, lane := range []string{"ordinary", "fan"} {
				place, err := d.as(t, i, name(lane, i)).Place(t.Context(), show)
				require.NoError(t, err)
				if place.Status != domain.StatusWaiting {
					continue
				}
				waiting[lane]++
				if before, known := ranks[name(lane, i)]; known {
					require.LessOrEqual(t, *place.Rank, before)
				}
				ranks[name(lane, i)] = *place.Rank
				require.LessOrEqual(t, place.Waiting, int64(each), "of one's own line")
				require.Equal(t, lane == "fan", place.Lane == "fans")
			}
		}
		return waiting
	}
	require.Equal(t, map[string]int{"ordinary": each, "fan": each}, standing())
	for i := range slots {
		require.NoError(t, d.as(t, i, fmt.Sprint("inside-", i)).Leave(t.Context(), show))
	}
	testenv.Eventually(t, 20*time.Second, "the freed slots are given on", func() bool {
		stats, err := operator.OperatorShow(t.Context(), show)
		return err == nil && stats.Active == slots && stats.Waiting == 2*each-slots
	})
	require.Equal(t, map[string]int{"ordinary": each - 1, "fan": each - 3}, standing(), "three of four are fans")

	require.NoError(t, d.redis.Client(t).FlushAll(t.Context()).Err())
	testenv.Eventually(t, 20*time.Second, "fans can join again, and have three of four turns", func() bool {
		place, _, err := d.as(t, 0, name("fan", 0)).JoinWithCode(t.Context(), show, codes[0])
		return err == nil && place.Epoch > 1
	})
	lanes, err := operator.OperatorShow(t.Context(), show)
	require.NoError(t, err)
	require.Equal(t, int64(weight), lanes.Lanes[1].Weight)
}
