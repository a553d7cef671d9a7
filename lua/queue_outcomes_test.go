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
		unloadedCase("draw_page", func(ctx context.Context, w *world) error {
			_, err := w.Drawn(ctx, w.show.ID)
			return err
		}),
	}
}
