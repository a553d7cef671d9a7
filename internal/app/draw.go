package app

import (
	"context"

	"foyer/domain"
	"foyer/internal/verify"
	"foyer/lua"
)

// VerifyDraw recomputes a show's draw from its seed and holds it against the line in
// Redis; it changes nothing.
func (t *Tools) VerifyDraw(ctx context.Context, id domain.ShowID) (verify.DrawReport, error) {
	show, err := t.app.store.Show(ctx, id)
	if err != nil {
		return verify.DrawReport{}, err
	}
	// Without a loader: looking must not change what is looked at.
	drawn, err := lua.New(t.app.commands).Drawn(ctx, id)
	if err != nil {
		return verify.DrawReport{}, err
	}
	return verify.Draw(show, drawn), nil
}
