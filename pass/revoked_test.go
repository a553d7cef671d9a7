package pass_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"foyer/pass"
)

// Somebody who left, bought or was removed could go on with their pass until it was over.
func TestARevokedPassIsRefusedWithinAnInterval(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v := f.verifier(t)
	mine, others := f.sign(t, 1, "demo", "r1"), f.sign(t, 1, "demo", "r2")
	_, err := v.Verify(t.Context(), mine)
	require.NoError(t, err)
	f.revoke("r1", 1, opening.Add(10*time.Minute))
	f.travel(time.Second)
	_, err = v.Verify(t.Context(), mine)
	require.ErrorIs(t, err, pass.ErrRevoked)
	_, err = v.Verify(t.Context(), others)
	require.NoError(t, err)
}

// A place that is joined again gives a new session; only the old one's pass is void.
func TestANewSessionOfTheSamePlaceIsNotRevoked(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v := f.verifier(t)
	f.revoke("r1", 1, opening.Add(9*time.Minute))
	_, err := v.Verify(t.Context(), f.sign(t, 1, "demo", "r1"))
	require.NoError(t, err)
}

// After a reset the passes of before are void, and so is the pass of before of a session
// that outlived a loss of Redis under a new epoch and then ended.
func TestPassesOfEarlierEpochsAreVoid(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v, token := f.verifier(t), f.sign(t, 1, "demo", "r1")
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	f.revoke("r1", 2, opening.Add(10*time.Minute))
	f.travel(time.Second)
	_, err = v.Verify(t.Context(), token)
	require.ErrorIs(t, err, pass.ErrRevoked)
	other := f.sign(t, 1, "demo", "r2")
	_, err = v.Verify(t.Context(), other)
	require.NoError(t, err)
	f.set(func() { f.minEpoch = 2 })
	f.travel(time.Second)
	_, err = v.Verify(t.Context(), other)
	require.ErrorIs(t, err, pass.ErrRevoked)
}

func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	f.page = 7
	v := f.verifier(t)
	for n := range 40 {
		f.revoke(fmt.Sprint("r", n), 1, opening.Add(10*time.Minute))
	}
	for n := range 40 {
		_, err := v.Verify(t.Context(), f.sign(t, 1, "demo", fmt.Sprint("r", n)))
		require.ErrorIs(t, err, pass.ErrRevoked)
	}
	require.Equal(t, 6, f.readings("/revocations"), "pages, and not one reading a request")
	f.set(func() { f.ended = nil }) // what is known is not asked for again
	f.travel(2 * time.Minute)
	f.set(func() { f.down = true })
	_, err := v.Verify(t.Context(), f.sign(t, 1, "demo", "r1"))
	require.ErrorIs(t, err, pass.ErrRevoked)
}

// A feed that cannot be read must neither stop the sale at once nor be ignored.
func TestAFeedThatIsDownCountsForAWhile(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v, token := f.verifier(t), f.sign(t, 1, "demo", "r1")
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	f.set(func() { f.down = true })
	f.travel(30 * time.Second)
	for range 5 {
		_, err = v.Verify(t.Context(), token)
		require.NoError(t, err)
	}
	require.Equal(t, 2, f.readings("/revocations"))
	f.travel(time.Second)
	_, err = v.Verify(t.Context(), token)
	require.ErrorIs(t, err, pass.ErrUnavailable)
	f.set(func() { f.down = false })
	f.travel(time.Second)
	_, err = v.Verify(t.Context(), token)
	require.NoError(t, err)
}

func TestManyCallersShareOneReading(t *testing.T) {
	t.Parallel()
	f := newFoyer(t)
	v, token := f.verifier(t), f.sign(t, 1, "demo", "r1")
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	require.Equal(t, 1, f.readings("/revocations"))
	require.Equal(t, 1, f.readings("/jwks.json"))
}
