package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeObject decodes a JSON object that a client sent, whichever way: as the body of a
// request, as a frame of foyer.v1, or as the body of a STOMP frame. raw must be UTF-8.
//
// into is a pointer to a struct, or to a map of raw values where any field may stand. A
// field that the struct does not have, or has in other letters, a field given twice, and
// anything after the value are refused, and so is text that could not be kept as it was
// written. The error is a problem with codeMalformedBody or codeUnknownField.
func decodeObject(raw []byte, into any) error {
	var names map[string]bool // nil: any
	if t := reflect.TypeOf(into).Elem(); t.Kind() != reflect.Map {
		names = map[string]bool{}
		collectNames(t, names)
	}
	if halfPair(raw) {
		return malformed("A text has half of a surrogate pair, which is no character.")
	}
	raw, err := checkTokens(raw, names)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return malformed(fmt.Sprintf("%s must not be of type %s.", orObject(wrongType.Field), wrongType.Value))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return unknownField(strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return malformed("A value has the wrong form: " + err.Error() + ".")
}

func orObject(field string) string {
	if field == "" {
		return "The JSON"
	}
	// The decoder names embedded structs too, which the caller does not know of.
	return strings.TrimPrefix(field, "showFields.")
}

// halfPair reports whether JSON text has an escape for half of a surrogate pair, such as
// \ud800 alone. The decoder would put U+FFFD in its place and say nothing.
func halfPair(raw []byte) bool {
	for len(raw) > 0 {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 == len(raw) {
			return false
		}
		unit, escaped := utf16Escape(raw[at:])
		switch {
		case !escaped:
			raw = raw[at+2:]
			continue
		case utf16.IsSurrogate(unit):
			low, _ := utf16Escape(raw[at+utf16EscapeSize:])
			if utf16.DecodeRune(unit, low) == utf8.RuneError {
				return true
			}
			at += utf16EscapeSize
		}
		raw = raw[at+utf16EscapeSize:]
	}
	return false
}

// utf16EscapeSize is the length of an escape such as \u00e9, in bytes.
const utf16EscapeSize = 6

// utf16Escape reads the escape of one UTF-16 unit that text begins with.
func utf16Escape(text []byte) (unit rune, ok bool) {
	if len(text) < utf16EscapeSize || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:utf16EscapeSize]), 16, 16)
	return rune(n), err == nil
}

// checkTokens walks the JSON once for what the decoder would let pass: a field
// in other letters or given twice, U+0000 (which SQL cannot keep), a second
// value, a depth that nothing of ours has. It returns the JSON with whole numbers
// written as such: 5.0 and 5e0 are 5, which the decoder does not know.
func checkTokens(raw []byte, names map[string]bool) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var open []map[string]bool // per open value: the names seen, nil in an array
	var written []byte         // raw up to copied, with its whole numbers
	copied := 0
	wantName := false
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && len(open) == 0:
			return append(written, raw[copied:]...), oneValue(raw)
		case err != nil:
			return nil, malformed("The JSON is not valid.")
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			if len(open) > maxBodyDepth {
				return nil, malformed("The JSON is nested too deeply.")
			}
			wantName = len(open) > 0 && open[len(open)-1] != nil
			continue
		case json.Number:
			if whole := wholeNumber(string(t)); whole != string(t) {
				end := int(decoder.InputOffset())
				written = append(append(written, raw[copied:end-len(t)]...), whole...)
				copied = end
			}
		case string:
			if strings.ContainsRune(t, 0) {
				return nil, malformed("The JSON must not contain U+0000.")
			}
			if wantName {
				if err := checkName(t, names, open[len(open)-1]); err != nil {
					return nil, err
				}
				wantName = false
				continue
			}
		}
		wantName = len(open) > 0 && open[len(open)-1] != nil
	}
}

// Bounds of a number that may be a whole one in another form: longer ones, or with more
// zeros, are no number that any field of ours takes.
const (
	maxWholeText     = 32
	maxWholeExponent = 18
)

// wholeNumber writes a JSON number without fraction and exponent where it is whole, and
// leaves any other as it is.
func wholeNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") || len(text) > maxWholeText {
		return text
	}
	if _, exponent, found := strings.Cut(strings.ToLower(text), "e"); found {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxWholeExponent || n < -maxWholeExponent {
			return text
		}
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || !value.IsInt() {
		return text
	}
	return value.Num().String()
}

func checkName(name string, known, seen map[string]bool) error {
	if known != nil && !known[name] {
		return unknownField(fmt.Sprintf("%q", name))
	}
	if seen[name] {
		return malformed(fmt.Sprintf("The field %q stands twice.", name))
	}
	seen[name] = true
	return nil
}

// oneValue refuses nothing at all, one that is no object, and a second value.
func oneValue(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var first json.RawMessage
	if err := decoder.Decode(&first); err != nil {
		return malformed("There is nothing; a JSON object is needed.")
	}
	if len(first) == 0 || first[0] != '{' {
		return malformed("The JSON must be an object.")
	}
	if decoder.More() {
		return malformed("The JSON must be one object and nothing after it.")
	}
	return nil
}

// collectNames gathers the JSON names of a struct and of all structs within it.
func collectNames(t reflect.Type, names map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return
	}
	for i := range t.NumField() {
		field := t.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = true
		}
		inner := field.Type
		if carrier, ok := reflect.Zero(inner).Interface().(interface{ carries() reflect.Type }); ok {
			inner = carrier.carries()
		}
		collectNames(inner, names)
	}
}
