package lua

import (
	"fmt"
	"strings"
)

// keyInfo describes one key of Redis. Which steps read and write it stands in the
// headers of the scripts; docs/redis-keys.md brings both together.
type keyInfo struct {
	id      string // what scripts call it: key.waiting
	pattern string // its name in Redis; {SHOW}, {TICKET}, {PERSON} stand for the hash tag
	kind    string // its Redis type
	holds   string // what is in it
	ttl     string // when Redis removes it
}

const noTTL = "none; stays with the show"

// allKeys are all keys of this package. Those of a show share its hash tag and so
// its cluster slot.
var allKeys = []keyInfo{
	{"show", "show:{SHOW}", "hash", "settings (times and durations in ms), counters, epoch, version and seat version; the show is loaded while this is there", noTTL},
	{"waiting", "sessions:{SHOW}:waiting", "zset", "request id -> place in the line; lower is earlier. At a show with lanes each has a stretch of 2^42 of its own, in the order of their numbers", noTTL},
	{"active", "sessions:{SHOW}:active", "zset", "request id -> deadline in ms, of the turn and after the claim of the session", noTTL},
	{"claimed", "sessions:{SHOW}:claimed", "set", "request ids in active that have claimed their turn", noTTL},
	{"presence", "presence:{SHOW}", "zset", "request id -> last contact in ms, of those in waiting; kept while their turn is not claimed", noTTL},
	{"rate", "rate:{SHOW}", "hash", "second -> admissions, for the last 61 seconds", noTTL},
	{"draw", "draw:{SHOW}", "list", "request ids of all who took part in the draw, in order of arrival, whatever became of them", noTTL},
	{"ended", "ended:{SHOW}", "hash", "request id -> STATUS:ms:why of a place that is over (EXPIRED, LEFT); joining again removes it", noTTL},
	{"revoked", "revoked:{SHOW}", "zset", "REQUEST:DEADLINE:EPOCH:ENDED of a session that has ended -> its number, rising, for shops that check passes; forgotten some minutes after its deadline", noTTL},
	{"trail", "trail:{SHOW}", "hash", "request id -> what:ms; ... of somebody's past: turns that were claimed or extended, and places that ended before the present one; at most 240 bytes a person", noTTL},
	{"arrivals", "arrivals:{SHOW}", "zset", "ms -> the show's counter of arrivals at that time, one a tick: tells when somebody came without a word about each", noTTL},
	{"codes", "codes:{SHOW}", "hash", "join code with a number of uses -> people who have used it, and CODE:REQUEST -> 1 of each of them", noTTL},
	{"seats", "seats:{SHOW}", "hash", "seat id -> h:HOLD:REQUEST:DEADLINE (held), b:HOLD:REQUEST:BOOKING (being booked) or s:BOOKING (sold); absent or h with its deadline over: free", noTTL},
	{"holds", "holds:{SHOW}", "hash", "hold id -> REQUEST:STATE:DEADLINE:CEILING:BOOKING:BEGUN:seat,seat; state h plain, b begun, p begun and published, x lapsed", noTTL},
	{"deadlines", "hold-deadlines:{SHOW}", "zset", "hold id -> deadline in ms of a plain hold, or when a lapsed one is forgotten", noTTL},
	{"begun", "hold-begun:{SHOW}", "zset", "hold id -> ms when its booking began", noTTL},
	{"owners", "owners:{SHOW}", "hash", "request id -> its hold ids, comma between", noTTL},
	{"bought", "bought:{SHOW}", "hash", "request id -> seats bought", noTTL},
	{"seat_log", "seat-log:{SHOW}", "zset", "seat id -> seat version of its last change", noTTL},
	{"sold_out", "sold-out:{SHOW}", "string", "1 while the show is sold out, for polling", noTTL},
	{"settled", "settled:{SHOW}", "hash", "booking id -> C completed, R rejected, X cancelled", noTTL},
	{"ticket", "ticket:{TICKET}", "string", "DEADLINE:payload of a one-time socket ticket", "the life of the ticket"},
	{"read_notes", "read-notes:{PERSON}", "hash", "chat room id -> EPOCH:UPTO:DEADLINE, what the person has read until SQL knows", "60 s after the last note"},
}

// keyNames turns the keys' ids into their names in Redis under one hash tag.
func keyNames(ids []string, tag string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = patternOf(id).with(tag)
	}
	return names
}

type keyPattern string

// with puts the hash tag in place of the word in braces.
func (p keyPattern) with(tag string) string {
	open, shut := strings.IndexByte(string(p), '{'), strings.IndexByte(string(p), '}')
	return string(p[:open+1]) + tag + string(p[shut:])
}

func patternOf(id string) keyPattern {
	for _, k := range allKeys {
		if k.id == id {
			return keyPattern(k.pattern)
		}
	}
	panic("lua: a script names the key " + id + ", which keys.go does not know")
}

// SoldOutKey names the string that is there while a show is sold out, for those who
// poll Redis themselves.
func SoldOutKey(show string) string { return patternOf("sold_out").with(show) }

// keysDocument writes docs/redis-keys.md from the keys and the scripts' headers.
func keysDocument(scripts map[string]*script) string {
	var b strings.Builder
	b.WriteString("# Keys in Redis\n\n")
	b.WriteString("Written by `go generate ./lua` from `lua/keys.go` and the headers of `lua/*.lua`; a test keeps it equal.\n")
	b.WriteString("Steps name the script files. Streams and Pub/Sub channels belong to `events`.\n")
	for _, k := range allKeys {
		fmt.Fprintf(&b, "\n## `%s`\n\n", k.pattern)
		fmt.Fprintf(&b, "- type: %s\n- holds: %s\n- expiry: %s\n", k.kind, k.holds, k.ttl)
		fmt.Fprintf(&b, "- written by: %s\n- read by: %s\n", stepsThat(scripts, k.id, writes), stepsThat(scripts, k.id, reads))
	}
	return b.String()
}
