package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"foyer/domain"
	"foyer/events"
)

// Events that only sockets have; the others are those of the notifications.
const (
	eventHello = "HELLO"
	eventError = "ERROR"
)

// stamp says how new a value is. Within a topic a connection is never sent a
// value with a lower stamp than one it was sent before.
type stamp struct{ epoch, version, minor int64 }

func (s stamp) compare(t stamp) int {
	return cmp.Or(cmp.Compare(s.epoch, t.epoch), cmp.Compare(s.version, t.version), cmp.Compare(s.minor, t.minor))
}

func (s stamp) before(t stamp) bool { return s.compare(t) < 0 }

func placeStamp(p domain.Place) stamp { return stamp{epoch: p.Epoch, version: p.Version} }

func statsStamp(s domain.Stats) stamp { return stamp{s.Epoch, s.Version, s.SeatVersion} }

// frameHead opens every frame of the server. Epoch and Version are those of the
// topic; a client ignores a lower version and starts anew at a higher epoch.
type frameHead struct {
	Event   string        `json:"event"`
	Topic   string        `json:"topic,omitempty"`
	ShowID  domain.ShowID `json:"showId,omitempty"`
	Epoch   int64         `json:"epoch"`
	Version int64         `json:"version"`
	At      time.Time     `json:"at"`
}

func head(event, topic string, show domain.ShowID, s stamp, at time.Time) frameHead {
	return frameHead{Event: event, Topic: topic, ShowID: show, Epoch: s.epoch, Version: s.version, At: wireTime(at)}
}

// wireTime is UTC in whole milliseconds: what a page can use, and no longer.
func wireTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func wireTimeOrNil(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	w := wireTime(*t)
	return &w
}

type helloFrame struct {
	frameHead
	ConnectionID     string    `json:"connectionId"`
	ServerTime       time.Time `json:"serverTime"`
	HeartbeatSeconds float64   `json:"heartbeatSeconds"` // silence longer than three of these is a dead socket
	Places           []any     `json:"places"`           // each as HTTP answers it
}

type admissionFrame struct {
	frameHead
	RequestID domain.RequestID `json:"requestId"`
	Status    domain.Status    `json:"status"`
	ClaimBy   *time.Time       `json:"claimBy"`
	ExpiresAt *time.Time       `json:"expiresAt"`
	Place     any              `json:"place"` // as HTTP answers it
}

type rankFrame struct {
	frameHead
	RequestID domain.RequestID `json:"requestId"`
	Rank      int64            `json:"rank"`
	Waiting   int64            `json:"waiting"`
	ETA       *domain.ETA      `json:"eta"`
	Odds      *domain.Odds     `json:"odds,omitempty"`
}

type statsFrame struct {
	frameHead
	Waiting       int64               `json:"waiting"`
	Active        int64               `json:"active"`
	MaxActive     int64               `json:"maxActive"`
	RatePerMinute int64               `json:"ratePerMinute"`
	Sold          int64               `json:"sold"`
	Held          int64               `json:"held"`
	Capacity      int64               `json:"capacity"`
	Availability  domain.Availability `json:"availability"`
	Phase         domain.Phase        `json:"phase"`
}

func newStatsFrame(s domain.Stats, at time.Time) statsFrame {
	return statsFrame{
		frameHead: head(events.EventStats, statsTopic(s.ShowID), s.ShowID, statsStamp(s), at),
		Waiting:   s.Waiting, Active: s.Active, MaxActive: s.MaxActive, RatePerMinute: s.RatePerMinute,
		Sold: s.Sold, Held: s.Held, Capacity: s.Capacity, Availability: s.Availability(), Phase: s.Phase,
	}
}

// soldOutFrame says that the last seat went, or with SoldOut false that a
// cancellation brought seats back.
type soldOutFrame struct {
	frameHead
	SoldOut bool `json:"soldOut"`
}

type showFrame struct {
	frameHead
	Phase   domain.Phase `json:"phase"`
	Message string       `json:"message"`
	Show    any          `json:"show"` // as HTTP answers it
}

type bookingFrame struct {
	frameHead
	BookingID domain.BookingID     `json:"bookingId"`
	Status    domain.BookingStatus `json:"status"`
	Reason    string               `json:"reason,omitempty"`
	Conflicts []domain.SeatID      `json:"conflicts,omitempty"`
	Seats     []domain.SeatID      `json:"seats"`
	Price     domain.Price         `json:"price"`
}

// seatsFrame is a delta: with it, a map as of version Since becomes one as of
// Version. Since 0 is a whole map, in which every seat not named is free.
type seatsFrame struct {
	frameHead
	Since int64         `json:"since"`
	Seats []domain.Seat `json:"seats"`
}

// merge joins a later delta to this one; of a seat in both the later state stays.
func (f seatsFrame) merge(later seatsFrame) seatsFrame {
	if later.Since == 0 {
		return later
	}
	seats := make(map[domain.SeatID]domain.Seat, len(f.Seats)+len(later.Seats))
	for _, seat := range f.Seats {
		seats[seat.ID] = seat
	}
	for _, seat := range later.Seats {
		seats[seat.ID] = seat
	}
	merged := seatsFrame{frameHead: later.frameHead, Since: min(f.Since, later.Since)}
	for _, id := range slices.Sorted(maps.Keys(seats)) {
		merged.Seats = append(merged.Seats, seats[id])
	}
	return merged
}

type chatMessageFrame struct {
	frameHead
	RoomID  domain.RoomID      `json:"roomId"`
	Message domain.ChatMessage `json:"message"`
}

// chatReadFrame tells how far a member has read. As the answer to a subscription
// it carries the reader's own pointer and the chat room's last message.
type chatReadFrame struct {
	frameHead
	RoomID  domain.RoomID   `json:"roomId"`
	Person  domain.PersonID `json:"person"`
	Name    string          `json:"name,omitempty"`
	UpTo    int64           `json:"upTo"`
	LastSeq *int64          `json:"lastSeq,omitempty"`
	Unread  *int            `json:"unread,omitempty"`
}

type errorFrame struct {
	frameHead
	Code   string         `json:"code"`
	Detail string         `json:"detail"`
	Ref    string         `json:"ref,omitempty"` // the ref of the client's frame
	Extra  map[string]any `json:"extra,omitempty"`
}

// encode turns a frame into JSON. Frames are plain structs, so that it cannot
// fail; a value of another package that does is a defect worth a panic, which
// the callbacks contain.
func encode(frame any) []byte {
	data, err := json.Marshal(frame)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", frame, err))
	}
	return data
}

// Topics of frames. Personal ones are named by the request id, which only its
// person can derive or be told.
func admissionTopic(id domain.RequestID) string { return "/topic/admission/" + string(id) }
func rankTopic(id domain.RequestID) string      { return "/topic/rank/" + string(id) }
func bookingTopic(id domain.RequestID) string   { return "/topic/booking/" + string(id) }
func statsTopic(id domain.ShowID) string        { return "/topic/stats/show/" + string(id) }
func soldOutTopic(id domain.ShowID) string      { return "/topic/soldout/show/" + string(id) }
func seatsTopic(id domain.ShowID) string        { return "/topic/seats/show/" + string(id) }
func showTopic(id domain.ShowID) string         { return "/topic/show/" + string(id) }
func chatTopic(id domain.RoomID) string         { return "/topic/chat/" + string(id) }
