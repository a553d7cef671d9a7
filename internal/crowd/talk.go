package crowd

import (
	"context"
	"slices"
	"sync"

	"foyer/domain"
)

// names are what people are called; more than one may have the same.
var names = []string{
	"Ada", "Bela", "Carla", "Dario", "Edda", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Kaya", "Luca",
	"Mina", "Nils", "Olga", "Paul", "Qi", "Rosa", "Sami", "Tara", "Uwe", "Vera", "Willem", "Yara", "Zeno",
}

// lines are what people say while they wait.
var lines = []string{
	"Hello from somewhere in the line.",
	"Has anybody got in yet?",
	"My number is getting smaller, at last.",
	"Hoping for two seats together.",
	"Front rows or balcony, what do you think?",
	"I was here for the last one too, it was great.",
	"Fingers crossed!",
	"The first section is filling up quickly.",
	"Good luck, everybody.",
	"Who else is here with friends?",
	"Just got a coffee and kept my place.",
	"It moves faster than I thought.",
}

// lobbyName is what the chat room is called that a show's people meet in.
const lobbyName = "Lobby"

// lobby is the chat room that people talk in: the show's, or one that the first who
// needs it opens.
type lobby struct {
	mu   sync.Mutex
	room domain.RoomID
}

// open returns the chat room, after opening it if there is none.
func (l *lobby) open(ctx context.Context, p *person) (domain.RoomID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.room != "" {
		return l.room, nil
	}
	rooms, err := p.client.ShowRooms(ctx, p.crowd.Show)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(rooms, func(r domain.ChatRoom) bool { return r.Name == lobbyName }); i >= 0 {
		l.room = rooms[i].ID
		return l.room, nil
	}
	room, err := p.client.CreateRoom(ctx, lobbyName, p.crowd.Show)
	l.room = room.ID
	return l.room, err
}

// talk reads the lobby and says something. It is no reason to miss one's turn, so
// that what goes wrong here is only counted.
func (p *person) talk(ctx context.Context) {
	if err := p.say(ctx); err != nil && ctx.Err() == nil {
		p.crowd.counts.failures.Add(1)
		p.crowd.Log.Debug("crowd talk failed", "show_id", p.crowd.Show, "error", err)
	}
}

// say is one contribution. The person leaves the chat room again, so that its
// members do not grow with everybody who ever came.
func (p *person) say(ctx context.Context) error {
	room, err := p.crowd.lobby.open(ctx, p)
	if err != nil {
		return err
	}
	if err := p.client.JoinRoom(ctx, room); err != nil {
		return err
	}
	messages, err := p.client.Messages(ctx, room, 0, 0)
	if err != nil {
		return err
	}
	if len(messages) > 0 {
		if err := p.client.MarkRead(ctx, room, messages[len(messages)-1].Seq); err != nil {
			return err
		}
	}
	if _, err := p.client.Say(ctx, room, lines[p.rand.IntN(len(lines))]); err != nil {
		return err
	}
	p.crowd.counts.messages.Add(1)
	return p.client.LeaveRoom(ctx, room)
}
