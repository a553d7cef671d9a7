package api

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"foyer/domain"
	"foyer/pass"
)

// passSigner signs admission passes. Every API process has the same key.
type passSigner struct{ *pass.Signer }

// newPassSigner takes an Ed25519 seed of 32 bytes.
func newPassSigner(seed []byte) (*passSigner, error) {
	signer, err := pass.NewSigner(seed)
	if err != nil {
		return nil, err
	}
	return &passSigner{signer}, nil
}

// sign returns the pass of an active place. Asked again for the same session it
// returns the same bytes.
func (s *passSigner) sign(place domain.Place, person domain.PersonID) (string, error) {
	if place.Status != domain.StatusActive || place.ExpiresAt == nil {
		return "", errors.New("only an active place has a pass")
	}
	return s.Sign(string(person), string(place.ShowID), string(place.RequestID), place.Epoch, *place.ExpiresAt)
}

// passKeys publishes the key that checks passes.
func (s *Server) passKeys(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.JSON(http.StatusOK, s.pass.KeySet())
}
