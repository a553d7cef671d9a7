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

// maxStompFrame bounds a client's frame that comes in several messages, in bytes.
const maxStompFrame = 16 << 10

// stompFrame is one frame of STOMP. An empty command is no frame, which is
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
	errStompText   = errors.New("the frame is not UTF-8")
	errStompMore   = errors.New("the frame goes on in the next message")
)

// parseStomp reads the first frame of a message and returns what follows it, or
// errStompMore while the frame is not whole. With literal nothing is escaped, as in 1.0.
func parseStomp(message []byte, literal bool) (f stompFrame, rest []byte, err error) {
	message = bytes.TrimLeft(message, "\r\n")
	if len(message) == 0 {
		return f, nil, nil
	}
	line, rest, err := cutLine(message)
	if err != nil {
		return f, nil, err
	}
	f.command = line
	literal = literal || line == "CONNECT" // for the sake of 1.0
	for {
		if line, rest, err = cutLine(rest); err != nil {
			return f, nil, err
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
	if err == nil && !utf8.Valid(message[:len(message)-len(rest)]) {
		err = errStompText
	}
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
		if at = int(n); at >= len(text) {
			at = -1
		} else if text[at] != 0 {
			return nil, nil, errStompEnd
		}
	}
	if at < 0 {
		return nil, nil, errStompMore
	}
	return text[:at], text[at+1:], nil
}

func cutLine(text []byte) (line string, rest []byte, err error) {
	before, rest, ok := bytes.Cut(text, []byte{'\n'})
	switch {
	case bytes.IndexByte(before, 0) >= 0:
		return "", nil, errStompEnd
	case !ok:
		return "", nil, errStompMore
	}
	return string(bytes.TrimSuffix(before, []byte{'\r'})), rest, nil
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

// appendStompHeader writes one header line; a literal one as it is.
func appendStompHeader(to []byte, name, value string, literal bool) []byte {
	if literal {
		return append(append(append(append(to, name...), ':'), value...), '\n')
	}
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
func (f stompFrame) encode(literal bool) []byte {
	to := append([]byte(f.command), '\n')
	for _, h := range f.headers {
		to = appendStompHeader(to, h.name, h.value, literal)
	}
	if f.body != nil {
		return appendStompBody(to, f.body)
	}
	return append(to, '\n', 0)
}

// Versions of STOMP. Who names none speaks stompOldest, which knew no names.
const stompOldest = "1.0"

// stompVersion is the highest version that both sides speak; "" when there is none.
func stompVersion(accepted string) string {
	if accepted == "" {
		return stompOldest
	}
	asked := strings.Split(accepted, ",")
	for _, version := range []string{"1.2", "1.1", stompOldest} {
		if slices.Contains(asked, version) {
			return version
		}
	}
	return ""
}
