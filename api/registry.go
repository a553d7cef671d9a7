package api

import (
	"hash/maphash"
	"slices"
	"sync"

	"foyer/domain"
)

// shardCount spreads the registry's locks: with this many, connecting crowds and
// notifications rarely wait for one another.
const shardCount = 64

// interest is one reason to hear of something.
type interest struct {
	kind interestKind
	id   string
}

type interestKind uint8

const (
	interestPlace interestKind = iota // a request id: ADMISSION, BOOKING
	interestShow                      // a show: STATS, RANK, SOLD_OUT, SHOW
	interestSeats                     // a show's seats: SEATS
	interestRoom                      // a chat room: CHAT_MESSAGE, CHAT_READ
)

func placeInterest(id domain.RequestID) interest { return interest{interestPlace, string(id)} }
func showInterest(id domain.ShowID) interest     { return interest{interestShow, string(id)} }
func seatsInterest(id domain.ShowID) interest    { return interest{interestSeats, string(id)} }
func roomInterest(id domain.RoomID) interest     { return interest{interestRoom, string(id)} }

// registry finds the connections of this process that are to hear of something.
// Its cost for a notification that concerns nobody here is one map lookup.
type registry struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

type shard struct {
	mu      sync.RWMutex
	members map[interest][]*connection
}

func newRegistry() *registry { return &registry{seed: maphash.MakeSeed()} }

func (r *registry) shard(i interest) *shard {
	return &r.shards[maphash.Comparable(r.seed, i)%shardCount]
}

// add lets a connection hear of something. The connection sees to it that it adds
// an interest once.
func (r *registry) add(i interest, c *connection) { r.shard(i).add(i, c) }

// remove takes an interest back; it does not matter whether it was there.
func (r *registry) remove(i interest, c *connection) { r.shard(i).remove(i, c) }

// find returns who is to hear of something, as a copy: nothing is locked while
// the caller goes through it.
func (r *registry) find(i interest) []*connection { return r.shard(i).find(i) }

func (s *shard) add(i interest, c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members == nil {
		s.members = map[interest][]*connection{}
	}
	s.members[i] = append(s.members[i], c)
}

func (s *shard) remove(i interest, c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.members[i]
	at := slices.Index(list, c)
	if at < 0 {
		return
	}
	if len(list) == 1 {
		delete(s.members, i)
		return
	}
	list[at] = list[len(list)-1]
	list[len(list)-1] = nil
	s.members[i] = list[:len(list)-1]
}

func (s *shard) find(i interest) []*connection {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.members[i])
}

// ids lists what of one kind anybody here is interested in.
func (r *registry) ids(kind interestKind) []string {
	var ids []string
	for n := range r.shards {
		s := &r.shards[n]
		s.mu.RLock()
		for i := range s.members {
			if i.kind == kind {
				ids = append(ids, i.id)
			}
		}
		s.mu.RUnlock()
	}
	return ids
}

// entries counts all interests of all connections.
func (r *registry) entries() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.RLock()
		for _, list := range s.members {
			n += len(list)
		}
		s.mu.RUnlock()
	}
	return n
}
