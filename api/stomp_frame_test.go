package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStompFramesAreRead: what 1.2 allows is read, everything else is refused.
func TestStompFramesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*stompFrame{
		"":                                     {},
		"\n\r\n":                               {},
		"SEND\n\n\x00":                         {command: "SEND", body: []byte{}},
		"\nSEND\r\na:b\r\n\r\nxy\x00\r\n":      {command: "SEND", headers: []stompHeader{{"a", "b"}}, body: []byte("xy")},
		"SEND\na:1\na:2\n\n\x00":               {command: "SEND", headers: []stompHeader{{"a", "1"}, {"a", "2"}}, body: []byte{}},
		"SEND\na\\cb:\\\\\\n\\r:\n\n\x00":      {command: "SEND", headers: []stompHeader{{"a:b", "\\\n\r:"}}, body: []byte{}},
		"CONNECT\na:\\c\n\n\x00":               {command: "CONNECT", headers: []stompHeader{{"a", "\\c"}}, body: []byte{}},
		"SEND\ncontent-length:3\n\nx\x00y\x00": {command: "SEND", headers: []stompHeader{{"content-length", "3"}}, body: []byte("x\x00y")},
		"SEND":                                 nil,
		"SEND\n":                               nil,
		"SEND\na:b":                            nil,
		"SEND\n\nno end":                       nil,
		"SEND\n:b\n\n\x00":                     nil,
		"SEND\nb\n\n\x00":                      nil,
		"SEND\na:\\t\n\n\x00":                  nil,
		"SEND\na:\\\n\n\x00":                   nil,
		"SE\x00ND\n\n\x00":                     nil,
		"SEND\na:\xff\n\n\x00":                 nil,
		"SEND\ncontent-length:-1\n\n\x00":      nil,
		"SEND\ncontent-length:99\n\n\x00":      nil,
		"SEND\n" + strings.Repeat("a:b\n", maxStompHeaders+1) + "\n\x00": nil,
	} {
		f, rest, err := parseStomp([]byte(text), false)
		require.Equal(t, want != nil, err == nil, "%q: %v", text, err)
		if want != nil {
			require.Equal(t, *want, f, "%q", text)
			require.Empty(t, rest)
		}
	}
	require.Equal(t, "1", stompFrame{headers: []stompHeader{{"a", "1"}, {"a", "2"}}}.get("a"), "the first of several counts")
}

// FuzzStomp: whatever comes, reading ends, and what was written is read as it was.
func FuzzStomp(f *testing.F) {
	f.Add([]byte("SEND\na:b\n\nbody\x00"), "na:me", "va\\l\r\n")
	f.Fuzz(func(t *testing.T, message []byte, name, value string) {
		for rest := message; len(rest) > 0; {
			_, next, err := parseStomp(rest, false)
			if err != nil {
				break
			}
			require.Less(t, len(next), len(rest))
			rest = next
		}
		if name == "" || name == "content-length" || name == "content-type" {
			return
		}
		written := stompFrame{command: "MESSAGE", headers: []stompHeader{{name, value}}, body: message}.encode(false)
		read, rest, err := parseStomp(written, false)
		if err != nil { // not text, or with a NUL where none may be
			return
		}
		require.Empty(t, rest)
		require.Equal(t, value, read.get(name))
	})
}
