package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

const (
	// readGrace is how much longer than its Block a read may take before the
	// connection counts as dead, on clients that mind a context's deadline.
	readGrace   = 2 * time.Second
	errorPause  = 50 * time.Millisecond
	maxErrPause = 2 * time.Second
	// typeReclaim is an entry that a stopping consumer leaves to say that it has
	// handed entries back. Whoever reads it sweeps at once.
	typeReclaim = "RECLAIM"
	// morePause is how soon a sweep goes on that had more than it could start.
	morePause = 100 * time.Millisecond
)

func consumerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return host + "-" + domain.NewID()
}

// read takes new entries, never more than can start at once. The read itself is
// not cancelled: what Redis has delivered meanwhile would be nobody's. While the work
// on one batch begins, Redis is asked for the next already.
func (s *subscription) read(ctx context.Context) {
	batches := make(chan []*entry)
	var beginning sync.WaitGroup
	beginning.Go(func() {
		for entries := range batches {
			s.accept(ctx, entries, s.fresh)
		}
	})
	defer beginning.Wait()
	defer close(batches)
	failures := 0
	for places := s.reserve(ctx); places > 0; places = s.reserve(ctx) {
		entries, err := s.readOnce(context.WithoutCancel(ctx), places)
		s.fresh.leave(places - len(entries))
		if err != nil {
			failures++
			s.recover(ctx, err, failures)
			continue
		}
		failures = 0
		if len(entries) > 0 {
			s.counts.delivered(len(entries))
			batches <- entries
		}
	}
}

// reserve waits for a place and takes what more there is; 0 when ctx has ended.
// While most places are taken it waits a moment for more to come free, so that a
// busy consumer reads many entries a command rather than one by one.
func (s *subscription) reserve(ctx context.Context) int {
	if ctx.Err() != nil {
		return 0
	}
	places := s.fresh.enter(ctx, maxRead)
	if places > 0 && places < min(s.fresh.size/4, maxRead/2) {
		if pause(ctx, readWait) != nil {
			return 0
		}
		places += s.fresh.take(maxRead - places)
	}
	return places
}

// accept begins to work on delivered entries, each with a place in a lane.
func (s *subscription) accept(ctx context.Context, entries []*entry, in *lane) {
	work := entries[:0]
	for _, e := range entries {
		if e.fields.Get(fieldType) == typeReclaim {
			in.leave(1)
			s.heed(ctx, e)
			continue
		}
		if e.attempt > s.limits.Deliveries {
			e.reason = DeadExhausted
			e.firstErr, e.lastErr = errCrashed.Error(), errCrashed.Error()
			e.told = e.attempt > 2*s.limits.Deliveries // telling of it may be what ends the process
		}
		work = append(work, e)
	}
	s.take(ctx, work, in)
}

// heed sweeps because another consumer has handed entries back. While stopping
// it leaves that to the next.
func (s *subscription) heed(ctx context.Context, e *entry) {
	if len(s.owned.add([]*entry{e})) == 0 {
		return
	}
	if ctx.Err() != nil {
		e.leave()
		return
	}
	put(s.nudge)
	s.roster.begin(1)
	s.roster.finish(e)
}

// recover deals with a failed read: it makes a vanished group again, says so
// once, and waits longer each time.
func (s *subscription) recover(ctx context.Context, err error, failures int) {
	s.metrics.readErrors.WithLabelValues(s.stream).Inc()
	if failures == 1 {
		s.log.WarnContext(ctx, "reading commands failed", "error", err)
	}
	if groupMissing(err) {
		if err := s.ensureGroup(ctx); err == nil {
			s.metrics.recreated.WithLabelValues(s.stream).Inc()
			s.log.WarnContext(ctx, "consumer group had vanished and was made again")
		}
	}
	_ = pause(ctx, min(backoff(errorPause, failures), maxErrPause))
}

// groupMissing recognises what Redis says when a group, or its whole stream, is
// gone; UNBLOCKED is how older versions say it to a blocked reader.
func groupMissing(err error) bool {
	for err := err; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.HasPrefix(text, "NOGROUP") || strings.HasPrefix(text, "UNBLOCKED") {
			return true
		}
	}
	return false
}

// ensureGroup makes the group where it is missing. It begins behind what the
// janitor knows to be done, or at the very beginning; never at the end, which
// would skip what came in meanwhile.
func (s *subscription) ensureGroup(ctx context.Context) error {
	start, err := s.startID(ctx)
	if err != nil {
		return err
	}
	err = s.commands.XGroupCreateMkStream(ctx, s.stream, s.group, start).Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return fmt.Errorf("make consumer group: %w", err)
	}
	return nil
}

func (s *subscription) startID(ctx context.Context) (string, error) {
	const beginning = "0"
	low, err := s.commands.HGet(ctx, lowWaterKey(s.stream), s.group).Result()
	if errors.Is(err, redis.Nil) {
		return beginning, nil
	}
	if err != nil {
		return "", fmt.Errorf("read low water: %w", err)
	}
	last, err := s.commands.XRevRangeN(ctx, s.stream, "+", "-", 1).Result()
	if err != nil {
		return "", fmt.Errorf("read last entry: %w", err)
	}
	if len(last) == 0 {
		return beginning, nil
	}
	lowID, errLow := parseEntryID(low)
	lastID, errLast := parseEntryID(last[0].ID)
	if errLow != nil || errLast != nil || lastID.less(lowID) {
		return beginning, nil // the stream is another than the mark was made for
	}
	return low, nil
}

// sweep takes over what silent consumers leave, one's own earlier reads whose
// answers were lost among it.
func (s *subscription) sweep(ctx context.Context) {
	for wait := time.Duration(0); ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.nudge:
			timer.Stop()
		case <-timer.C:
		}
		more, err := s.sweepOnce(ctx)
		wait = jitter(s.timing.Sweep)
		if more {
			wait = min(morePause, s.timing.Sweep)
		}
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "looking for abandoned commands failed", "error", err)
			s.cursor = "-"
		}
	}
}

// jitter spreads an interval by a quarter to both sides, so that many processes
// do not do the same thing at the same instant.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1)
}

// sweepOnce goes through the abandoned entries from where the last sweep
// stopped. It reports true when it stopped for want of places.
func (s *subscription) sweepOnce(ctx context.Context) (more bool, err error) {
	for ctx.Err() == nil {
		places := s.reclaimed.free() // only this goroutine enters
		if places == 0 {
			return true, nil
		}
		page, err := s.commands.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: s.stream, Group: s.group, Idle: s.timing.Idle, Start: s.cursor, End: "+", Count: maxRead,
		}).Result()
		if err != nil {
			if groupMissing(err) {
				return false, nil // the reader makes it again
			}
			return false, fmt.Errorf("list abandoned entries: %w", err)
		}
		seen, err := s.reclaim(ctx, page, places)
		if err != nil {
			return false, err
		}
		if seen == len(page) && seen < maxRead {
			s.cursor = "-"
			return false, nil
		}
		last, err := parseEntryID(page[seen-1].ID)
		if err != nil {
			return false, err
		}
		s.cursor = last.next().String()
	}
	return false, nil
}

// reclaim takes over entries of a page, at most as many as there are places, and
// returns how much of the page it has dealt with. An entry that runs here is
// skipped: a handler that outlives its heartbeats is not run beside itself.
func (s *subscription) reclaim(ctx context.Context, page []redis.XPendingExt, places int) (seen int, err error) {
	args := []any{s.group, s.consumer, s.timing.Idle.Milliseconds()}
	wanted := 0
	for _, p := range page {
		if wanted == places {
			break
		}
		seen++
		if !s.owned.has(p.ID) {
			args = append(args, p.ID)
			wanted++
		}
	}
	if wanted == 0 {
		return seen, nil
	}
	// Not cancelled: what it has claimed must be known here, to be handed back.
	taken, err := claimScript.Run(context.WithoutCancel(ctx), s.commands, []string{s.stream}, args...).Slice()
	if err != nil {
		return 0, fmt.Errorf("claim abandoned entries: %w", err)
	}
	s.metrics.reclaimed.WithLabelValues(s.stream).Add(float64(len(taken)))
	entries := make([]*entry, len(taken))
	for i, one := range taken {
		if entries[i], err = claimed(one); err != nil {
			return 0, err
		}
	}
	s.reclaimed.take(len(entries)) // there are as many; see above
	s.accept(ctx, entries, s.reclaimed)
	return seen, nil
}

// claimed reads one entry of what claim.lua returns.
func claimed(one any) (*entry, error) {
	parts, _ := one.([]any)
	if len(parts) != 3 {
		return nil, fmt.Errorf("claim abandoned entries: unexpected answer %T", one)
	}
	id, _ := parts[0].(string)
	count, _ := parts[1].(int64)
	texts, _ := parts[2].([]any)
	e := &entry{id: id, attempt: int(count)}
	for pair := range slices.Chunk(texts, 2) {
		name, _ := pair[0].(string)
		value, ok := pair[len(pair)-1].(string)
		if ok && len(pair) == 2 {
			e.fields = append(e.fields, field{name, value})
		}
	}
	return e, nil
}
