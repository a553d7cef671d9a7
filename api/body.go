package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// readBody decodes a JSON body into a pointer to a struct, as decodeObject does. An empty
// body is malformed.
func readBody(c echo.Context, into any) error {
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	return decodeObject(raw, into)
}

// noBody accepts nothing or an empty object, for routes that take no fields.
func noBody(c echo.Context) error { return optionalBody(c, &struct{}{}) }

// optionalBody is readBody for routes whose fields may all be left out, and the body with them.
func optionalBody(c echo.Context, into any) error {
	raw, err := rawBody(c)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return err
	}
	return decodeObject(raw, into)
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
