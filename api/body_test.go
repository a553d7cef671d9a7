package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type sampleBody struct {
	Text  string             `json:"text"`
	Count int                `json:"count"`
	Inner field[sampleInner] `json:"inner"`
	At    field[time.Time]   `json:"at"`
	List  []sampleInner      `json:"list"`
	Many  *[]string          `json:"many"`
	Left  string             `json:"-"`
}

type sampleInner struct {
	Number int `json:"number"`
}

func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		``:                           codeMalformedBody,
		`   `:                        codeMalformedBody,
		`null`:                       codeMalformedBody,
		`[]`:                         codeMalformedBody,
		`"text"`:                     codeMalformedBody,
		`7`:                          codeMalformedBody,
		`{`:                          codeMalformedBody,
		`{"text":"x"`:                codeMalformedBody,
		`{"text":"x"} x`:             codeMalformedBody,
		`{"text":"x"}{}`:             codeMalformedBody,
		`{"text":"x"},`:              codeMalformedBody,
		`{"text":'x'}`:               codeMalformedBody,
		`{text:"x"}`:                 codeMalformedBody,
		`{"text":"x","text":"y"}`:    codeMalformedBody,
		`{"text":1}`:                 codeMalformedBody,
		`{"count":"1"}`:              codeMalformedBody,
		`{"count":1.5}`:              codeMalformedBody,
		`{"count":1e99}`:             codeMalformedBody,
		`{"text":"a\u0000b"}`:        codeMalformedBody,
		`{"inner":7}`:                codeMalformedBody,
		`{"at":7}`:                   codeMalformedBody,
		`{"at":"yesterday"}`:         codeMalformedBody,
		`{"count":5.5}`:              codeMalformedBody,
		`{"count":5.0000001}`:        codeMalformedBody,
		`{"count":"5.0"}`:            codeMalformedBody,
		`{"count":1e999999999}`:      codeMalformedBody,
		`{"count":05.0}`:             codeMalformedBody,
		`{"Text":"x"}`:               codeUnknownField,
		`{"other":"x"}`:              codeUnknownField,
		`{"number":1}`:               codeUnknownField,
		`{"inner":{"text":"x"}}`:     codeUnknownField,
		`{"list":[{"text":"x"}]}`:    codeUnknownField,
		`{"Left":"x"}`:               codeUnknownField,
		`{"left":"x"}`:               codeUnknownField,
		`{"__proto__":{"text":"x"}}`: codeUnknownField,
		`{"many":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: codeMalformedBody,
	}
	for body, code := range cases {
		var into sampleBody
		err := decodeObject([]byte(body), &into)
		require.Error(t, err, body)
		require.Equal(t, code, problemFor(err).Code, body)
		require.Equal(t, http.StatusBadRequest, problemFor(err).Status, body)
	}
}

func TestAbsentNullAndAValueAreToldApart(t *testing.T) {
	t.Parallel()
	var absent, null, value sampleBody
	require.NoError(t, decodeObject([]byte(`{}`), &absent))
	require.NoError(t, decodeObject([]byte(`{"inner":null}`), &null))
	require.NoError(t, decodeObject([]byte(` {"inner":{"number":7},"list":[{"number":1}],"many":[]} `), &value))
	require.Equal(t, field[sampleInner]{}, absent.Inner)
	require.Equal(t, field[sampleInner]{set: true}, null.Inner)
	require.Equal(t, 7, value.Inner.value.Number)
	require.NotNil(t, value.Many)
}

// 5.0 was refused, although JSON has but one kind of number.
func TestWholeNumbersAreWholeHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"5.0": 5, "5": 5, "5e0": 5, "1.5e1": 15, "120E-1": 12, "-2.00": -2, "0.0": 0, "1e3": 1000, "-0.0": 0} {
		var into sampleBody
		body := `{"text":"5.0","list":[{"number":` + text + `},{"number":` + text + `}] ,"count" : ` + text + ` }`
		require.NoError(t, decodeObject([]byte(body), &into), text)
		require.Equal(t, sampleBody{Text: "5.0", Count: want, List: []sampleInner{{want}, {want}}}, into)
	}
	e := newEdge(t)
	show := e.show(object{"queue": json.RawMessage(`{"maxActive":5.0}`)})
	require.EqualValues(t, 5, e.call("", "GET", show, nil).json["queue"].(object)["maxActive"])
	e.call(e.operator, "PATCH", show, `{"queue":{"maxActive":5.5}}`).fails(http.StatusBadRequest, codeMalformedBody)
	require.EqualValues(t, 25.5, e.call("", "GET", show, nil).json["seating"].(object)["sections"].([]any)[0].(object)["price"], "other numbers are as they were")
}

// Times that merely resemble RFC 3339 were taken for what somebody may have meant.
func TestTimesHaveTheFormOfRFC3339(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"2030-06-01T18:00:00Z", "2030-06-01T18:00:00.5Z", "2030-06-01T18:00:00.123456789+02:00", "2028-02-29T23:59:59-11:30"} {
		var into sampleBody
		require.NoError(t, decodeObject([]byte(`{"at":"`+good+`"}`), &into), good)
		want, err := time.Parse(time.RFC3339, good)
		require.NoError(t, err)
		require.True(t, want.Equal(*into.At.value), good)
	}
	for _, bad := range []string{
		"2030-06-01T9:00:00Z", "2030-06-01T18:00:00,5Z", "2030-06-01T18:00:00+24:00", "2030-06-01T18:00:00+02:60", "2030-06-01T24:00:00Z",
		"2030-06-01T18:00:60Z", "2030-06-01T18:00:00", "2030-06-01 18:00:00Z", "2030-02-30T18:00:00Z", "2030-6-1T18:00:00Z", "30-06-01T18:00:00Z", "",
		"2030-06-01T18:00:00.Z", " 2030-06-01T18:00:00Z",
	} {
		err := decodeObject([]byte(`{"at":"`+bad+`"}`), &sampleBody{})
		require.Error(t, err, bad)
		require.Equal(t, codeMalformedBody, problemFor(err).Code, bad)
	}
}

func TestWhatComesAsABodyAtAll(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	ask := func(body string, headers ...string) answer {
		return e.call(e.operator, "POST", "/api/shows", body, headers...)
	}
	large := `{"title":"x","message":"` + strings.Repeat("x", maxBodyBytes) + `"}`
	ask(large).fails(http.StatusRequestEntityTooLarge, codeBodyTooLarge)
	fits := `{"title":"x"}` + strings.Repeat(" ", maxBodyBytes-13)
	ask(fits).is(http.StatusCreated)
	ask(fits+" ").fails(http.StatusRequestEntityTooLarge, codeBodyTooLarge)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "json", "multipart/form-data"} {
		ask(`{"title":"x"}`, "Content-Type", kind).fails(http.StatusUnsupportedMediaType, codeUnsupportedMedia)
	}
	for _, kind := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON"} {
		ask(`{"title":"x"}`, "Content-Type", kind).is(http.StatusCreated)
	}
	ask("{\"title\":\"\xff\"}").fails(http.StatusBadRequest, codeMalformedBody)
	require.Len(t, e.call("", "GET", "/api/shows", nil).json["shows"], 4)
}

// FuzzBodies: whatever is sent is either understood whole or refused with 400, and
// what is understood would be written the same.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{}`, `{"text":"x","count":1}`, `{"inner":{"number":1},"many":["a"]}`, `{"at":"2030-01-01T00:00:00Z"}`, `[1`, `{"text":"\ud800"}`, `{"a":{"a":{}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var into sampleBody
		if err := decodeObject(raw, &into); err != nil {
			require.Equal(t, http.StatusBadRequest, problemFor(err).Status)
			return
		}
		var loose map[string]any
		require.NoError(t, json.Unmarshal(raw, &loose))
		for name := range loose {
			require.Contains(t, []string{"text", "count", "inner", "at", "list", "many"}, name)
		}
	})
}
