package api

import (
	"embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed *.yaml
var specs embed.FS

// The descriptions of the contract; tests hold the server to them.
const (
	openapiSpec  = "openapi.yaml"
	asyncapiSpec = "asyncapi.yaml"
)

func serveSpec(name string) echo.HandlerFunc {
	return func(c echo.Context) error {
		text, err := specs.ReadFile(name)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/yaml", text)
	}
}
