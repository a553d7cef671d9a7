package bench

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/events"
)

const (
	chatRooms   = 200
	chatMembers = 50
	// chatMessages is the last sequence of each room; no mark goes beyond it.
	chatMessages = 100_000
	chatMarks    = 100_000
	chatSingles  = 10_000
)

// BenchmarkChatRead moves the read pointers of two hundred chat rooms.
func BenchmarkChatRead(b *testing.B) {
	s := newStage(b)
	s.openRooms(b)
	Comparison{
		Name: "streams-5-chat", Title: "Read events, from the stream to acknowledged",
		About: fmt.Sprintf("%d read events of %d chat rooms with %d members each, most of them of a few, each further than the member's last. Foyer: read, coalesced, written to SQL, told to everybody, acknowledged. "+
			"The other updates a row for each event, on 16 connections, without any stream.", chatMarks, chatRooms, chatMembers),
		Servers:  s.servers,
		Metrics:  []Metric{{"rate", "events/s"}, {"cpu", "CPU of the process, µs an event"}},
		Variants: []Variant{{"Foyer", s.readFromStream}, {"an update each", s.updateEach}},
		Goals:    []Goal{{Text: "at least 50,000 events/s into PostgreSQL", Metric: "rate", Variant: "Foyer", AtLeast: 50_000}},
	}.Run(b)
}

func (s *stage) openRooms(b *testing.B) {
	b.Helper()
	each(b, chatRooms, func(i int) error {
		if _, err := s.store.CreateRoom(b.Context(), domain.ChatRoom{ID: chatRoom(i), Name: "Room"}, chatMember(0), "Ann"); err != nil {
			return err
		}
		for member := 1; member < chatMembers; member++ {
			if err := s.store.AddMember(b.Context(), chatRoom(i), chatMember(member), "Bob"); err != nil {
				return err
			}
		}
		return nil
	})
	_, err := s.sql.Exec(b.Context(), "UPDATE chat_rooms SET last_seq = $1", chatMessages)
	require.NoError(b, err)
}

func chatRoom(i int) domain.RoomID { return domain.RoomID("room-" + strconv.Itoa(i%chatRooms)) }
func chatMember(i int) domain.PersonID {
	return domain.PersonID("person-" + strconv.Itoa(i%chatMembers))
}

// chatMarksOf are the marks of a run, each one further than its member's last. A few
// rooms and members have most of them, as in life.
func chatMarksOf() []domain.ReadMark {
	dice := rand.New(rand.NewPCG(1, 2))
	rooms, members := rand.NewZipf(dice, 1.1, 1, chatRooms-1), rand.NewZipf(dice, 1.1, 1, chatMembers-1)
	last := map[int]int64{}
	marks := make([]domain.ReadMark, chatMarks)
	for n := range marks {
		room, member := int(rooms.Uint64()), int(members.Uint64())
		last[room*chatMembers+member]++
		marks[n] = domain.ReadMark{RoomID: chatRoom(room), PersonID: chatMember(member), UpTo: last[room*chatMembers+member]}
	}
	return marks
}

func (s *stage) unread(b *testing.B) {
	b.Helper()
	_, err := s.sql.Exec(b.Context(), "UPDATE chat_members SET read_up_to = 0")
	require.NoError(b, err)
	_, err = s.sql.Exec(b.Context(), "VACUUM ANALYZE chat_members")
	require.NoError(b, err)
}

func (s *stage) readFromStream(b *testing.B) Sample {
	s.unread(b)
	require.NoError(b, s.rdb.FlushDB(b.Context()).Err())
	const batch = 1000
	marks := chatMarksOf()
	for from := 0; from < chatMarks; from += batch {
		_, err := s.rdb.Pipelined(b.Context(), func(pipe redis.Pipeliner) error {
			for n := from; n < from+batch; n++ {
				mark := marks[n]
				pipe.XAdd(b.Context(), &redis.XAddArgs{Stream: events.StreamChatRead, Values: []any{
					"id", "c" + strconv.Itoa(n), "type", "MARK_READ", "version", "1", "at", "2026-05-01T18:30:00Z",
					"roomNo", string(mark.RoomID), "publicUuid", string(mark.PersonID), "upTo", mark.UpTo, "epoch", 0,
				}})
			}
			return nil
		})
		require.NoError(b, err)
	}
	meter := StartMeter()
	stop := s.work(b, events.GroupChat, s.store)
	s.settled(b, events.StreamChatRead)
	sample := chatRate(meter, chatMarks)
	stop()
	s.allRead(b, chatMarks)
	return sample
}

func chatRate(m Meter, n int) Sample {
	wall, cpu := m.Read()
	return Sample{"rate": float64(n) / wall.Seconds(), "cpu": cpu.Seconds() * 1e6 / float64(n)}
}

func (s *stage) allRead(b *testing.B, n int) {
	b.Helper()
	var read int64
	require.NoError(b, s.sql.QueryRow(b.Context(), "SELECT sum(read_up_to)::bigint FROM chat_members").Scan(&read))
	require.EqualValues(b, n, read)
}

func (s *stage) updateEach(b *testing.B) Sample {
	s.unread(b)
	const writers = 16
	marks := chatMarksOf()
	meter := StartMeter()
	var running sync.WaitGroup
	failed := make(chan error, writers)
	for writer := range writers {
		running.Go(func() {
			for n := writer; n < chatSingles; n += writers {
				mark := marks[n]
				_, err := s.sql.Exec(b.Context(), `UPDATE chat_members SET read_up_to = $3 WHERE room_id = $1 AND person_id = $2 AND read_up_to < $3`,
					pgx.QueryExecModeCacheStatement, mark.RoomID, mark.PersonID, mark.UpTo)
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	running.Wait()
	close(failed)
	require.NoError(b, <-failed)
	sample := chatRate(meter, chatSingles)
	return sample // not all of it is true: writers overtake one another, and an update that comes late moves nothing
}
