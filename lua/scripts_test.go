package lua

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"foyer/domain"
	"foyer/internal/testenv"
)

//go:generate go test -run TestKeysDocument -update .
var update = flag.Bool("update", false, "write docs/redis-keys.md anew")

// docs/redis-keys.md is what an operator reads beside redis-cli; it must not lie.
func TestKeysDocument(t *testing.T) {
	t.Parallel()
	const path = "../docs/redis-keys.md"
	want := keysDocument(loadScripts())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go generate ./lua")
}

// On a cluster a script may touch one slot only: what it names it must declare.
func TestScriptsDeclareTheirKeysAndStaySmall(t *testing.T) {
	t.Parallel()
	used := regexp.MustCompile(`key\.(\w+)`)
	for name, s := range loadScripts() {
		text := readFile(name)
		require.LessOrEqual(t, strings.Count(text, "\n"), 60, "%s.lua is too long", name)
		for _, m := range used.FindAllStringSubmatch(text, -1) {
			require.Contains(t, s.keys(), m[1], "%s.lua uses a key that its header does not name", name)
		}
		require.True(t, slices.Contains(s.returns, "OK"), "%s.lua documents no OK", name)
		header := parseHeader(text)
		for _, part := range []string{"", "USES", "READS", "WRITES", "ARGV", "RETURNS"} {
			require.Contains(t, header, part, "%s.lua lacks a part of its header", name)
		}
	}
}

func TestKeyNamesCarryTheHashTag(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"sessions:{a}:waiting", "show:{a}"}, keyNames([]string{"waiting", "show"}, "a"))
	require.Equal(t, "sold-out:{a}", SoldOutKey("a"))
}

// outcomeCase brings one script to one of its results.
type outcomeCase struct {
	script, code string
	play         func(ctx context.Context, w *world) (any, error)
}

// Every result that a header names is reached here, on both servers; both must tell
// the same story word for word.
func TestEveryResultOfEveryScript(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for _, c := range outcomeCases() {
		reached[c.script+" "+c.code] = true
		t.Run(c.script+"/"+c.code, func(t *testing.T) {
			t.Parallel()
			id := testenv.ShowID(t)
			var stories []string
			for _, rdb := range []*redis.Client{testenv.Redis(t), embedded(t)} {
				w := unloaded(t, rdb, func(s *domain.Show) { s.ID = id })
				w.record()
				value, err := c.play(t.Context(), w)
				require.True(t, w.log.seen[c.script+" "+c.code], "answered %v instead; error %v", w.log.seen, err)
				stories = append(stories, strings.Join(w.log.lines, "\n")+timeless(fmt.Sprintf("\n%+v\n%v", value, err)))
			}
			require.Equal(t, stories[0], stories[1])
		})
	}
	for name, s := range loadScripts() {
		for _, code := range s.returns {
			require.True(t, reached[name+" "+code], "no case for %s of %s", code, name)
		}
	}
}

func outcomeCases() []outcomeCase {
	return slices.Concat(showOutcomes(), admissionOutcomes(), holdOutcomes(), swapOutcomes(), bookingOutcomes(), recoveryOutcomes(), revocationOutcomes(), otherOutcomes(), queueOutcomes())
}

// loaded plays on a show that is in Redis, full of the usual people: in is inside,
// turn has a turn, late waits.
func loaded(play func(ctx context.Context, w *world) (any, error)) func(context.Context, *world) (any, error) {
	return func(ctx context.Context, w *world) (any, error) {
		if err := w.Configure(ctx, w.show); err != nil {
			return nil, err
		}
		w.enter("in")
		w.join("turn")
		w.join("late")
		return play(ctx, w)
	}
}

// missing plays on a show that is not in Redis.
func missing(script string, play func(ctx context.Context, w *world) error) outcomeCase {
	return outcomeCase{script, "NOT_LOADED", func(ctx context.Context, w *world) (any, error) { return nil, play(ctx, w) }}
}

func showOutcomes() []outcomeCase {
	return []outcomeCase{
		{"show_configure", "NOT_LOADED", func(ctx context.Context, w *world) (any, error) { return nil, w.Configure(ctx, w.show) }},
		{"show_configure", "STALE", loaded(func(ctx context.Context, w *world) (any, error) { return nil, w.Configure(ctx, w.show) })},
		{"show_configure", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			w.change(func(s *domain.Show) { s.Queue.MaxActive = 77 })
			return w.stats(), nil
		})},
		{"show_restore", "OK", func(ctx context.Context, w *world) (any, error) {
			restored, err := w.Restore(ctx, w.show, []domain.SoldSeat{{SeatID: "A-1-1", BookingID: "b1", RequestID: "r1"}},
				domain.Booking{BookingID: "b2", HoldID: "h2", RequestID: "r2", Seats: []domain.SeatID{"A-1-1", "A-1-2"}},
				domain.Booking{BookingID: "b3", HoldID: "h3", RequestID: "r2", Seats: []domain.SeatID{"A-1-2", "A-1-3"}})
			return []any{restored, w.stats()}, err
		}},
		{"show_restore", "LOADED", loaded(func(ctx context.Context, w *world) (any, error) { return w.Restore(ctx, w.show, nil) })},
		{"show_stats", "OK", loaded(func(ctx context.Context, w *world) (any, error) { return w.Stats(ctx, w.show.ID) })},
		{"show_due", "OK", loaded(func(ctx context.Context, w *world) (any, error) { return w.DueTick(ctx, w.show.ID, time.Hour) })},
		missing("show_stats", func(ctx context.Context, w *world) error { _, err := w.Stats(ctx, w.show.ID); return err }),
		missing("show_due", func(ctx context.Context, w *world) error { _, err := w.DueTick(ctx, w.show.ID, time.Hour); return err }),
	}
}

// joinByAnotherSeed joins by a seed that is not the show's, alone and beside others.
func joinByAnotherSeed(ctx context.Context, w *world) (any, error) {
	w.change(func(s *domain.Show) {
		before := time.Now().Add(-time.Hour)
		s.PrequeueAt, s.OpensAt = &before, time.Now().Add(time.Hour)
	})
	request := JoinRequest{ShowID: w.show.ID, RequestID: "new", DrawScore: 5, DrawMark: domain.DrawMark("another")}
	_, _, err := w.Join(ctx, request)
	if !errors.Is(err, domain.ErrDrawChanged) {
		return nil, fmt.Errorf("drawn by another seed: %w", err)
	}
	outcomes, err := w.joinAll(ctx, w.show.ID, []JoinRequest{
		request, {RequestID: "right", DrawScore: 6, DrawMark: domain.DrawMark(w.show.DrawSeed)}, {RequestID: "unmarked", DrawScore: 7},
	})
	if err != nil {
		return nil, err
	}
	return []any{outcomes[0].err, outcomes[1].value.place.Status, outcomes[2].value.created}, outcomes[1].err
}

func admissionOutcomes() []outcomeCase {
	join := func(ctx context.Context, w *world) (any, error) {
		place, created, err := w.Join(ctx, JoinRequest{ShowID: w.show.ID, RequestID: "new", DrawScore: 5})
		return []any{place.Status, place.Rank, place.Score, created}, err
	}
	claim := func(who domain.RequestID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) {
			place, err := w.Claim(ctx, w.show.ID, who)
			return []any{place.Status, place.Rank}, err
		}
	}
	return []outcomeCase{
		{"admission_join", "OK", loaded(join)},
		{"admission_join", "USED_UP", loaded(func(ctx context.Context, w *world) (any, error) {
			w.change(func(s *domain.Show) { s.Queue.Lanes = []domain.Lane{{Name: "fans", Weight: 2}} })
			code := JoinRequest{ShowID: w.show.ID, RequestID: "fan", Lane: 1, CodeID: "c", CodeUses: 1}
			if _, _, err := w.Join(ctx, code); err != nil {
				return nil, err
			}
			code.RequestID = "another"
			place, _, err := w.Join(ctx, code)
			return place, err
		})},
		{"admission_join", "NOT_OPEN", loaded(func(ctx context.Context, w *world) (any, error) {
			w.change(func(s *domain.Show) { s.OpensAt = time.Now().Add(time.Hour) })
			return join(ctx, w)
		})},
		{"admission_join", "OTHER_DRAW", loaded(joinByAnotherSeed)},
		{"admission_join", "CLOSED", loaded(func(ctx context.Context, w *world) (any, error) {
			w.change(func(s *domain.Show) { s.Closed = true })
			return join(ctx, w)
		})},
		{"admission_join", "SOLD_OUT", loaded(func(ctx context.Context, w *world) (any, error) {
			w.change(func(s *domain.Show) { s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: 1} })
			w.buy("in", "b1", "A-1-1")
			return join(ctx, w)
		})},
		{"admission_place", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			places, found, err := w.Places(ctx, []PlaceKey{{w.show.ID, "late"}, {w.show.ID, "in"}, {w.show.ID, "turn"}, {w.show.ID, "nobody"}})
			return []any{places[0].Rank, places[1].Status, places[2].Status, found}, err
		})},
		{"admission_touch", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			return nil, w.Touch(ctx, w.show.ID, []domain.RequestID{"late", "in", "nobody"})
		})},
		{"admission_claim", "OK", loaded(claim("turn"))},
		{"admission_claim", "NOT_ADMITTED", loaded(claim("late"))},
		{"admission_claim", "NOT_JOINED", loaded(claim("nobody"))},
		{"admission_leave", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			w.mustHold("in", "h1", "A-1-1")
			return w.Leave(ctx, w.show.ID, "in")
		})},
		{"admission_admit", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			w.leave("in")
			result, err := w.Admit(ctx, w.show.ID, AdmitOptions{})
			return []any{len(result.Admitted), result.Expired, result.Stats, result.More}, err
		})},
		{"admission_knots", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			knots, stats, err := w.Knots(ctx, w.show.ID)
			return []any{knots, stats}, err
		})},
		missing("admission_join", func(ctx context.Context, w *world) error { return w.joinError("new") }),
		missing("admission_place", func(ctx context.Context, w *world) error { _, err := w.Place(ctx, w.show.ID, "a"); return err }),
		missing("admission_claim", func(ctx context.Context, w *world) error { _, err := w.Claim(ctx, w.show.ID, "a"); return err }),
		missing("admission_leave", func(ctx context.Context, w *world) error { _, err := w.Leave(ctx, w.show.ID, "a"); return err }),
		missing("admission_admit", func(ctx context.Context, w *world) error {
			_, err := w.Admit(ctx, w.show.ID, AdmitOptions{})
			return err
		}),
		missing("admission_knots", func(ctx context.Context, w *world) error { _, _, err := w.Knots(ctx, w.show.ID); return err }),
	}
}

// holding plays with in holding A-1-1 and A-1-2 as h1, and other holding A-2-1 as h2.
func holding(play func(ctx context.Context, w *world) (any, error)) func(context.Context, *world) (any, error) {
	return loaded(func(ctx context.Context, w *world) (any, error) {
		w.claim("turn")
		w.mustHold("in", "h1", "A-1-1", "A-1-2")
		w.mustHold("turn", "h2", "A-2-1")
		return play(ctx, w)
	})
}

// after changes the show before it plays.
func after(edit func(*domain.Show), play func(ctx context.Context, w *world) (any, error)) func(context.Context, *world) (any, error) {
	return holding(func(ctx context.Context, w *world) (any, error) {
		w.change(edit)
		return play(ctx, w)
	})
}

// outlived plays for somebody whose session is over while their hold "long" lives.
func outlived(play func(ctx context.Context, w *world) (any, error)) func(context.Context, *world) (any, error) {
	return holding(func(ctx context.Context, w *world) (any, error) {
		w.change(func(s *domain.Show) { s.Seating.HoldSeconds = 2 * s.Queue.SessionSeconds })
		w.mustHold("in", "long", "A-2-5")
		w.travel(w.show.Queue.Session())
		return play(ctx, w)
	})
}

func closing(s *domain.Show)   { s.Closed = true }
func reopening(s *domain.Show) { s.OpensAt = time.Now().Add(time.Hour) }

func holdOutcomes() []outcomeCase {
	hold := func(who domain.RequestID, candidates ...[]domain.SeatID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) {
			return w.Hold(ctx, HoldRequest{ShowID: w.show.ID, RequestID: who, HoldID: "h3", Candidates: candidates})
		}
	}
	release := func(who domain.RequestID, id domain.HoldID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) {
			seats, version, err := w.ReleaseHold(ctx, w.show.ID, who, id)
			return []any{seats, version}, err
		}
	}
	free := []domain.SeatID{"A-2-4", "A-2-5"}
	return []outcomeCase{
		{"hold_take", "OK", holding(hold("in", []domain.SeatID{"A-1-1", "A-1-3"}, free))},
		{"hold_take", "CLOSED", after(closing, hold("in", free))},
		{"hold_take", "NOT_OPEN", after(reopening, hold("in", free))},
		{"hold_take", "NOT_ADMITTED", holding(hold("late", free))},
		{"hold_take", "SOLD_OUT", holding(func(ctx context.Context, w *world) (any, error) {
			w.change(func(s *domain.Show) { s.Seating.Sections[0] = domain.Section{Name: "A", Rows: 1, SeatsPerRow: 2} })
			_, err := w.CompleteBooking(ctx, w.booking("late", "none", "b1", "A-1-1", "A-1-2"))
			require.NoError(w.t, err)
			return hold("in", free)(ctx, w)
		})},
		{"hold_take", "LIMIT", holding(hold("in", []domain.SeatID{"A-2-3", "A-2-4", "A-2-5"}))},
		{"hold_take", "CONFLICT", holding(hold("in", []domain.SeatID{"A-2-1", "A-2-2"}))},
		{"hold_take", "NO_BLOCK", holding(hold("in", []domain.SeatID{"A-2-1"}, []domain.SeatID{"A-1-1"}))},
		missing("hold_take", func(ctx context.Context, w *world) error { _, err := w.hold("a", "h", "A-1-1"); return err }),
		{"hold_release", "OK", holding(release("in", "h1"))},
		{"hold_release", "HOLD_NOT_FOUND", holding(release("in", "h2"))},
		{"hold_release", "IN_PROGRESS", holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b1")
			require.NoError(w.t, err)
			return release("in", "h1")(ctx, w)
		})},
		missing("hold_release", func(ctx context.Context, w *world) error {
			_, _, err := w.ReleaseHold(ctx, w.show.ID, "a", "h")
			return err
		}),
		{"hold_list", "OK", holding(func(ctx context.Context, w *world) (any, error) { return w.Holds(ctx, w.show.ID, "in") })},
		missing("hold_list", func(ctx context.Context, w *world) error { _, err := w.Holds(ctx, w.show.ID, "a"); return err }),
		{"hold_sweep", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			w.travel(time.Minute)
			freed, version, more, err := w.SweepHolds(ctx, w.show.ID, 1)
			return []any{len(freed) > 0, version, more}, err
		})},
		missing("hold_sweep", func(ctx context.Context, w *world) error { _, _, _, err := w.SweepHolds(ctx, w.show.ID, 1); return err }),
		{"seats_page", "OK", holding(func(ctx context.Context, w *world) (any, error) { return w.Seats(ctx, w.show.ID, 0, "in") })},
		{"seats_delta", "OK", holding(func(ctx context.Context, w *world) (any, error) { return w.Seats(ctx, w.show.ID, 2, "in") })},
		missing("seats_page", func(ctx context.Context, w *world) error { _, err := w.Seats(ctx, w.show.ID, 0, ""); return err }),
		missing("seats_delta", func(ctx context.Context, w *world) error { _, err := w.Seats(ctx, w.show.ID, 1, ""); return err }),
	}
}

func swapOutcomes() []outcomeCase {
	swap := func(who domain.RequestID, id domain.HoldID, seats ...domain.SeatID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) { return w.SwapHold(ctx, w.show.ID, who, id, seats) }
	}
	extend := func(who domain.RequestID, id domain.HoldID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) { return w.ExtendHold(ctx, w.show.ID, who, id) }
	}
	lapsed := func(play func(ctx context.Context, w *world) (any, error)) func(context.Context, *world) (any, error) {
		return holding(func(ctx context.Context, w *world) (any, error) {
			w.travel(time.Minute)
			return play(ctx, w)
		})
	}
	begun := func(play func(ctx context.Context, w *world) (any, error)) func(context.Context, *world) (any, error) {
		return holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b1")
			require.NoError(w.t, err)
			return play(ctx, w)
		})
	}
	return []outcomeCase{
		{"hold_swap", "OK", holding(swap("in", "h1", "A-1-2", "A-1-3", "A-1-4"))},
		{"hold_swap", "CLOSED", after(closing, swap("in", "h1", "A-1-3"))},
		{"hold_swap", "NOT_OPEN", after(reopening, swap("in", "h1", "A-1-3"))},
		{"hold_swap", "NOT_ADMITTED", outlived(swap("in", "long", "A-2-4"))},
		{"hold_swap", "HOLD_NOT_FOUND", holding(swap("in", "h2", "A-1-3"))},
		{"hold_swap", "HOLD_EXPIRED", lapsed(swap("in", "h1", "A-1-3"))},
		{"hold_swap", "IN_PROGRESS", begun(swap("in", "h1", "A-1-3"))},
		{"hold_swap", "LIMIT", holding(swap("in", "h1", "A-1-1", "A-1-2", "A-1-3", "A-1-4", "A-1-5"))},
		{"hold_swap", "CONFLICT", holding(swap("in", "h1", "A-1-1", "A-2-1"))},
		missing("hold_swap", func(ctx context.Context, w *world) error { _, err := swap("a", "h", "A-1-1")(ctx, w); return err }),
		{"hold_extend", "OK", holding(extend("in", "h1"))},
		{"hold_extend", "CLOSED", after(closing, extend("in", "h1"))},
		{"hold_extend", "NOT_OPEN", after(reopening, extend("in", "h1"))},
		{"hold_extend", "NOT_ADMITTED", outlived(extend("in", "long"))},
		{"hold_extend", "HOLD_NOT_FOUND", holding(extend("in", "h2"))},
		{"hold_extend", "HOLD_EXPIRED", lapsed(extend("in", "h1"))},
		{"hold_extend", "IN_PROGRESS", begun(extend("in", "h1"))},
		missing("hold_extend", func(ctx context.Context, w *world) error { _, err := extend("a", "h")(ctx, w); return err }),
	}
}

func bookingOutcomes() []outcomeCase {
	begin := func(who domain.RequestID, id domain.HoldID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) { return w.begin(who, id, "b1") }
	}
	abort := func(id domain.HoldID, booking domain.BookingID) func(ctx context.Context, w *world) (any, error) {
		return func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b1")
			require.NoError(w.t, err)
			return nil, w.AbortBooking(ctx, w.show.ID, id, booking)
		}
	}
	booking := func(w *world) domain.Booking { return w.booking("in", "h1", "b1", "A-1-1", "A-1-2") }
	return []outcomeCase{
		{"booking_begin", "OK", holding(begin("in", "h1"))},
		{"booking_begin", "IN_PROGRESS", holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b0")
			require.NoError(w.t, err)
			return w.begin("in", "h1", "b1")
		})},
		{"booking_begin", "CLOSED", after(closing, begin("in", "h1"))},
		{"booking_begin", "NOT_OPEN", after(reopening, begin("in", "h1"))},
		{"booking_begin", "NOT_ADMITTED", outlived(begin("in", "long"))},
		{"booking_begin", "HOLD_NOT_FOUND", holding(begin("in", "h2"))},
		{"booking_begin", "HOLD_EXPIRED", holding(func(ctx context.Context, w *world) (any, error) {
			w.travel(time.Minute)
			return w.begin("in", "h1", "b1")
		})},
		{"booking_published", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b1")
			require.NoError(w.t, err)
			require.NoError(w.t, w.BookingPublished(ctx, w.show.ID, "h1", "b1"))
			return w.begin("in", "h1", "b2")
		})},
		{"booking_abort", "OK", holding(abort("h1", "b1"))},
		{"booking_abort", "HOLD_NOT_FOUND", holding(abort("h1", "b9"))},
		{"booking_abort", "IN_PROGRESS", holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b1")
			require.NoError(w.t, err)
			require.NoError(w.t, w.BookingPublished(ctx, w.show.ID, "h1", "b1"))
			return nil, w.AbortBooking(ctx, w.show.ID, "h1", "b1")
		})},
		{"booking_complete", "OK", holding(func(ctx context.Context, w *world) (any, error) { return w.CompleteBooking(ctx, booking(w)) })},
		{"booking_reject", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			return w.RejectBooking(ctx, booking(w), []domain.SoldSeat{{SeatID: "A-1-2", BookingID: "b7", RequestID: "r7"}})
		})},
		{"booking_cancel", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.CompleteBooking(ctx, booking(w))
			require.NoError(w.t, err)
			return w.CancelBooking(ctx, booking(w))
		})},
		{"booking_stuck", "OK", holding(func(ctx context.Context, w *world) (any, error) {
			_, err := w.begin("in", "h1", "b1")
			require.NoError(w.t, err)
			w.travel(time.Minute)
			return w.StuckBookings(ctx, w.show.ID, time.Minute, 10)
		})},
		missing("booking_begin", func(ctx context.Context, w *world) error { _, err := w.begin("a", "h", "b"); return err }),
		missing("booking_published", func(ctx context.Context, w *world) error { return w.BookingPublished(ctx, w.show.ID, "h", "b") }),
		missing("booking_abort", func(ctx context.Context, w *world) error { return w.AbortBooking(ctx, w.show.ID, "h", "b") }),
		missing("booking_complete", func(ctx context.Context, w *world) error { _, err := w.CompleteBooking(ctx, booking(w)); return err }),
		missing("booking_reject", func(ctx context.Context, w *world) error { _, err := w.RejectBooking(ctx, booking(w), nil); return err }),
		missing("booking_cancel", func(ctx context.Context, w *world) error { _, err := w.CancelBooking(ctx, booking(w)); return err }),
		missing("booking_stuck", func(ctx context.Context, w *world) error {
			_, err := w.StuckBookings(ctx, w.show.ID, 0, 1)
			return err
		}),
	}
}

func otherOutcomes() []outcomeCase {
	return []outcomeCase{
		{"ticket_issue", "OK", func(ctx context.Context, w *world) (any, error) {
			return nil, w.IssueTicket(ctx, "ticket-"+string(w.show.ID), []byte("payload"), time.Minute)
		}},
		{"ticket_redeem", "OK", func(ctx context.Context, w *world) (any, error) {
			ticket := "ticket-" + string(w.show.ID)
			require.NoError(w.t, w.IssueTicket(ctx, ticket, []byte("pay:load\x00"), time.Minute))
			payload, ok, err := w.RedeemTicket(ctx, ticket)
			return []any{string(payload), ok}, err
		}},
		{"ticket_redeem", "NO_TICKET", func(ctx context.Context, w *world) (any, error) {
			_, ok, err := w.RedeemTicket(ctx, "ticket-"+string(w.show.ID))
			return ok, err
		}},
		{"chat_note", "OK", func(ctx context.Context, w *world) (any, error) {
			return nil, w.NoteRead(ctx, domain.ReadMark{RoomID: "r", PersonID: domain.PersonID(w.show.ID), UpTo: 3})
		}},
		{"chat_notes", "OK", func(ctx context.Context, w *world) (any, error) {
			person := domain.PersonID(w.show.ID)
			require.NoError(w.t, w.NoteRead(ctx, domain.ReadMark{RoomID: "r2", PersonID: person, UpTo: 3, Epoch: 1}))
			return w.NotedReads(ctx, person, []domain.RoomID{"r1", "r2"})
		}},
	}
}
