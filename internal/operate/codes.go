package operate

import (
	"context"

	"foyer/domain"
)

// CodeOrder says which join codes an operator wants.
type CodeOrder struct {
	Count int             // how many, each with an id of its own; from 1 to domain.MaxCodesAtOnce
	Code  domain.JoinCode // what each of them says; its id and show are filled in
}

// MintCodes makes join codes for a lane of a show and writes down that it did, not which.
// It fails with *domain.InvalidError when they could give nobody a place. Codes cannot be
// taken back, but by letting them run out.
func (d *Desk) MintCodes(ctx context.Context, who domain.PersonID, id domain.ShowID, codes domain.JoinCodes, order CodeOrder) ([]string, error) {
	show, err := d.Store.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := order.Code.Validate(&show); err != nil {
		return nil, err
	}
	action := newAction(who, id, domain.ActionMintCodes, map[string]any{
		"lane": order.Code.Lane, "count": order.Count, "uses": order.Code.Uses, "until": order.Code.Until, "person": order.Code.Person,
	})
	if err := d.Store.BeginAction(ctx, action); err != nil {
		return nil, err
	}
	minted := make([]string, order.Count)
	for i := range minted {
		code := order.Code
		code.ID, code.ShowID = domain.NewCodeID(), id
		if minted[i], err = codes.Mint(code); err != nil {
			return nil, err
		}
	}
	d.end(ctx, action, map[string]int{"minted": len(minted)})
	return minted, nil
}
