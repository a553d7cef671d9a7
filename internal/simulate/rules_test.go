package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// openRoom has been open from the start, without a pre-queue.
func openRoom(maxActive, rate, people int) *Room {
	return NewRoom(Rules{Turn: 10_000, Session: 100_000, Grace: 20_000, MaxActive: maxActive, RatePerMinute: rate}, people, birth)
}

func letIn(r *Room, now, interval int64) []int32 {
	var step Step
	r.Admit(now, interval, &step)
	return step.Admitted
}

func TestALineIsServedInOrderAndByTheDrawBeforeTheOpening(t *testing.T) {
	t.Parallel()
	r := openRoom(3, 1000, 6)
	r.rules.OpensAt = birth + 1000
	for id, drawn := range []int64{30, 10, 20} {
		require.True(t, r.Join(birth, int32(id), drawn, 0))
	}
	require.Equal(t, domain.PhasePrequeue, r.Phase(birth))
	require.Empty(t, letIn(r, birth, 0))
	require.True(t, r.Join(birth+1000, 3, 1, 0))
	require.Equal(t, []int32{1, 2, 0}, letIn(r, birth+1000, 0), "whoever comes after the opening is behind the drawn")
	require.Equal(t, 1, r.Waiting())
	require.True(t, r.Leave(birth+1000, 2))
	require.Equal(t, []int32{3}, letIn(r, birth+1001, 0))
}

// 2 a minute: the third is let in when no 60 seconds hold three.
func TestTheRateIsThatOfAnyMinute(t *testing.T) {
	t.Parallel()
	r := openRoom(100, 2, 5)
	for id := range int32(5) {
		r.Join(birth, id, 0, 0)
	}
	require.Equal(t, 2, r.Inside(birth))
	require.Equal(t, 3, r.Waiting())
	require.Empty(t, letIn(r, birth+60_999, 0))
	require.Equal(t, []int32{2, 3}, letIn(r, birth+61_000, 0))
}

func TestATurnThatPassesIsGivenOn(t *testing.T) {
	t.Parallel()
	r := openRoom(1, 1000, 3)
	r.Join(birth, 0, 0, 0)
	r.Join(birth, 1, 0, 0)
	require.Equal(t, 1, r.Inside(birth+9999))
	require.Zero(t, r.Inside(birth+10_000), "over at its deadline, swept or not")
	require.False(t, r.Claim(birth+10_000, 0))
	require.Equal(t, []int32{1}, letIn(r, birth+10_000, 1000))
	require.Equal(t, Expired, r.Standing(birth+10_000, 0))
	require.True(t, r.Claim(birth+12_000, 1))
	require.Equal(t, Active, r.Standing(birth+111_999, 1))
	require.Equal(t, Expired, r.Standing(birth+112_000, 1))
}

func TestWhoFellSilentCostsNoSlot(t *testing.T) {
	t.Parallel()
	r := openRoom(1, 1000, 4)
	for id := range int32(4) {
		r.Join(birth, id, 0, 0)
		r.Stay(id)
	}
	r.Claim(birth, 0)
	r.Touch(birth+1000, 1)
	var step Step
	for now := int64(birth); now < birth+50_000; now += 1000 {
		r.Admit(now, 1000, &step)
		require.Empty(t, step.Ended, "nobody is dropped at first: they may have been unable to make contact")
	}
	r.Admit(birth+50_000, 1000, &step)
	require.Equal(t, []int32{1}, step.Ended)
	r.Leave(birth+50_000, 0)
	require.Equal(t, []int32{2}, letIn(r, birth+50_000, 0))
}
