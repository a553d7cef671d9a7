package events

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"foyer/domain"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what stands on the wire with a file. A difference means that
// processes of two versions, which run side by side during every deploy, may not
// understand each other: add a version instead.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	got = append(got, '\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// entryOf marshals a command as it stands on its stream.
func entryOf(t *testing.T, stream, kind string, command any) map[string]any {
	t.Helper()
	payload, err := json.Marshal(command)
	require.NoError(t, err)
	msg := message.NewMessage("command-1", payload)
	msg.Metadata = message.Metadata{fieldType: kind, fieldVersion: wireVersion, fieldAt: "2026-05-01T18:30:00Z"}
	entry, err := entryMarshaller{}.Marshal(stream, msg)
	require.NoError(t, err)
	return entry
}

func TestCommandsOnTheWire(t *testing.T) {
	t.Parallel()
	admit := AdmitShow{ShowID: "t-show", Reason: ReasonTick, Tick: 1500 * time.Millisecond}
	freed := AdmitShow{ShowID: "t-show", Reason: ReasonFreed}
	book := BookSeats{Booking: booking("command-1")}
	cancel := CancelBooking{BookingID: "b-1", ShowID: "t-show"}
	mark := MarkRead{domain.ReadMark{RoomID: "room-1", PersonID: "ann", UpTo: 42, Epoch: 3}}

	golden(t, "admit_show_tick", entryOf(t, StreamAdmission, typeAdmitShow, admit))
	golden(t, "admit_show_freed", entryOf(t, StreamAdmission, typeAdmitShow, freed))
	golden(t, "book_seats", entryOf(t, StreamBooking, typeBookSeats, book))
	golden(t, "cancel_booking", entryOf(t, StreamBooking, typeCancelBooking, cancel))
	golden(t, "mark_read", entryOf(t, StreamChatRead, typeMarkRead, mark.fields()))

	readBack(t, "admit_show_tick", admit)
	readBack(t, "admit_show_freed", freed)
	readBack(t, "book_seats", book)
	readBack(t, "cancel_booking", cancel)
	got, err := readMark(readEntry(t, "mark_read"))
	require.NoError(t, err)
	require.Equal(t, mark, got)
}

func readEntry(t *testing.T, name string) fields {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, json.Unmarshal(raw, &values))
	return fieldsOf(values)
}

func readBack[C interface{ check() error }](t *testing.T, name string, want C) {
	t.Helper()
	stored := readEntry(t, name)
	delivery := (&entry{id: "1-1", fields: stored}).delivery()
	require.Equal(t, domain.CommandID("command-1"), delivery.CommandID)
	require.Equal(t, time.Date(2026, 5, 1, 18, 30, 0, 0, time.UTC), delivery.At())
	got, err := decode[C]([]byte(stored.Get(fieldPayload)))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestNotificationsOnTheWire(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 18, 30, 0, 0, time.UTC)
	of := func(event string) Notification {
		return Notification{Event: event, ShowID: "t-show", Epoch: 1, Version: 9, At: at, Publisher: "p", Seq: 4}
	}
	stats := &domain.Stats{ShowID: "t-show", Waiting: 10, Active: 2, MaxActive: 5, RatePerMinute: 60, AdmittedLastMinute: 2,
		Joined: 12, Sold: 1, Held: 2, Capacity: 20, Phase: domain.PhaseOpen, Epoch: 1, Version: 9, SeatVersion: 3}
	admission, rank, numbers, soldOut, seats := of(EventAdmission), of(EventRank), of(EventStats), of(EventSoldOut), of(EventSeats)
	admission.Admitted = []domain.Admitted{{RequestID: "req-1", ClaimBy: at}}
	admission.Ended = []domain.RequestID{"req-0"}
	rank.Knots = &domain.RankKnots{Waiting: 3, Scores: []int64{5, 8, 13}}
	numbers.Stats, soldOut.Stats = stats, stats
	seats.SeatsChanged, seats.SeatVersion = []domain.Seat{{ID: "A-1-1", State: domain.SeatHeld}, {ID: "A-1-2", State: domain.SeatFree}}, 3
	booked := of(EventBooking)
	sold, refused := booking("command-1"), booking("command-2")
	sold.Status = domain.BookingConfirmed
	refused.Status, refused.Reason, refused.Conflicts = domain.BookingRejected, domain.ReasonSeatUnavailable, refused.Seats[:1]
	booked.Bookings = []BookingFact{NewBookingFact(sold), NewBookingFact(refused)}
	said, read := of(EventChatMessage), of(EventChatRead)
	said.RoomID, read.RoomID = "room-1", "room-1"
	said.Message = &domain.ChatMessage{RoomID: "room-1", Seq: 3, Sender: "ann", SenderName: "Ann", Text: "hello", At: at}
	read.Read = []domain.ReadPointer{{RoomID: "room-1", PersonID: "bob", Name: "Bob", UpTo: 3}}
	heartbeat := Notification{Event: EventHeartbeat, At: at, Publisher: "p", Seq: 5}

	for name, n := range map[string]Notification{
		"admission": admission, "rank": rank, "stats": numbers, "sold_out": soldOut, "seats": seats, "booking": booked,
		"chat_message": said, "chat_read": read, "show": of(EventShow), "heartbeat": heartbeat,
	} {
		golden(t, "notification_"+name, n)
		raw, err := os.ReadFile(filepath.Join("testdata", "notification_"+name+".json"))
		require.NoError(t, err)
		got, err := parseNotification(string(raw))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
}

// A read event as others write it names only the chat room and the person; it
// means that all has been seen.
func TestForeignReadEventMarksAll(t *testing.T) {
	t.Parallel()
	mark, err := readMark(fields{{"roomNo", "room-1"}, {"publicUuid", "ann"}})
	require.NoError(t, err)
	require.Equal(t, domain.RoomID("room-1"), mark.RoomID)
	require.Equal(t, int64(1)<<62, mark.UpTo&(1<<62))
	_, err = readMark(fields{{"roomNo", "room-1"}, {"publicUuid", "ann"}, {"upTo", "seven"}})
	require.Error(t, err)
	require.Error(t, MarkRead{}.check())
}
