package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxStompHeaders bounds the header of a client's frame; its length is bounded by
// the socket's frame.
const maxStompHeaders = 32

// stompFrame is one frame of STOMP 1.2. An empty command is no frame, which is
// what a heart-beat is.
type stompFrame struct {
	command string
	headers []stompHeader
	body    []byte
}

type stompHeader struct{ name, value string }

// get returns a header; the first of several counts.
func (f stompFrame) get(name string) string {
	for _, h := range f.headers {
		if h.name == name {
			return h.value
		}
	}
	return ""
}

var (
	errStompHeader = errors.New("a header is not name:value with the escapes \\r, \\n, \\c and \\\\")
	errStompEnd    = errors.New("the frame does not end with a NUL")
)

// parseStomp reads the first frame of a message and returns what follows it. A
// frame must be whole: it is not continued in the next message.
func parseStomp(message []byte) (f stompFrame, rest []byte, err error) {
	message = bytes.TrimLeft(message, "\r\n")
	if len(message) == 0 {
		return f, nil, nil
	}
	line, rest, ok := cutLine(message)
	if !ok || !utf8.Valid(message) {
		return f, nil, errStompEnd
	}
	f.command = line
	literal := line == "CONNECT" // for the sake of 1.0, which knew no escapes
	for {
		if line, rest, ok = cutLine(rest); !ok {
			return f, nil, errStompEnd
		}
		if line == "" {
			break
		}
		if len(f.headers) == maxStompHeaders {
			return f, nil, fmt.Errorf("a frame has at most %d headers", maxStompHeaders)
		}
		name, value, ok := strings.Cut(line, ":")
		if !literal {
			var first, second bool
			name, first = unescapeStomp(name)
			value, second = unescapeStomp(value)
			ok = ok && first && second
		}
		if !ok || name == "" {
			return f, nil, errStompHeader
		}
		f.headers = append(f.headers, stompHeader{name, value})
	}
	f.body, rest, err = stompBody(f, rest)
	return f, bytes.TrimLeft(rest, "\r\n"), err
}

// stompBody takes a frame's body, whose length a header may tell.
func stompBody(f stompFrame, text []byte) (body, rest []byte, err error) {
	at := bytes.IndexByte(text, 0)
	if length := f.get("content-length"); length != "" {
		n, err := strconv.ParseUint(length, 10, 31)
		if err != nil {
			return nil, nil, errors.New("content-length is not a number")
		}
		if at = int(n); at >= len(text) || text[at] != 0 {
			at = -1
		}
	}
	if at < 0 {
		return nil, nil, errStompEnd
	}
	return text[:at], text[at+1:], nil
}

func cutLine(text []byte) (line string, rest []byte, ok bool) {
	before, rest, ok := bytes.Cut(text, []byte{'\n'})
	return string(bytes.TrimSuffix(before, []byte{'\r'})), rest, ok && !bytes.ContainsRune(before, 0)
}

func unescapeStomp(text string) (string, bool) {
	if !strings.ContainsAny(text, "\\:\r") {
		return text, true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\r' {
			return "", false
		}
		if text[i] != '\\' {
			b.WriteByte(text[i]) // a bare colon in a value is what many clients send
			continue
		}
		i++
		at := -1
		if i < len(text) {
			at = strings.IndexByte("rnc\\", text[i])
		}
		if at < 0 {
			return "", false
		}
		b.WriteByte("\r\n:\\"[at])
	}
	return b.String(), true
}

// appendStompHeader writes one header line.
func appendStompHeader(to []byte, name, value string) []byte {
	to = append(appendStompText(to, name), ':')
	return append(appendStompText(to, value), '\n')
}

func appendStompText(to []byte, text string) []byte {
	for i := range len(text) {
		switch text[i] {
		case '\r':
			to = append(to, `\r`...)
		case '\n':
			to = append(to, `\n`...)
		case ':':
			to = append(to, `\c`...)
		case '\\':
			to = append(to, `\\`...)
		default:
			to = append(to, text[i])
		}
	}
	return to
}

// appendStompBody ends a frame's header and writes its body.
func appendStompBody(to, body []byte) []byte {
	to = append(to, "content-type:application/json\ncontent-length:"...)
	to = strconv.AppendInt(to, int64(len(body)), 10)
	to = append(to, "\n\n"...)
	return append(append(to, body...), 0)
}

// encode writes a frame of the server. CONNECTED knows no escapes; its values
// have nothing to escape.
func (f stompFrame) encode() []byte {
	to := append([]byte(f.command), '\n')
	for _, h := range f.headers {
		to = appendStompHeader(to, h.name, h.value)
	}
	if f.body != nil {
		return appendStompBody(to, f.body)
	}
	return append(to, '\n', 0)
}

// stompVersion is the highest version that both sides speak; "" when there is none.
func stompVersion(accepted string) string {
	asked := strings.Split(accepted, ",")
	for _, version := range []string{"1.2", "1.1"} {
		if slices.Contains(asked, version) {
			return version
		}
	}
	return ""
}
