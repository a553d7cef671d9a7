package domain

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func codeShow() *Show {
	return &Show{ID: "hall", Queue: laned(Lane{"fans", 3}, Lane{"press", 1})}
}

// T42: a code was refused at the end of the wait. It is judged before there is a place,
// and each way in which it does not count has a sentence of its own.
func TestJoinCodesThatGiveNoPlace(t *testing.T) {
	codes, now := NewJoinCodes([]byte("secret")), time.Now()
	until := now.Add(time.Hour).UTC().Truncate(time.Second)
	mint := func(change func(*JoinCode)) string {
		code := JoinCode{ID: "x", ShowID: "hall", Lane: "fans", Until: &until}
		change(&code)
		text, err := codes.Mint(code)
		require.NoError(t, err)
		return text
	}
	good := mint(func(*JoinCode) {})
	code, lane, err := codes.Open(" "+good+"\n", codeShow(), "ada", now)
	require.NoError(t, err)
	require.Equal(t, 1, lane)
	require.Equal(t, JoinCode{ID: "x", ShowID: "hall", Lane: "fans", Until: &until}, code)
	_, lane, err = codes.Open(mint(func(c *JoinCode) { c.Lane, c.Person = "press", "ada" }), codeShow(), "ada", now)
	require.NoError(t, err)
	require.Equal(t, 2, lane)

	foreign, err := NewJoinCodes([]byte("another secret")).Mint(code)
	require.NoError(t, err)
	parts := strings.Split(good, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	better := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "fans", "vips", 1)))
	for name, c := range map[string]struct {
		text string
		want *InvalidCodeError
		at   time.Time
	}{
		"nothing":         {"", errCodeForm, now},
		"a word":          {"abracadabra", errCodeForm, now},
		"not JSON":        {parts[0] + ".AAAA." + parts[2], errCodeForm, now},
		"very long":       {good + strings.Repeat("A", MaxCodeBytes), errCodeForm, now},
		"another key":     {foreign, errCodeForged, now},
		"altered":         {parts[0] + "." + better + "." + parts[2], errCodeForged, now},
		"no signature":    {parts[0] + "." + parts[1] + ".", errCodeForged, now},
		"half of it":      {good[:len(good)-2], errCodeForged, now},
		"another show":    {mint(func(c *JoinCode) { c.ShowID = "barn" }), errCodeShow, now},
		"no such lane":    {mint(func(c *JoinCode) { c.Lane = "vips" }), errCodeLane, now},
		"expired":         {good, errCodeLate, until},
		"somebody else's": {mint(func(c *JoinCode) { c.Person = "bob" }), errCodeAnother, now},
	} {
		_, lane, err := codes.Open(c.text, codeShow(), "ada", c.at)
		require.Equal(t, c.want, err, name)
		require.Zero(t, lane, name)
	}
	_, err = codes.Inspect(foreign)
	require.ErrorIs(t, err, ErrOtherCodeKey)
}

// Nobody gets anywhere by turning one letter of a code into another.
func TestNoLetterOfAJoinCodeCanBeChanged(t *testing.T) {
	codes := NewJoinCodes([]byte("secret"))
	text, err := codes.Mint(JoinCode{ID: "x", ShowID: "hall", Lane: "fans", Uses: 3})
	require.NoError(t, err)
	_, _, err = codes.Open(text, codeShow(), "ada", time.Now())
	require.NoError(t, err)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	rapid.Check(t, func(r *rapid.T) {
		at := rapid.IntRange(0, len(text)-1).Draw(r, "at")
		letter := rapid.SampledFrom([]byte(letters)).Draw(r, "letter")
		altered := text[:at] + string(letter) + text[at+1:]
		_, _, err := codes.Open(altered, codeShow(), "ada", time.Now())
		require.Equal(r, altered == text, err == nil)
	})
}

func TestWhatACodeMaySay(t *testing.T) {
	past := time.Now().Add(-time.Minute)
	require.NoError(t, JoinCode{Lane: "fans"}.Validate(codeShow()))
	invalid := &InvalidError{}
	require.ErrorAs(t, JoinCode{Lane: "vips", Uses: -1, Until: &past, Person: PersonID(strings.Repeat("a", 201))}.Validate(codeShow()), &invalid)
	require.Len(t, invalid.Problems, 4)
}

// A code for somebody with a long name was made, and then taken for none: it was longer
// than any code may be.
func TestTheLongestCodeIsTaken(t *testing.T) {
	codes, far := NewJoinCodes([]byte("secret")), time.Unix(1<<37, 0)
	lane := strings.Repeat("l", 32)
	show := &Show{ID: ShowID(strings.Repeat("s", 64)), Queue: laned(Lane{lane, 3})}
	for _, letter := range []string{"a", "<", "\x01", "🎭", "\u2028"} {
		person := PersonID(strings.Repeat(letter, MaxPersonIDSize))
		c := JoinCode{ID: NewCodeID(), ShowID: show.ID, Lane: lane, Person: person, Uses: MaxCodeUses, Until: &far}
		require.NoError(t, c.Validate(show))
		text, err := codes.Mint(c)
		require.NoError(t, err)
		_, _, err = codes.Open(text, show, person, time.Now())
		require.NoError(t, err, "%q: %d bytes", letter, len(text))
		require.False(t, (person + "x").Valid())
	}
	for _, nobody := range []PersonID{"", "a\x00", "\xff", "a\uFFFD"} {
		require.False(t, nobody.Valid(), "%q", nobody)
	}
}
