package main

import (
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"foyer/domain"
)

// tokenCommand mints an identity token, for trying a deployment out and for
// operators whose shop has no identity provider.
type tokenCommand struct {
	Secret string        `name:"jwt-secret" env:"FOYER_JWT_SECRET" placeholder:"SECRET" help:"Shared secret of HS256 identity tokens."`
	Sub    string        `required:"" placeholder:"PERSON" help:"Subject: whose token it is."`
	Name   string        `placeholder:"NAME" help:"Name shown to others."`
	Roles  []string      `placeholder:"ROLE" help:"Roles, such as operator."`
	TTL    time.Duration `name:"ttl" default:"1h" help:"How long the token is valid."`
}

func (c tokenCommand) Run(out io.Writer) error {
	switch {
	case c.Secret == "":
		return usageError{fmt.Errorf("FOYER_JWT_SECRET is required to mint a token")}
	case c.TTL <= 0:
		return usageError{fmt.Errorf("--ttl must be positive")}
	case !domain.PersonID(c.Sub).Valid():
		return usageError{fmt.Errorf("--sub must be text of 1 to %d characters", domain.MaxPersonIDSize)}
	}
	now := time.Now()
	claims := jwt.MapClaims{"sub": c.Sub, "iat": now.Unix(), "exp": now.Add(c.TTL).Unix()}
	if c.Name != "" {
		claims["name"] = c.Name
	}
	if len(c.Roles) > 0 {
		claims["roles"] = c.Roles
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(c.Secret))
	if err != nil {
		return fmt.Errorf("sign token: %w", err)
	}
	_, err = fmt.Fprintln(out, signed)
	return err
}
