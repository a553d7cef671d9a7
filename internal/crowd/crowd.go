package crowd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"foyer/client"
	"foyer/domain"
)

// Limits of what the crowd uses beside its people.
const (
	// httpConnections is shared by all people; who finds none free waits.
	httpConnections = 64
	// attempts of a step that is safe to repeat: enough to sit a restart out.
	attempts = 8
	// worstReturn bounds how long people stay away from a show that has nothing
	// for them, and from a server that does not answer.
	worstReturn = time.Minute
)

// crowd is what all people share.
type crowd struct {
	Config
	client  *client.Client // without a token
	counts  counts
	sockets chan struct{} // one token for each socket in use
	lobby   lobby
}

// Run lets the crowd in and returns, with what it did, when ctx has ended and
// everybody is gone. It fails at once when the server gives no dev tokens or has
// no such show; later troubles of the server are waited out.
func Run(ctx context.Context, config Config) (Summary, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return Summary{}, fmt.Errorf("crowd: %w", err)
	}
	transport := &http.Transport{
		MaxConnsPerHost: httpConnections, MaxIdleConnsPerHost: httpConnections, IdleConnTimeout: time.Minute,
	}
	defer transport.CloseIdleConnections()
	base, err := client.New(config.BaseURL, client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return Summary{}, fmt.Errorf("crowd: %w", err)
	}
	c := &crowd{Config: config, client: base, sockets: make(chan struct{}, config.Sockets), lobby: lobby{room: config.Lobby}}
	if err := c.scout(ctx); err != nil {
		return Summary{}, err
	}
	var people sync.WaitGroup
	for i := range config.People {
		people.Go(func() { c.line(ctx, i) })
	}
	people.Wait()
	return c.counts.summary(), nil
}

// scout finds out before anybody comes whether coming makes sense.
func (c *crowd) scout(ctx context.Context) error {
	err := client.Retry(ctx, attempts, func(ctx context.Context) error {
		if _, err := c.client.DevToken(ctx, "crowd-scout", "Scout"); err != nil {
			return fmt.Errorf("crowd: dev token: %w", err)
		}
		if _, err := c.client.Show(ctx, c.Show); err != nil {
			return fmt.Errorf("crowd: show %s: %w", c.Show, err)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// line is one person after the other until ctx ends.
func (c *crowd) line(ctx context.Context, i int) {
	r := rand.New(rand.NewPCG(c.Seed, uint64(i)))
	away := time.Duration(r.Int64N(int64(c.Arrive) + 1))
	for visit := 0; rest(ctx, away); visit++ {
		id := domain.PersonID("crowd-" + strconv.FormatUint(c.Seed, 36) + "-" + strconv.Itoa(i) + "-" + strconv.Itoa(visit))
		p := newPerson(c, id, r)
		c.counts.visits.Add(1)
		err := p.visit(ctx)
		if ctx.Err() != nil {
			return
		}
		away = c.after(err, r, away)
	}
}

// after counts how a visit ended and says when the next person comes.
func (c *crowd) after(err error, r *rand.Rand, away time.Duration) time.Duration {
	var over *overError
	opens, notOpen := client.NotOpenUntil(err)
	switch {
	case err == nil:
	case notOpen:
		c.counts.turnedOff.Add(1)
		return min(max(time.Until(opens), 0)+around(c.Think, r), worstReturn)
	case client.HasCode(err, client.CodeSoldOut), client.HasCode(err, client.CodeClosed),
		errors.As(err, &over) && over.soldOutOrClosed():
		c.counts.turnedOff.Add(1)
		return min(2*max(away, around(c.Return, r)), worstReturn)
	case errors.As(err, &over), client.HasCode(err, client.CodeNotAdmitted), client.HasCode(err, client.CodeHoldExpired),
		client.HasCode(err, client.CodeNotJoined):
		c.counts.expired.Add(1)
	default:
		c.counts.failures.Add(1)
		c.Log.Debug("crowd visit failed", "show_id", c.Show, "error", err)
		return min(2*max(away, around(c.Return, r)), worstReturn)
	}
	return around(c.Return, r)
}

// around is a random duration with an average: from a half to one and a half of it.
func around(average time.Duration, r *rand.Rand) time.Duration {
	return average/2 + time.Duration(r.Int64N(int64(average)+1))
}

// rest waits, and reports whether there is still a crowd to be part of.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
