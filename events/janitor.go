package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// trimLimit bounds what one trimming command removes, so that Redis is not held.
const trimLimit = 10_000

// lowWaterKey holds, for each group, an id up to which every entry is done: where
// a group that was lost begins again.
func lowWaterKey(stream string) string { return stream + ".low" }

// janitor measures one stream and removes what every group has done. It may run
// in any number of processes at once.
type janitor struct {
	group   group
	every   time.Duration
	rdb     redis.UniversalClient
	log     *slog.Logger
	metrics *metrics
}

func (j *janitor) run(ctx context.Context) {
	for pause(ctx, jitter(j.every)) == nil {
		if err := j.tidy(ctx); err != nil && ctx.Err() == nil {
			j.log.WarnContext(ctx, "tidying a stream failed", "stream", j.group.stream, "error", err)
		}
	}
}

// progress is how far one group has come.
type progress struct {
	done      entryID // every entry up to here is acknowledged
	delivered entryID
	pending   int64
	oldest    entryID // pending one; zero when there is none
	lag       int64   // negative when Redis cannot tell
}

// tidy does one round. What it reads step by step stays true while others go on:
// whatever becomes pending later is younger than what was delivered by then.
func (j *janitor) tidy(ctx context.Context) error {
	groups, err := j.rdb.XInfoGroups(ctx, j.group.stream).Result()
	if err != nil {
		if strings.Contains(err.Error(), "no such key") {
			return nil
		}
		return fmt.Errorf("inspect groups: %w", err)
	}
	var ours *progress
	low := entryID{^uint64(0), ^uint64(0)}
	for _, g := range groups {
		p, err := j.inspect(ctx, g)
		if err != nil {
			return err
		}
		if p.done.less(low) {
			low = p.done
		}
		if g.Name == j.group.group {
			ours = &p
		}
	}
	if ours == nil {
		return nil // lost; nothing may be removed until it is back
	}
	if err := j.rdb.HSet(ctx, lowWaterKey(j.group.stream), j.group.group, ours.done.String()).Err(); err != nil {
		return fmt.Errorf("store low water: %w", err)
	}
	if err := j.trim(ctx, low.next()); err != nil {
		return err
	}
	return errors.Join(j.measure(ctx, *ours), j.dismiss(ctx), j.expireLetters(ctx))
}

func (j *janitor) inspect(ctx context.Context, g redis.XInfoGroup) (progress, error) {
	delivered, err := parseEntryID(g.LastDeliveredID)
	if err != nil {
		return progress{}, err
	}
	p := progress{done: delivered, delivered: delivered, lag: g.Lag}
	pending, err := j.rdb.XPending(ctx, j.group.stream, g.Name).Result()
	if err != nil {
		return p, fmt.Errorf("inspect pending entries: %w", err)
	}
	if pending.Count == 0 {
		return p, nil
	}
	p.pending = pending.Count
	if p.oldest, err = parseEntryID(pending.Lower); err != nil {
		return p, err
	}
	if before := p.oldest.previous(); before.less(p.done) {
		p.done = before
	}
	return p, nil
}

// trim removes entries below an id: whole nodes of the stream in bounded steps,
// then the few that are left of the last one.
func (j *janitor) trim(ctx context.Context, below entryID) error {
	for {
		removed, err := j.rdb.XTrimMinIDApprox(ctx, j.group.stream, below.String(), trimLimit).Result()
		if err != nil {
			return fmt.Errorf("trim: %w", err)
		}
		if removed == 0 {
			break
		}
	}
	if err := j.rdb.XTrimMinID(ctx, j.group.stream, below.String()).Err(); err != nil {
		return fmt.Errorf("trim: %w", err)
	}
	return nil
}

func (j *janitor) measure(ctx context.Context, p progress) error {
	stream := j.group.stream
	var now *redis.TimeCmd
	var length, letters *redis.IntCmd
	var first *redis.XMessageSliceCmd
	_, err := j.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		now, length, letters = pipe.Time(ctx), pipe.XLen(ctx, stream), pipe.XLen(ctx, deadStream(j.rdb, stream))
		first = pipe.XRangeN(ctx, stream, p.delivered.next().String(), "+", 1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	age := func(id entryID) float64 {
		return max(now.Val().Sub(time.UnixMilli(int64(id.ms))).Seconds(), 0)
	}
	m := j.metrics
	m.pending.WithLabelValues(stream).Set(float64(p.pending))
	m.length.WithLabelValues(stream).Set(float64(length.Val()))
	m.letters.WithLabelValues(stream).Set(float64(letters.Val()))
	if p.lag < 0 {
		m.lag.DeleteLabelValues(stream) // unknown is not zero
	} else {
		m.lag.WithLabelValues(stream).Set(float64(p.lag))
	}
	oldestPending, oldestUndelivered := 0.0, 0.0
	if p.pending > 0 {
		oldestPending = age(p.oldest)
	}
	if waiting := first.Val(); len(waiting) > 0 {
		id, err := parseEntryID(waiting[0].ID)
		if err != nil {
			return err
		}
		oldestUndelivered = age(id)
	}
	m.oldestPending.WithLabelValues(stream).Set(oldestPending)
	m.oldestUndelivered.WithLabelValues(stream).Set(oldestUndelivered)
	return nil
}

// dismiss removes the names of consumers that ended without leaving.
func (j *janitor) dismiss(ctx context.Context) error {
	consumers, err := j.rdb.XInfoConsumers(ctx, j.group.stream, j.group.group).Result()
	if err != nil {
		return fmt.Errorf("inspect consumers: %w", err)
	}
	stale := slices.DeleteFunc(consumers, func(c redis.XInfoConsumer) bool { return c.Pending > 0 || c.Idle < staleConsumer })
	for _, c := range stale {
		if err := leaveScript.Run(ctx, j.rdb, []string{j.group.stream}, j.group.group, c.Name).Err(); err != nil {
			return fmt.Errorf("remove consumer: %w", err)
		}
	}
	return nil
}

// expireLetters removes dead letters past their retention, by the clock of Redis.
func (j *janitor) expireLetters(ctx context.Context) error {
	now, err := j.rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read time: %w", err)
	}
	oldest := strconv.FormatInt(now.Add(-deadRetention).UnixMilli(), 10)
	if err := j.rdb.XTrimMinID(ctx, deadStream(j.rdb, j.group.stream), oldest).Err(); err != nil {
		return fmt.Errorf("trim dead letters: %w", err)
	}
	return nil
}
