package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

// acknowledge writes acknowledgements in batches until there will be no more.
// When ctx ends it gives up on a Redis that does not answer.
func (s *subscription) acknowledge(ctx context.Context) {
	for done := s.roster.collect(); len(done) > 0; done = s.roster.collect() {
		for batch := range slices.Chunk(done, ackBatch) {
			if s.writeAcks(ctx, batch) {
				s.owned.remove(batch...)
			} // otherwise they come back to somebody
			for _, e := range batch {
				e.depart()
			}
		}
	}
}

func (s *subscription) writeAcks(ctx context.Context, batch []*entry) (written bool) {
	args := make([]any, 3, 3+len(batch))
	args[0], args[1], args[2] = "xack", s.stream, s.group
	for _, e := range batch {
		args = append(args, e.id)
	}
	for n := 1; ; n++ {
		err := s.commands.Do(ctx, args...).Err()
		if err == nil {
			s.counts.acknowledged(batch)
			return true
		}
		if n == 1 {
			s.log.WarnContext(ctx, "acknowledging failed, trying again", "error", err)
		}
		if pause(ctx, min(backoff(errorPause, n), maxErrPause)) != nil {
			return false
		}
	}
}

// watch ends the contexts of handlers that have run for as long as they may. It
// looks now and then: a timer for each of thousands would cost more than most of
// them do. So such an end may be late by an eighth of the timeout.
func (s *subscription) watch(ctx context.Context) {
	tick := time.NewTicker(max(s.limits.Timeout/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		for _, e := range s.owned.all() {
			if e.overdue(now, s.limits.Timeout) {
				e.interrupt(errHandlerTimeout, false)
			}
		}
	}
}

// renew keeps what is owned from being taken, whether it runs, waits for another
// try or for its acknowledgement, until ctx ends.
func (s *subscription) renew(ctx context.Context) {
	tick := time.NewTicker(s.timing.Idle / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		// A handler that ignores the end of its context is left to somebody else.
		living := slices.DeleteFunc(s.owned.all(), func(e *entry) bool { return e.overdue(now, immortal*s.limits.Timeout) })
		for batch := range slices.Chunk(living, ownBatch) {
			s.renewBatch(ctx, batch)
		}
	}
}

func (s *subscription) renewBatch(ctx context.Context, batch []*entry) {
	owned, err := s.own(ctx, 0, batch, false)
	if err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "renewing ownership failed", "error", err)
		}
		return
	}
	for i, e := range batch {
		// An entry that is merely gone, because the stream was lost, is finished:
		// nobody else has it.
		if owned[i] == entryAnother {
			s.log.WarnContext(ctx, "another worker took a command over", "command_id", e.commandID(), "entry_id", e.id)
			e.interrupt(errLostOwnership, true)
		}
	}
}

// own runs own.lua on entries, with their delivery counts or without.
func (s *subscription) own(ctx context.Context, idle time.Duration, entries []*entry, counts bool) ([]int64, error) {
	args := make([]any, 0, 3+2*len(entries))
	args = append(args, s.group, s.consumer, idle.Milliseconds())
	for _, e := range entries {
		count := -1
		if counts {
			count = e.deliveries()
			if idle == 0 {
				count = e.attempt // the attempt that is about to begin
			}
		}
		args = append(args, e.id, count)
	}
	owned, err := ownScript.Run(ctx, s.commands, []string{s.stream}, args...).Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("check ownership: %w", err)
	}
	if len(owned) != len(entries) {
		return nil, fmt.Errorf("check ownership: %d answers for %d entries", len(owned), len(entries))
	}
	return owned, nil
}

// handBack leaves entries to whoever sweeps next, and asks the others to sweep
// now.
func (s *subscription) handBack(ctx context.Context, left []*entry) {
	given := 0
	for batch := range slices.Chunk(left, ownBatch) {
		owned, err := s.own(ctx, handedBack, batch, true)
		if err != nil {
			s.log.WarnContext(ctx, "handing commands back failed, others wait until they are idle", "error", err)
			return
		}
		s.owned.remove(batch...)
		for _, result := range owned {
			if result == entryOwned {
				given++
			}
		}
	}
	if given == 0 {
		return
	}
	s.log.InfoContext(ctx, "handed commands back", "count", given)
	err := s.commands.XAdd(ctx, &redis.XAddArgs{
		Stream: s.stream, Values: []any{fieldID, domain.NewID(), fieldType, typeReclaim, fieldVersion, wireVersion},
	}).Err()
	if err != nil {
		s.log.WarnContext(ctx, "nobody was told of the commands handed back", "error", err)
	}
}
