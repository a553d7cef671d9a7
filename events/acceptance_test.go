package events

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

// Three worker processes consume while one after the other is killed, Redis is
// killed and comes back, handlers fail now and then, and poison is among the
// commands. Every command that was accepted has its effect, and the poison alone
// becomes dead letters.
func TestEveryCommandHasItsEffectWhateverIsKilled(t *testing.T) {
	t.Parallel()
	if url := os.Getenv("FOYER_TEST_EFFECTS"); url != "" {
		consumeWithEffects(worldOn(t, url))
		select {}
	}
	server := testenv.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	w := worldOn(t, server.URL)
	ctx := t.Context()
	start := func() *exec.Cmd {
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestEveryCommandHasItsEffectWhateverIsKilled$")
		child.Env = append(os.Environ(), "FOYER_TEST_EFFECTS="+w.url)
		require.NoError(t, child.Start())
		return child
	}
	children := []*exec.Cmd{start(), start(), start()}

	var accepted []string
	poison := 0
	enough, published := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(published)
		for n := 0; !isClosed(enough); n++ {
			id := domain.CommandID(domain.NewID())
			b := booking(id)
			if n%500 == 250 {
				b.HoldID = "poison"
			}
			if w.commands.BookSeats(ctx, id, BookSeats{Booking: b}) != nil {
				continue
			}
			if b.HoldID == "poison" {
				poison++
				continue
			}
			accepted = append(accepted, string(id))
		}
	}()
	effects := func() int64 { return w.rdb.SCard(ctx, "effects").Val() }
	for round := range 6 {
		before := effects()
		w.eventually("work goes on", func() bool { return effects() > before+100 })
		if round == 3 {
			server.Kill()
			server.Restart()
			continue
		}
		victim := round % len(children)
		require.NoError(t, children[victim].Process.Kill())
		_ = children[victim].Wait()
		children[victim] = start()
	}
	close(enough)
	<-published
	testenv.Eventually(t, time.Minute, "nothing is undelivered or pending", func() bool {
		groups, err := w.rdb.XInfoGroups(ctx, StreamBooking).Result()
		return err == nil && groups[0].Pending == 0 && groups[0].Lag == 0
	})
	for _, child := range children {
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	for batch := 0; batch < len(accepted); batch += 1000 {
		ids := accepted[batch:min(batch+1000, len(accepted))]
		members := make([]any, len(ids))
		for i, id := range ids {
			members[i] = id
		}
		there, err := w.rdb.SMIsMember(ctx, "effects", members...).Result()
		require.NoError(t, err)
		require.NotContains(t, there, false)
	}
	letters, err := NewDeadLetters(w.rdb).List(ctx, StreamBooking, MaxDeadLetters)
	require.NoError(t, err)
	for _, letter := range letters {
		require.Contains(t, letter.Fields["payload"], "poison")
	}
	require.GreaterOrEqual(t, len(letters), poison)
}

// consumeWithEffects notes each command in Redis, as a worker would in SQL.
func consumeWithEffects(w *world) {
	w.work(Handlers{BookSeats: func(ctx context.Context, d Delivery, c BookSeats) error {
		if c.Booking.HoldID == "poison" {
			return Permanent(errors.New("poison"))
		}
		if rand.IntN(100) == 0 {
			return errors.New("bad luck")
		}
		if err := w.rdb.SAdd(ctx, "effects", string(d.CommandID)).Err(); err != nil {
			return Unavailable(err)
		}
		return pause(ctx, time.Millisecond)
	}}, func(cfg *ConsumerConfig) {
		// Workers die by the dozen here, and none of it is the command's fault.
		cfg.Limits = map[string]Limits{GroupBooking: {Deliveries: 50}}
		cfg.Redis = func(string) redis.UniversalClient { return w.client() }
	})
}
