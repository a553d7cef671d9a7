package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A list of live shows may have been read just before a show was made, or just after it
// was closed. While somebody follows the show it must not make the hub forget what it
// heard: nobody would notice that the phase turns.
func TestAFollowedShowIsNotForgotten(t *testing.T) {
	t.Parallel()
	var book showBook
	followed := map[domain.ShowID]bool{"new": true}
	learn := func() { book.learn(nil, func(id domain.ShowID) bool { return followed[id] }) }
	book.note(domain.Stats{ShowID: "new", Epoch: 1, Version: 1, Phase: domain.PhaseOpen})
	learn()
	_, turned := book.note(domain.Stats{ShowID: "new", Epoch: 1, Version: 2, Phase: domain.PhaseClosed})
	require.True(t, turned)
	delete(followed, "new")
	learn()
	_, _, known := book.stats("new")
	require.False(t, known, "nobody is left to be told of it")
}
