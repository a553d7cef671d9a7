package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// readBody decodes a JSON body into a pointer to a struct. Nothing is guessed: a
// field that the struct does not have, or has in other letters, a field given
// twice, and anything after the value are refused. An empty body is malformed.
func readBody(c echo.Context, into any) error {
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	return decodeBody(raw, into)
}

// noBody accepts nothing or an empty object, for routes that take no fields.
func noBody(c echo.Context) error { return optionalBody(c, &struct{}{}) }

// optionalBody is readBody for routes whose fields may all be left out, and the body with them.
func optionalBody(c echo.Context, into any) error {
	raw, err := rawBody(c)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return err
	}
	return decodeBody(raw, into)
}

func rawBody(c echo.Context) ([]byte, error) {
	request := c.Request()
	raw, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, request.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, err
	case err != nil:
		return nil, malformed("The body could not be read.").because(err)
	case len(raw) > 0 && !isJSON(request.Header.Values("Content-Type")):
		return nil, newProblem(http.StatusUnsupportedMediaType, codeUnsupportedMedia, "Unsupported media type",
			"Send the body as application/json in UTF-8.")
	case !utf8.Valid(raw):
		return nil, malformed("The body must be UTF-8.")
	}
	return raw, nil
}

// isJSON accepts application/json, in UTF-8 when it names a charset, and a body
// that names no type at all.
func isJSON(headers []string) bool {
	if len(headers) == 0 {
		return true
	}
	kind, parameters, err := mime.ParseMediaType(headers[0])
	charset, named := parameters["charset"]
	return len(headers) == 1 && err == nil && kind == echo.MIMEApplicationJSON && (!named || strings.EqualFold(charset, "utf-8"))
}

func decodeBody(raw []byte, into any) error {
	names := map[string]bool{}
	collectNames(reflect.TypeOf(into), names)
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
		return malformed(fmt.Sprintf("%s must not be of type %s.", orBody(wrongType.Field), wrongType.Value))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return unknownField(strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return malformed("A value of the body has the wrong form: " + err.Error() + ".")
}

func orBody(field string) string {
	if field == "" {
		return "The body"
	}
	// The decoder names embedded structs too, which the caller does not know of.
	return strings.TrimPrefix(field, "showFields.")
}

// checkTokens walks the body once for what the decoder would let pass: a field
// in other letters or given twice, U+0000 (which SQL cannot keep), a second
// value, a depth that no body of ours has. It returns the body with whole numbers
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
			return nil, malformed("The body is not valid JSON.")
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
				return nil, malformed("The body is nested too deeply.")
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
				return nil, malformed("The body must not contain U+0000.")
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
	if !known[name] {
		return unknownField(fmt.Sprintf("%q", name))
	}
	if seen[name] {
		return malformed(fmt.Sprintf("The field %q stands twice.", name))
	}
	seen[name] = true
	return nil
}

// oneValue refuses an empty body, one that is no object, and a second value.
func oneValue(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var first json.RawMessage
	if err := decoder.Decode(&first); err != nil {
		return malformed("The body is empty; a JSON object is needed.")
	}
	if len(first) == 0 || first[0] != '{' {
		return malformed("The body must be a JSON object.")
	}
	if decoder.More() {
		return malformed("The body must be one JSON object and nothing after it.")
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

// field is a body's field that tells absent, null and a value apart.
type field[T any] struct {
	set   bool // stood in the body
	value *T   // nil when null
}

// UnmarshalJSON is called only when the field stands in the body.
func (f *field[T]) UnmarshalJSON(raw []byte) error {
	f.set = true
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	f.value = new(T)
	if _, isTime := any(f.value).(*time.Time); isTime && !timeForm.Match(raw) {
		return errors.New("a time must have the form of RFC 3339, such as 2030-06-01T18:00:00Z")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(f.value)
}

// timeForm is that of RFC 3339, of which the decoder also takes what merely resembles it:
// hours of one digit, a comma before the fraction, offsets of more than a day. Whether
// there is such a day, the decoder says.
var timeForm = regexp.MustCompile(`^"\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"$`)

// carries names the type inside, for collectNames.
func (field[T]) carries() reflect.Type { return reflect.TypeFor[T]() }

func malformed(detail string) *problem {
	return newProblem(http.StatusBadRequest, codeMalformedBody, "Malformed body", detail)
}

func unknownField(name string) *problem {
	return newProblem(http.StatusBadRequest, codeUnknownField, "Unknown field",
		"The field "+name+" is not known here, or cannot be set.").with("field", strings.Trim(name, `"`))
}

// invalid refuses one value of a request.
func invalid(name, detail string) error {
	return &domain.InvalidError{Problems: []domain.Problem{{Field: name, Detail: detail}}}
}
