package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

func TestChatTextsAreBounded(t *testing.T) {
	t.Parallel()
	require.NoError(t, domain.CheckMessageText(strings.Repeat("ü", domain.MaxChatMessageLength)), "characters count, not bytes")
	require.Error(t, domain.CheckMessageText(strings.Repeat("u", domain.MaxChatMessageLength+1)))
	require.Error(t, domain.CheckMessageText(" \n"))
	require.NoError(t, domain.CheckRoomName("Lobby"))
	require.Error(t, domain.CheckRoomName(""))
}
