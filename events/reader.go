package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
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
// not cancelled: what Redis has delivered meanwhile would be nobody's.
func (s *subscription) read(ctx context.Context) {
	failures := 0
	for places := s.reserve(ctx); places > 0; places = s.reserve(ctx) {
		entries, err := s.readOnce(context.WithoutCancel(ctx), places)
		for range places - len(entries) {
			s.fresh.leave()
		}
		if err != nil {
			failures++
			s.recover(ctx, err, failures)
			continue
		}
		failures = 0
		s.metrics.read.WithLabelValues(s.stream).Add(float64(len(entries)))
		for _, m := range entries {
			s.accept(ctx, m, 1, s.fresh)
		}
	}
}

// reserve waits for a place and takes what more there is; 0 when ctx has ended.
func (s *subscription) reserve(ctx context.Context) int {
	if ctx.Err() != nil || !s.fresh.enter(ctx) {
		return 0
	}
	places := 1
	for places < maxRead && s.fresh.tryEnter() {
		places++
	}
	return places
}

func (s *subscription) readOnce(ctx context.Context, places int) ([]redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Block+readGrace)
	defer cancel()
	streams, err := s.readers.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: s.group, Consumer: s.consumer, Streams: []string{s.stream, ">"}, Count: int64(places), Block: s.timing.Block,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(streams) == 0 {
		return nil, nil
	}
	return streams[0].Messages, nil
}

// accept starts work on a delivered entry, in a lane that it has a token of.
func (s *subscription) accept(ctx context.Context, m redis.XMessage, attempt int, in lane) {
	e := &entry{id: m.ID, fields: m.Values, attempt: attempt}
	if e.field(fieldType) == typeReclaim {
		in.leave()
		s.sweepNow()
		if s.owned.add(e) {
			select {
			case s.acks <- e:
			case <-ctx.Done(): // handed back
			}
		}
		return
	}
	if attempt > s.limits.Deliveries {
		e.reason = DeadExhausted
		e.firstErr, e.lastErr = errCrashed.Error(), errCrashed.Error()
		e.told = attempt > 2*s.limits.Deliveries // telling of it may be what ends the process
	}
	s.take(ctx, e, in)
}

func (s *subscription) sweepNow() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
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
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.WarnContext(ctx, "looking for abandoned commands failed", "error", err)
			wait = jitter(s.timing.Sweep)
		case more:
			wait = min(morePause, s.timing.Sweep)
		default:
			wait = jitter(s.timing.Sweep)
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
		places := cap(s.reclaimed) - len(s.reclaimed) // only this goroutine enters
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
		s.cursor = "(" + page[seen-1].ID
	}
	return false, nil
}

// reclaim takes over entries of a page, at most as many as there are places, and
// returns how much of the page it has dealt with. An entry that runs here is
// skipped: a handler that outlives its heartbeats is not run beside itself.
func (s *subscription) reclaim(ctx context.Context, page []redis.XPendingExt, places int) (seen int, err error) {
	deliveries := map[string]int64{}
	var ids []string
	for _, p := range page {
		if len(ids) == min(places, maxRead) {
			break
		}
		seen++
		if !s.owned.has(p.ID) {
			ids = append(ids, p.ID)
			deliveries[p.ID] = p.RetryCount
		}
	}
	if len(ids) == 0 {
		return seen, nil
	}
	// Not cancelled: what it has claimed must be known here, to be handed back.
	entries, err := s.commands.XClaim(context.WithoutCancel(ctx), &redis.XClaimArgs{
		Stream: s.stream, Group: s.group, Consumer: s.consumer, MinIdle: s.timing.Idle, Messages: ids,
	}).Result()
	if err != nil {
		return 0, fmt.Errorf("claim abandoned entries: %w", err)
	}
	// Entries that are missing from the answer were taken by another sweep, or
	// are no longer on the stream and so have left the pending list too.
	entries = slices.DeleteFunc(entries, func(m redis.XMessage) bool { return m.ID == "" || m.Values == nil })
	s.metrics.reclaimed.WithLabelValues(s.stream).Add(float64(len(entries)))
	for _, m := range entries {
		_ = s.reclaimed.tryEnter() // there is a place; see above
		s.accept(ctx, m, int(deliveries[m.ID])+1, s.reclaimed)
	}
	return seen, nil
}
