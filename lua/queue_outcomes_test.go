package lua

import (
	"context"

	"foyer/domain"
)

// queueOutcomes are the results of the scripts about draws, operators and turns.
func queueOutcomes() []outcomeCase {
	unloadedCase := func(script string, play func(ctx context.Context, w *world) error) outcomeCase {
		return outcomeCase{script, "NOT_LOADED", func(ctx context.Context, w *world) (any, error) { return nil, play(ctx, w) }}
	}
	return []outcomeCase{
		{"draw_page", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			w.rdb.RPush(ctx, patternOf("draw").with(string(w.show.ID)), "in", "turn", "late")
			drawn, err := w.Drawn(ctx, w.show.ID)
			return []any{drawn.Requests, len(drawn.Waiting), drawn.Waiting["late"] > domain.DrawCeiling, drawn.Unlisted}, err
		})},
		{"admission_extend", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			place, extended, err := w.Extend(ctx, w.show.ID, "turn")
			_, again, _ := w.Extend(ctx, w.show.ID, "turn")
			return []any{place.Status, extended, again}, err
		})},
		{"admission_extend", "NOT_ADMITTED", loaded(func(ctx context.Context, w *world) (any, error) {
			_, extended, err := w.Extend(ctx, w.show.ID, "late")
			return extended, err
		})},
		{"admission_extend", "NOT_JOINED", loaded(func(ctx context.Context, w *world) (any, error) {
			_, extended, err := w.Extend(ctx, w.show.ID, "nobody")
			return extended, err
		})},
		{"show_lapse", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			w.travel(w.show.Queue.Session()) // so that both servers say the same to the millisecond
			_, waits, err := w.NextLapse(ctx, w.show.ID)
			w.leave("late")
			_, stillWaits, _ := w.NextLapse(ctx, w.show.ID)
			return []any{waits, stillWaits}, err
		})},
		{"show_reset", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			ended, done, err := w.Reset(ctx, w.show.ID, 7)
			return []any{ended, done, w.stats().Epoch, w.stats().Waiting, w.stats().Joined}, err
		})},
		{"show_reset", "STALE", loaded(func(ctx context.Context, w *world) (any, error) {
			_, done, err := w.Reset(ctx, w.show.ID, 1)
			return done, err
		})},
		{"place_explain", "OK", loaded(func(ctx context.Context, w *world) (any, error) {
			facts, err := w.Explain(ctx, w.show.ID, "in")
			admitted := int64(0)
			for _, n := range facts.Admissions { // by the second, of which there may have been two
				admitted += n
			}
			return []any{facts.Place.Status, len(facts.Past), facts.Turn, facts.Allowance, admitted}, err
		})},
		unloadedCase("admission_extend", func(ctx context.Context, w *world) error {
			_, _, err := w.Extend(ctx, w.show.ID, "a")
			return err
		}),
		unloadedCase("show_lapse", func(ctx context.Context, w *world) error {
			_, _, err := w.NextLapse(ctx, w.show.ID)
			return err
		}),
		unloadedCase("show_reset", func(ctx context.Context, w *world) error {
			_, _, err := w.Reset(ctx, w.show.ID, 7)
			return err
		}),
		unloadedCase("place_explain", func(ctx context.Context, w *world) error {
			_, err := w.Explain(ctx, w.show.ID, "a")
			return err
		}),
		unloadedCase("draw_page", func(ctx context.Context, w *world) error {
			_, err := w.Drawn(ctx, w.show.ID)
			return err
		}),
	}
}
