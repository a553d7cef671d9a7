package events

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a read answers with is understood in both versions of the protocol, and
// nothing that is cut short or is something else is taken for entries.
func TestAnswersOfReadsAreParsed(t *testing.T) {
	t.Parallel()
	const entries = "*2\r\n*2\r\n$3\r\n5-1\r\n*4\r\n$2\r\nid\r\n$1\r\na\r\n$4\r\ntext\r\n$6\r\nx\r\ny\x00z\r\n*2\r\n$3\r\n5-2\r\n*0\r\n"
	want := []*entry{
		{id: "5-1", fields: fields{{"id", "a"}, {"text", "x\r\ny\x00z"}}, attempt: 1},
		{id: "5-2", fields: fields{}, attempt: 1},
	}
	for _, answer := range []string{"*1\r\n*2\r\n$1\r\ns\r\n" + entries, "%1\r\n$1\r\ns\r\n" + entries} {
		got, err := parseEntries([]byte(answer))
		require.NoError(t, err)
		require.Equal(t, want, got)
		for cut := range len(answer) {
			_, err := parseEntries([]byte(answer[:cut]))
			require.ErrorIs(t, err, errReply, answer[:cut])
		}
	}
	for _, nothing := range []string{"*-1\r\n", "_\r\n"} {
		got, err := parseEntries([]byte(nothing))
		require.NoError(t, err)
		require.Empty(t, got)
	}
	for _, refusal := range []string{"-NOGROUP no such key\r\n", "-MOVED 3999 127.0.0.1:6381\r\n", "!11\r\nERR unknown\r\n"} {
		_, err := parseEntries([]byte(refusal))
		require.ErrorIs(t, err, errRefused)
	}
	for _, other := range []string{"+OK\r\n", ":1\r\n", "$1\r\ns\r\n", "*1\r\n*2\r\n:1\r\n" + entries, "*x\r\n", "*\r\n", "*-2\r\n", "*1234567890\r\n", "%1\r\n$2\r\ns\r\n" + entries, "*1\r\n*1\r\n$1\r\ns\r\n" + strings.Repeat(entries, 2)[:4]} {
		_, err := parseEntries([]byte(other))
		require.ErrorIs(t, err, errReply, other)
	}
}

// Of several fields by one name the last counts, as it does for the client library.
func TestLastFieldOfANameCounts(t *testing.T) {
	t.Parallel()
	f := fields{{"id", "a"}, {"id", "b"}, {"n", ""}}
	require.Equal(t, "b", f.Get("id"))
	_, ok := f.find("n")
	require.True(t, ok)
	_, ok = f.find("m")
	require.False(t, ok)
	require.Equal(t, []string{"id", "id", "n"}, f.Keys())
}
