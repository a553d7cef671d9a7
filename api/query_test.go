package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/domain"
)

// A part of a path means the same whether it came plain or percent-encoded, as pages and
// client libraries send it: an operator looked in vain for whoever has @, +, a comma or a
// slash in their name.
func TestEncodedPathsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show := e.show(nil)
	id := show[strings.LastIndexByte(show, '/')+1:]
	for _, person := range []string{"ada@example.org", "ada+tickets@example.org", "a,b", "shop/7", "a%40b", "a b", "$&;=:"} {
		person += domain.NewID()
		e.call(e.token(person), "POST", show+"/admission", nil).is(http.StatusCreated)
		for _, encoded := range []string{url.PathEscape(person), strings.ReplaceAll(url.QueryEscape(person), "+", "%20"), everyByte(person)} {
			e.call(e.operator, "GET", "/api/operator/shows/"+id+"/places/"+encoded+"/explain", nil).is(http.StatusOK)
		}
	}
	e.call("", "GET", "/api/shows/"+everyByte(id), nil).is(http.StatusOK)
	e.call("", "GET", "/api/shows/"+id+"%2fdraw", nil).fails(http.StatusNotFound, codeShowNotFound)
}

// everyByte encodes what need not be encoded as well.
func everyByte(text string) string {
	encoded := ""
	for i := range len(text) {
		encoded += fmt.Sprintf("%%%02X", text[i])
	}
	return encoded
}

// A query that is only half readable, or says a thing twice, is refused; the half that
// could be read, or the first of the two, used to be taken for all of it.
func TestQueriesAreTakenToTheLetter(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	show, me := e.show(nil), e.person()
	for _, path := range []string{
		show + "/seats?since=1;epoch=2", show + "/seats?since=%zz", show + "/seats?since=1&%", show + "/seats?since=1&since=1",
		"/api/bookings?limit=1;limit=2", "/api/bookings?before=a&before=b", "/api/bookings?before=a&before=",
	} {
		e.call(me, "GET", path, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
	for _, path := range []string{"/api/operator/dead-letters?stream=commands.booking&stream=commands.admission", "/api/operator" + strings.TrimPrefix(show, "/api") + "/audit?before=a&before=b"} {
		e.call(e.operator, "GET", path, nil).fails(http.StatusUnprocessableEntity, codeInvalid)
	}
	e.call(me, "GET", show+"/seats?since=%31&epoch=1", nil).is(http.StatusOK)
}

// The largest number that may be named is one like every other: PostgreSQL took what a
// message is compared with for a short integer, and the server had no answer.
func TestTheLargestNumberIsANumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *edge) {
		me, show := e.person(), e.show(nil)
		room := e.newRoom(me)
		e.says(me, room, "1")
		for _, number := range []string{"2147483647", "2147483648", "4294967296", "9223372036854775807"} {
			require.Len(t, e.call(me, "GET", room+"/messages?before="+number, nil).is(http.StatusOK).json["messages"], 1)
			e.call(me, "GET", room+"/readers?seq="+number, nil).fails(http.StatusNotFound, codeMessageNotFound)
			e.call(me, "DELETE", room+"/messages/"+number, nil).fails(http.StatusNotFound, codeMessageNotFound)
			e.call(me, "POST", room+"/read", `{"upTo":`+number+`}`).fails(http.StatusUnprocessableEntity, codeInvalid)
			e.call(me, "POST", room+"/unread", `{"from":`+number+`}`).fails(http.StatusUnprocessableEntity, codeInvalid)
			e.call(me, "GET", show+"/seats?epoch="+number+"&since="+number, nil).is(http.StatusOK)
			e.call("", "GET", show+"/draw?after="+number, nil).is(http.StatusOK)
		}
	})
}
