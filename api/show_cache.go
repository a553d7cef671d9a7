package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"foyer/domain"
)

// showCacheAge bounds how old a show's settings may be on this process when a
// SHOW notification was lost. What decides anything (limits, deadlines, who is
// inside) is judged in Redis and never from here.
const showCacheAge = 5 * time.Second

// showCache keeps what SQL says about shows, for the many requests that need a
// show's plan or seed. While SQL is away it keeps answering with what it had,
// so that a waiting room outlives a database. Safe for concurrent use.
type showCache struct {
	store Store
	log   *slog.Logger
	reads singleflight.Group

	mu    sync.RWMutex
	shows map[domain.ShowID]cachedShow
	list  []domain.Show // newest first
	// listedAt is when list was read; zero makes the next caller read it.
	listedAt time.Time
	// changes counts forget and put, so that a reading that began before a
	// change never overwrites what the change brought.
	changes uint64
}

type cachedShow struct {
	show   domain.Show
	readAt time.Time
}

func newShowCache(store Store, log *slog.Logger) *showCache {
	return &showCache{store: store, log: log, shows: map[domain.ShowID]cachedShow{}}
}

// get returns a show, or domain.ErrShowNotFound.
func (c *showCache) get(ctx context.Context, id domain.ShowID) (domain.Show, error) {
	if !id.Valid() {
		return domain.Show{}, domain.ErrShowNotFound
	}
	c.mu.RLock()
	cached, found := c.shows[id]
	c.mu.RUnlock()
	if found && time.Since(cached.readAt) < showCacheAge {
		return cached.show, nil
	}
	show, err := c.readOne(ctx, id)
	if err != nil && found && !errors.Is(err, domain.ErrShowNotFound) {
		c.log.WarnContext(ctx, "show is served from memory, sql does not answer", "show_id", id, "error", err)
		return cached.show, nil
	}
	return show, err
}

// readOne shares one reading among callers at the same time; it outlives each of
// them, since its result is everybody's.
func (c *showCache) readOne(ctx context.Context, id domain.ShowID) (domain.Show, error) {
	result, err, _ := c.reads.Do("show "+string(id), func() (any, error) {
		before := c.changesNow()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		show, err := c.store.Show(ctx, id)
		if err == nil {
			c.keep(before, show)
		}
		return show, err
	})
	if err != nil {
		return domain.Show{}, err
	}
	return result.(domain.Show), nil
}

// all returns every show, newest first.
func (c *showCache) all(ctx context.Context) ([]domain.Show, error) {
	c.mu.RLock()
	list, listedAt := c.list, c.listedAt
	c.mu.RUnlock()
	if time.Since(listedAt) < showCacheAge {
		return list, nil
	}
	result, err, _ := c.reads.Do("all", func() (any, error) {
		before := c.changesNow()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		shows, err := c.store.Shows(ctx)
		if err == nil {
			c.keepAll(before, shows)
		}
		return shows, err
	})
	if err != nil {
		if list != nil {
			c.log.WarnContext(ctx, "shows are served from memory, sql does not answer", "error", err)
			return list, nil
		}
		return nil, err
	}
	return result.([]domain.Show), nil
}

// live returns the shows whose sale has not ended.
func (c *showCache) live(ctx context.Context) ([]domain.Show, error) {
	all, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var live []domain.Show
	for _, show := range all {
		if show.Phase(now, 0) != domain.PhaseClosed {
			live = append(live, show)
		}
	}
	return live, nil
}

// put keeps a show that this process has just written.
func (c *showCache) put(show domain.Show) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.shows[show.ID] = cachedShow{show: show, readAt: time.Now()}
	c.listedAt = time.Time{}
}

// forget makes the next caller read a show again; what is known stays for the
// case that SQL does not answer.
func (c *showCache) forget(id domain.ShowID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	if cached, found := c.shows[id]; found {
		cached.readAt = time.Time{}
		c.shows[id] = cached
	}
	c.listedAt = time.Time{}
}

// forgetAll makes every show be read again, after notifications may have been lost.
func (c *showCache) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for id, cached := range c.shows {
		cached.readAt = time.Time{}
		c.shows[id] = cached
	}
	c.listedAt = time.Time{}
}

func (c *showCache) changesNow() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changes
}

func (c *showCache) keep(before uint64, show domain.Show) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == before {
		c.shows[show.ID] = cachedShow{show: show, readAt: time.Now()}
	}
}

func (c *showCache) keepAll(before uint64, shows []domain.Show) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != before {
		return
	}
	c.list, c.listedAt = shows, time.Now()
	for _, show := range shows {
		c.shows[show.ID] = cachedShow{show: show, readAt: c.listedAt}
	}
}
