package api

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
	"foyer/lua"
)

// Frames were read more loosely than bodies: the last of two names counted, names in
// other letters were taken, half a character became U+FFFD, and 1.0 was no number.
func TestFramesAreReadAsBodiesAre(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"7": 7, "1.0": 1, "1e3": 1000, "0": 0, "-0": 0, "120E-1": 12, "9223372036854775807": 1<<63 - 1, "null": 0} {
		f, err := parseClientFrame([]byte(`{"type":"subscribe","topic":"/topic/seats/show/a","since":` + text + `}`))
		require.NoError(t, err, text)
		require.Equal(t, want, f.Since, text)
	}
	w := newHubWorld(t)
	page, _ := w.open("one")
	for frame, ref := range map[string]string{
		`{"ref":"r","type":"join","showId":"a","showId":"b"}`:      "",
		`{"ref":"r","type":"join","showID":"a"}`:                   "r",
		`{"ref":"r","TYPE":"join","showId":"a"}`:                   "r",
		`{"ref":"r","REF":"s","type":"join","showId":"a"}`:         "r",
		`{"ref":"r","type":"join","showId":"a","more":1}`:          "r",
		`{"ref":"r","type":"subscribe","topic":"x","since":-1}`:    "r",
		`{"ref":"r","type":"subscribe","topic":"x","epoch":-1e0}`:  "r",
		`{"ref":"r","type":"read","roomId":"x","upTo":-3}`:         "r",
		`{"ref":"r","type":"subscribe","topic":"x","since":1.5}`:   "r",
		`{"ref":"r","type":"subscribe","topic":"x","since":1e19}`:  "r",
		`{"ref":"r","type":"subscribe","topic":"x","since":"1"}`:   "r",
		`{"ref":"\ud800","type":"join","showId":"a"}`:              "",
		`{"ref":"r","type":"join","showId":"a","code":"\udc00"}`:   "",
		`{"ref":"r","type":"join","showId":"a","code":"\u0000"}`:   "",
		`{"ref":7,"type":"join","showId":"a"}`:                     "",
		`{"ref":"` + longRef + `","type":"join","showId":"a"}`:     "",
		`{"ref":"r","type":` + strings.Repeat("[", 100) + `}`:      "",
		`{"ref":"r","type":"join","showId":"a"}{"type":"nothing"}`: "",
	} {
		require.NoError(t, page.conn.WriteMessage(websocket.TextMessage, []byte(frame)))
		refused := page.await(eventError)
		require.Equal(t, codeBadFrame, refused.Code, frame)
		require.Equal(t, ref, refused.Ref, frame)
		page.settle(w) // it goes on
	}
}

// TestStompBodiesAreReadAsBodiesAre: what pages say beside is passed over, but nothing is
// guessed.
func TestStompBodiesAreReadAsBodiesAre(t *testing.T) {
	t.Parallel()
	for body, show := range map[string]string{
		`{"showId":"a"}`:      "a",
		`{"showId":"\u0061"}`: "a",
		`{"showId":null,"scheduleId":7.0,"userId":{"x":[1]}}`: "7",
		`{"movieId":1e3,"code":null}`:                         "1000",
		`{"ShowID":"a","movieId":"b"}`:                        "b",
		`{}`:                                                  "",
	} {
		ask, err := readStompAsk([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, clientFrame{ShowID: domain.ShowID(show)}, ask, body)
	}
	for _, body := range []string{
		``, `[]`, `"a"`, `{"showId":"a","showId":"b"}`, `{"showId":"\ud800"}`, `{"userId":"\udfff\ud800","showId":"a"}`, `{"showId":"a\u0000"}`,
		`{"showId":{}}`, `{"showId":true}`, `{"showId":"a","code":7}`, `{"showId":"a"} ` + `{}`, `{"showId":"a","more":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`,
	} {
		_, err := readStompAsk([]byte(body))
		require.Error(t, err, body)
	}
}

// RFC 6455, 8.1: a text message that is not UTF-8 fails the connection with 1007.
func TestTextThatIsNoneEndsASocket(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	page, _ := w.open("one")
	require.NoError(t, page.conn.WriteMessage(websocket.TextMessage, []byte("{\"type\":\"join\",\"showId\":\"\xff\"}")))
	code, _ := page.ended()
	require.Equal(t, websocket.CloseInvalidFramePayloadData, code)
	stomp := w.connectStomp("two")
	require.NoError(t, stomp.conn.WriteMessage(websocket.TextMessage, []byte("SEND\ndestination:/app/leave\n\n{\"showId\":\"\xc3\"}\x00")))
	code, _ = stomp.ended()
	require.Equal(t, closeNoText, code)
}

// Pings, pongs and empty fragments were counted by nobody: a client could send millions.
// A page that pings as often as it may speak is far below the bound.
func TestEveryFrameOfTheWireCounts(t *testing.T) {
	t.Parallel()
	const burst = 3
	w := newHubWorld(t, func(c *hubConfig, _ *hubDeps) { c.framesPerSecond, c.frameBurst = 0.001, burst })
	frame := func(head byte, payload string) []byte {
		return append([]byte{head, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
	}
	const ping, pong, begin, goOn = 0x89, 0x8a, 0x01, 0x00
	for name, flood := range map[string][2][]byte{
		"pings":           {frame(ping, ""), frame(ping, "sign of life")},
		"pongs":           {frame(pong, ""), frame(pong, "unasked")},
		"empty fragments": {frame(begin, ""), frame(goOn, "")},
	} {
		page, _ := w.open(name)
		line := page.conn.NetConn()
		send := func(frames int) {
			_, _ = line.Write(slices.Concat(flood[0], slices.Repeat(flood[1], frames-1))) // it may be gone
		}
		if name == "pings" {
			send(wireFrames*burst - 1)
			page.settle(w) // one more
		} else {
			send(wireFrames * burst)
		}
		require.Empty(t, page.of(eventError)[min(1, len(page.of(eventError))):], name)
		send(100_000)
		code, reason := page.ended()
		require.Equal(t, closeRateLimited, code, name)
		require.Equal(t, "too many frames", reason, name)
		errors := page.of(eventError)
		require.Equal(t, codeRateLimited, errors[len(errors)-1].Code, name)
	}
}

// What came behind a frame that ended the connection was done all the same, although its
// client was told that it is over.
func TestNothingIsObeyedBehindTheGoodbye(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	join := map[bool]string{
		false: `{"type":"join","showId":"` + string(w.show.ID) + `"}`,
		true:  "SEND\ndestination:/app/addQueue\n\n{\"showId\":\"" + string(w.show.ID) + "\"}\x00",
	}
	for code, joins := range map[int]bool{closeBadFrames: false, closeRateLimited: false, closeRestart: true} {
		for _, stomp := range []bool{false, true} {
			person := fmt.Sprint("person-", code, stomp)
			if stomp {
				w.connectStomp(person)
			} else {
				w.open(person)
			}
			for _, c := range w.hub.all() {
				if c.identity.Person == domain.PersonID(person) {
					c.close(code, "over")
					w.hub.received(c, []byte(join[stomp]), false)
				}
			}
			_, found, err := w.steps.Places(t.Context(), []lua.PlaceKey{{ShowID: w.show.ID, RequestID: w.request(person)}})
			require.NoError(t, err)
			require.Equal(t, joins, found[0], person)
		}
	}
}

// However the bytes of a client are cut into pieces, each of its frames is counted once.
func TestFramesOfTheWireAreCountedInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line []byte
		lengths := rapid.SliceOf(rapid.SampledFrom([]int{0, 1, 125, 126, 300, 0xffff, 0x10000})).Draw(t, "lengths")
		for i, length := range lengths {
			masked := rapid.Bool().Draw(t, "masked")
			line = append(line, byte(i))
			switch {
			case length <= 125:
				line = append(line, byte(length))
			case length <= 0xffff:
				line = binary.BigEndian.AppendUint16(append(line, 126), uint16(length))
			default:
				line = binary.BigEndian.AppendUint64(append(line, 127), uint64(length))
			}
			if masked {
				at := len(line) - 1 - map[bool]int{length > 125: 2}[true] - map[bool]int{length > 0xffff: 6}[true]
				line[at] |= 0x80
				line = append(line, 0, 1, 2, 3)
			}
			line = append(line, make([]byte, length)...)
		}
		var count frameCount
		begun := 0
		for len(line) > 0 {
			n := rapid.IntRange(1, min(len(line), 200)).Draw(t, "piece")
			if rapid.Bool().Draw(t, "long") {
				n = len(line)/2 + 1
			}
			begun += count.take(line[:n])
			line = line[n:]
		}
		if begun != len(lengths) {
			t.Fatalf("%d frames, counted %d", len(lengths), begun)
		}
		if count != (frameCount{key: count.key}) {
			t.Fatalf("not at the end of a frame: %+v", count)
		}
	})
}

// Half of a surrogate pair became U+FFFD, and nobody was told. It is refused wherever
// text is sent, and whole characters are taken however they are written.
func TestHalfCharactersAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show, ada := e.show(nil), e.person()
	room := e.newRoom(ada)
	for path, body := range map[string]string{
		"POST /api/shows":                            `{"title":"x\ud800"}`,
		"PATCH " + show:                              `{"message":"\udc00x"}`,
		"POST /api/chat/rooms":                       `{"name":"\ud800\ud800"}`,
		"POST " + room + "/messages":                 `{"text":"\uD83D \uDE00"}`,
		"POST " + show + "/admission":                `{"code":"\\\ud800"}`,
		"POST " + show + "/holds":                    `{"seats":["\ud800\u0041"]}`,
		"POST " + show + "/bookings":                 `{"holdId":"\udfff"}`,
		"POST " + operatorPath(show) + "/codes":      `{"lane":"fans","person":"\ud83d"}`,
		"POST " + operatorPath(show) + "/remove":     `{"person":"\ude00\ud83d"}`,
		"POST /api/operator/dead-letters":            `{"stream":"x","id":"\ud800"}`,
		"POST " + operatorPath(show) + "/reset":      `{"\ud800":1}`,
		"PUT " + show + "/holds/" + domain.NewID():   `{"seats":["\udbff"]}`,
		"POST " + operatorPath(show) + "/admit":      `{"count":1,"x\ud800":1}`,
		"DELETE /api/operator/dead-letters":          `{"stream":"\ud800","id":"x"}`,
		"POST " + operatorPath(show) + "/preview":    `{"queue":{"\ud800":1}}`,
		"POST " + show + "/admission/claim":          `{"\udc00":1}`,
		"POST " + room + "/members":                  `{"\udc00":1}`,
		"POST " + show + "/holds/" + "x" + "/extend": `{"\udc00":1}`,
		"POST " + room + "/read":                     `{"upTo":1,"\udc00":1}`,
		"POST " + room + "/unread":                   `{"from":1,"\udc00":1}`,
		"POST " + operatorPath(show) + "/pause":      `{"\udc00":1}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		token := ada
		if strings.Contains(path, "/operator/") || path == "/api/shows" || method == "PATCH" {
			token = e.operator
		}
		e.call(token, method, path, body, "Idempotency-Key", "k").fails(http.StatusBadRequest, codeMalformedBody)
	}
	said := e.call(ada, "POST", room+"/messages", `{"text":"\uD83D\uDE00 \\ud800 \u00e9 `+"\uFFFD"+`"}`).is(http.StatusCreated)
	require.Equal(t, "😀 \\ud800 é \uFFFD", said.text("text"))
}

func operatorPath(show string) string { return strings.Replace(show, "/api/", "/api/operator/", 1) }

// A person's id was bounded in bytes where the description says characters.
func TestPeopleAreCountedInCharacters(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(object{"queue": object{"lanes": fansAndPress}})
	long := strings.Repeat("<🎭", domain.MaxPersonIDSize/2)
	code := e.mint(show, object{"lane": "fans", "person": long})
	e.call(e.token(long), "POST", show+"/admission", object{"code": code}).is(http.StatusCreated)
	explained := e.call(e.operator, "GET", operatorPath(show)+"/places/"+strings.ReplaceAll(strings.ReplaceAll(long, "<", "%3C"), "🎭", "%F0%9F%8E%AD")+"/explain", nil)
	explained.is(http.StatusOK)
	e.operate(show, "remove", object{"person": long}).is(http.StatusNoContent)
	e.operate(show, "remove", object{"person": long + "x"}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.operate(show, "codes", object{"lane": "fans", "person": long + "x"}).fails(http.StatusUnprocessableEntity, codeInvalid)
	e.call(e.token(long+"x"), "GET", show+"/admission", nil).fails(http.StatusUnauthorized, codeUnauthorized)
}
