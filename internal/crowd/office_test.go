package crowd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"foyer/domain"
)

// office is a box office in a map, as little as a crowd can meet: the rules that
// matter to it are a cap on people inside, seats that one person has at a time,
// and slots that pass to the next in line. It is told everything over the wire.
type office struct {
	mu       sync.Mutex
	line     []string // who waits, in order
	status   map[string]domain.Status
	seats    map[domain.SeatID]string // by whom held or bought
	holds    map[domain.HoldID][]domain.SeatID
	bookings map[domain.BookingID][]domain.SeatID
	confirm  map[domain.BookingID]domain.BookingStatus
	members  map[string]bool
	sockets  map[string]*websocket.Conn
	inside   int
	most     int  // people that were ever inside at once
	lost     bool // nobody hears of bookings
	soldOut  bool
	requests map[string]int // by method and pattern
	cond     *sync.Cond
}

const officeCap = 5

var officeSections = []domain.Section{{Name: "A", Rows: 4, SeatsPerRow: 6, Price: 1000}}

func newOffice(t *testing.T) (*office, string) {
	t.Helper()
	o := &office{
		status: map[string]domain.Status{}, seats: map[domain.SeatID]string{}, holds: map[domain.HoldID][]domain.SeatID{},
		bookings: map[domain.BookingID][]domain.SeatID{}, confirm: map[domain.BookingID]domain.BookingStatus{},
		members: map[string]bool{}, sockets: map[string]*websocket.Conn{}, requests: map[string]int{},
	}
	o.cond = sync.NewCond(&o.mu)
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(who string, r *http.Request, body map[string]any) (int, any){
		"GET /api/shows/demo":                   o.show,
		"POST /api/shows/demo/admission":        o.join,
		"GET /api/shows/demo/admission":         o.place,
		"POST /api/shows/demo/admission/claim":  o.claim,
		"DELETE /api/shows/demo/admission":      o.leave,
		"GET /api/shows/demo/seats":             o.seatMap,
		"POST /api/shows/demo/holds":            o.hold,
		"DELETE /api/shows/demo/holds/{hold}":   o.release,
		"POST /api/shows/demo/bookings":         o.book,
		"GET /api/bookings/{booking}":           o.booking,
		"DELETE /api/bookings/{booking}":        o.cancel,
		"GET /api/shows/demo/chat/rooms":        o.rooms,
		"POST /api/chat/rooms":                  o.lobby,
		"POST /api/chat/rooms/{room}/members":   o.enterRoom,
		"DELETE /api/chat/rooms/{room}/members": o.leaveRoom,
		"GET /api/chat/rooms/{room}/messages":   o.messages,
		"POST /api/chat/rooms/{room}/messages":  o.say,
		"POST /api/chat/rooms/{room}/read":      o.read,
		"POST /api/socket-tickets":              o.ticket,
		"POST /api/dev/token":                   o.token,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			_ = json.NewDecoder(r.Body).Decode(&body)
			o.mu.Lock()
			status, reply := answer(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r, body)
			o.requests[pattern]++
			o.cond.Broadcast()
			o.mu.Unlock()
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(reply)
		})
	}
	mux.HandleFunc("GET /ws", o.socket)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return o, server.URL
}

// until waits until what ok says, which is called under the lock.
func (o *office) until(ok func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !ok() {
		o.cond.Wait()
	}
}

func refuse(status int, code string) (int, any) { return status, map[string]any{"code": code} }

func (o *office) token(_ string, _ *http.Request, body map[string]any) (int, any) {
	return 200, map[string]any{"token": body["sub"]}
}

func (o *office) show(string, *http.Request, map[string]any) (int, any) {
	capacity, sold := 0, 0
	for _, s := range officeSections {
		capacity += s.Rows * s.SeatsPerRow
	}
	for _, seats := range o.bookings {
		sold += len(seats)
	}
	return 200, map[string]any{
		"id": "demo", "capacity": capacity, "sold": sold,
		"seating": domain.Seating{HoldSeconds: 300, SeatLimit: 3, Sections: officeSections},
	}
}

func (o *office) view(who string) map[string]any {
	return map[string]any{"requestId": who, "showId": "demo", "status": o.status[who], "pollAfterMs": 1, "epoch": 1}
}

func (o *office) join(who string, _ *http.Request, _ map[string]any) (int, any) {
	if o.soldOut {
		return refuse(409, "SOLD_OUT")
	}
	if o.status[who] == "" {
		o.status[who] = domain.StatusWaiting
		o.line = append(o.line, who)
		o.admit()
	}
	return 201, o.view(who)
}

// admit gives free slots to those who wait longest.
func (o *office) admit() {
	for o.inside < officeCap && len(o.line) > 0 {
		next := o.line[0]
		o.line = o.line[1:]
		o.status[next] = domain.StatusAdmitted
		o.inside++
		o.most = max(o.most, o.inside)
		o.tell(next)
	}
}

// tell sends a person's standing over their socket, if there is one.
func (o *office) tell(who string) {
	o.send(who, map[string]any{"event": "ADMISSION", "topic": who, "showId": "demo", "epoch": 1, "version": 1, "status": o.status[who]})
}

func (o *office) send(who string, frame map[string]any) {
	if conn := o.sockets[who]; conn != nil {
		_ = conn.WriteJSON(frame)
	}
}

func (o *office) place(who string, _ *http.Request, _ map[string]any) (int, any) {
	if o.status[who] == "" {
		return refuse(404, "NOT_JOINED")
	}
	return 200, o.view(who)
}

func (o *office) claim(who string, _ *http.Request, _ map[string]any) (int, any) {
	if o.status[who] != domain.StatusAdmitted && o.status[who] != domain.StatusActive {
		return refuse(403, "NOT_ADMITTED")
	}
	o.status[who] = domain.StatusActive
	o.tell(who)
	return 200, o.view(who)
}

func (o *office) leave(who string, _ *http.Request, _ map[string]any) (int, any) {
	switch o.status[who] {
	case domain.StatusWaiting:
		o.line = slices.DeleteFunc(o.line, func(other string) bool { return other == who })
	case domain.StatusAdmitted, domain.StatusActive:
		o.inside--
	}
	o.status[who] = domain.StatusLeft
	o.admit()
	return 204, nil
}

func (o *office) seatMap(string, *http.Request, map[string]any) (int, any) {
	taken := []domain.Seat{}
	for seat := range o.seats {
		taken = append(taken, domain.Seat{ID: seat, State: domain.SeatHeld})
	}
	return 200, map[string]any{"showId": "demo", "version": 1, "seats": taken}
}

func (o *office) hold(who string, _ *http.Request, body map[string]any) (int, any) {
	if o.status[who] != domain.StatusActive {
		return refuse(403, "NOT_ADMITTED")
	}
	var wanted []domain.SeatID
	if best, ok := body["best"].(map[string]any); ok {
		for _, seat := range (domain.Seating{Sections: officeSections}).AllSeats() {
			if o.seats[seat] == "" && len(wanted) < int(best["count"].(float64)) {
				wanted = append(wanted, seat)
			}
		}
		if len(wanted) < int(best["count"].(float64)) {
			return refuse(409, "NO_BLOCK")
		}
	}
	if seats, ok := body["seats"].([]any); ok {
		for _, seat := range seats {
			if wanted = append(wanted, domain.SeatID(seat.(string))); o.seats[wanted[len(wanted)-1]] != "" {
				return refuse(409, "SEAT_UNAVAILABLE")
			}
		}
	}
	for _, seat := range wanted {
		o.seats[seat] = who
	}
	id := domain.HoldID(domain.NewID())
	o.holds[id] = wanted
	return 201, domain.Hold{HoldID: id, Seats: wanted}
}

func (o *office) release(_ string, r *http.Request, _ map[string]any) (int, any) {
	for _, seat := range o.holds[domain.HoldID(r.PathValue("hold"))] {
		delete(o.seats, seat)
	}
	return 204, nil
}

func (o *office) book(who string, r *http.Request, body map[string]any) (int, any) {
	if r.Header.Get("Idempotency-Key") == "" || o.status[who] != domain.StatusActive {
		return refuse(400, "BAD")
	}
	id := domain.BookingID(domain.NewID())
	o.bookings[id] = o.holds[domain.HoldID(body["holdId"].(string))]
	o.confirm[id] = domain.BookingConfirmed
	o.status[who] = domain.StatusLeft
	o.inside--
	if !o.lost {
		o.send(who, map[string]any{"event": "BOOKING", "bookingId": id, "status": "CONFIRMED"})
	}
	o.admit()
	return 202, map[string]any{"bookingId": id, "status": "PENDING"}
}

func (o *office) booking(_ string, r *http.Request, _ map[string]any) (int, any) {
	id := domain.BookingID(r.PathValue("booking"))
	return 200, map[string]any{"bookingId": id, "status": o.confirm[id]}
}

func (o *office) cancel(_ string, r *http.Request, _ map[string]any) (int, any) {
	id := domain.BookingID(r.PathValue("booking"))
	o.confirm[id] = domain.BookingCancelled
	for _, seat := range o.bookings[id] {
		delete(o.seats, seat)
	}
	delete(o.bookings, id)
	return 202, map[string]any{"bookingId": id, "status": "CONFIRMED"}
}

// rooms has no lobby yet: the crowd has to open it.
func (o *office) rooms(string, *http.Request, map[string]any) (int, any) {
	return 200, map[string]any{"rooms": []any{}}
}

func (o *office) lobby(string, *http.Request, map[string]any) (int, any) {
	return 201, map[string]any{"id": "r", "name": "Lobby"}
}

func (o *office) enterRoom(who string, _ *http.Request, _ map[string]any) (int, any) {
	o.members[who] = true
	return 204, nil
}

func (o *office) leaveRoom(who string, _ *http.Request, _ map[string]any) (int, any) {
	delete(o.members, who)
	return 204, nil
}

func (o *office) messages(string, *http.Request, map[string]any) (int, any) {
	return 200, map[string]any{"messages": []domain.ChatMessage{{Seq: 1, Text: "hi"}}}
}

func (o *office) say(who string, _ *http.Request, _ map[string]any) (int, any) {
	if !o.members[who] {
		return refuse(403, "NOT_MEMBER")
	}
	return 201, map[string]any{"seq": 2}
}

func (o *office) read(string, *http.Request, map[string]any) (int, any) { return 202, map[string]any{} }

func (o *office) ticket(who string, _ *http.Request, _ map[string]any) (int, any) {
	return 200, map[string]any{"ticket": who}
}

func (o *office) socket(w http.ResponseWriter, r *http.Request) {
	who := r.URL.Query().Get("ticket")
	conn, err := (&websocket.Upgrader{Subprotocols: []string{"foyer.v1"}}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	o.mu.Lock()
	o.sockets[who] = conn
	places := []any{}
	if o.status[who] != "" {
		places = append(places, o.view(who))
	}
	o.send(who, map[string]any{"event": "HELLO", "places": places})
	o.mu.Unlock()
	for {
		var frame struct{ Type, Ref string }
		if err := conn.ReadJSON(&frame); err != nil {
			break
		}
		o.mu.Lock()
		o.requests["frame "+frame.Type]++
		status, reply := 0, any(nil)
		switch frame.Type {
		case "join":
			status, reply = o.join(who, nil, nil)
			o.tell(who)
		case "claim":
			status, reply = o.claim(who, nil, nil)
		}
		if status >= 400 {
			o.send(who, map[string]any{"event": "ERROR", "ref": frame.Ref, "code": fmt.Sprint(reply.(map[string]any)["code"])})
		}
		o.cond.Broadcast()
		o.mu.Unlock()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sockets, who)
	o.cond.Broadcast()
}
