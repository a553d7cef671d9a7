// Package echopass is pass for shops built on Echo: a middleware that lets only
// people through who hold a valid admission pass. It is apart from pass so that
// others need not have Echo.
package echopass

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"foyer/pass"
)

// Require refuses requests without a valid pass with an *echo.HTTPError of status
// 403, or 503 while passes cannot be checked. Its Internal is the reason, for logs.
func Require(verifier *pass.Verifier) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			p, err := verifier.FromRequest(c.Request())
			if err != nil {
				status := pass.Status(err)
				c.Response().Header().Set("Cache-Control", "no-store")
				if status == http.StatusServiceUnavailable {
					c.Response().Header().Set("Retry-After", "2")
				}
				return echo.NewHTTPError(status, pass.Refusal(status)).SetInternal(err)
			}
			c.SetRequest(c.Request().WithContext(pass.NewContext(c.Request().Context(), p)))
			return next(c)
		}
	}
}

// From returns the pass of a request that Require let through.
func From(c echo.Context) (p pass.Pass, ok bool) { return pass.FromContext(c.Request().Context()) }
