package crowd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"foyer/domain"
)

// Limits of a crowd.
const (
	// MaxPeople bounds the people at a time, one goroutine each.
	MaxPeople = 20_000
	// defaultSockets leaves room: in `foyer dev` both ends of each socket are open
	// files of one process.
	defaultSockets = 1000
)

// Config says who comes and how they behave. Of the fields that have a default a
// zero means that default, and a negative one none at all. Shares are at most 1,
// and each person is dealt theirs independently.
type Config struct {
	BaseURL string
	Show    domain.ShowID
	Lobby   domain.RoomID // where people talk; "" opens a chat room "Lobby" when somebody wants to
	People  int           // at a time
	Sockets int           // of those at most so many with a socket, the others poll; 1000

	Arrive time.Duration // the first People come spread over this time; 20 s, or 20 ms each if they are more than 1000
	Think  time.Duration // average pause before each step; 3 s
	Return time.Duration // average time after which somebody else comes for one who is done; 20 s

	PollOnly float64 // share who never open a socket; 0.2
	Leave    float64 // share who lose patience while waiting, half of them without a word; 0.1
	Lapse    float64 // share who hold seats and vanish; 0.03
	Release  float64 // share who hold seats and think better of it; 0.1
	Explicit float64 // share who pick their seats on the map, the others take the best; 0.4
	Cancel   float64 // share who cancel what they bought, after a while; 0.25
	Chat     float64 // share who talk in the lobby; 0.1
	// KeepFree is the share of the seats that is left for others: once no more are
	// unsold, people hold seats but give them back; 0.1. A negative one lets them
	// sell the show out.
	KeepFree float64

	Seed uint64       // 0: a random one
	Log  *slog.Logger // nil: none
}

// Default returns a lively crowd of so many people at a show, all else as by default.
func Default(base string, show domain.ShowID, people int) Config {
	return Config{BaseURL: base, Show: show, People: people}
}

// withDefaults returns the configuration that a Config stands for.
func (c Config) withDefaults() Config {
	c.Sockets = max(0, cmp.Or(c.Sockets, defaultSockets))
	c.Arrive = max(0, cmp.Or(c.Arrive, max(20*time.Second, time.Duration(c.People)*20*time.Millisecond)))
	c.Think = max(0, cmp.Or(c.Think, 3*time.Second))
	c.Return = max(0, cmp.Or(c.Return, 20*time.Second))
	c.PollOnly = max(0, cmp.Or(c.PollOnly, 0.2))
	c.Leave = max(0, cmp.Or(c.Leave, 0.1))
	c.Lapse = max(0, cmp.Or(c.Lapse, 0.03))
	c.Release = max(0, cmp.Or(c.Release, 0.1))
	c.Explicit = max(0, cmp.Or(c.Explicit, 0.4))
	c.Cancel = max(0, cmp.Or(c.Cancel, 0.25))
	c.Chat = max(0, cmp.Or(c.Chat, 0.1))
	c.KeepFree = max(0, cmp.Or(c.KeepFree, 0.1))
	c.Seed = cmp.Or(c.Seed, rand.Uint64())
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// check reports everything that is wrong at once.
func (c Config) check() error {
	var problems []error
	if c.People < 1 || c.People > MaxPeople {
		problems = append(problems, fmt.Errorf("people must be between 1 and %d", MaxPeople))
	}
	if !c.Show.Valid() {
		problems = append(problems, fmt.Errorf("show %q is no show id", c.Show))
	}
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"poll only", c.PollOnly}, {"leave", c.Leave}, {"lapse", c.Lapse}, {"release", c.Release},
		{"explicit", c.Explicit}, {"cancel", c.Cancel}, {"chat", c.Chat}, {"keep free", c.KeepFree},
	} {
		if share.value > 1 || math.IsNaN(share.value) {
			problems = append(problems, fmt.Errorf("share %s must be at most 1", share.name))
		}
	}
	return errors.Join(problems...)
}
