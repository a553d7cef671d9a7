package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"

	"foyer/domain"
)

// devTokenLife is how long a token of dev mode is good for.
const devTokenLife = 12 * time.Hour

// devToken makes an identity token for whoever asks to be anybody. It exists in
// dev mode only.
func (s *Server) devToken(c echo.Context) error {
	var body struct {
		Sub   string   `json:"sub"`
		Name  string   `json:"name"`
		Roles []string `json:"roles"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	if !domain.PersonID(body.Sub).Valid() {
		return invalid("sub", fmt.Sprintf("must be text of 1 to %d characters", domain.MaxPersonIDSize))
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{Subject: body.Sub, ExpiresAt: jwt.NewNumericDate(time.Now().Add(devTokenLife))},
		Name:             body.Name, Roles: body.Roles,
	}).SignedString(s.config.JWTSecret)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"token": token})
}
