package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"foyer/internal/config"
)

// foyer runs one command line as the binary would.
func foyer(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, problems strings.Builder
	status = run(t.Context(), args, &out, &problems)
	return status, out.String(), problems.String()
}

func TestHelpListsEverySettingWithItsDefault(t *testing.T) {
	status, help, _ := foyer(t, "help")
	require.Equal(t, exitOK, status)
	flags := reflect.TypeFor[config.Flags]()
	for i := range flags.NumField() {
		tag := flags.Field(i).Tag
		require.Contains(t, help, tag.Get("env"))
		require.Contains(t, help, tag.Get("default"))
	}
	for _, command := range []string{"dev", "api", "worker", "migrate", "token", "version"} {
		require.Contains(t, help, "\n  "+command)
	}
}

func TestWhatIsWrongIsSaidAndIsAStatus(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown command": {"dance"},
		"unknown flag":    {"dev", "--dance"},
		"bad setting":     {"dev", "--tick", "soon"},
		"missing all":     {"api"},
		"bad crowd":       {"dev", "--crowd", "-1"},
		"bad limit":       {"dev", "--rate-limit", "0"},
		"no limits":       {"show", "limits", "s"},
		"unsure reset":    {"show", "reset", "s"},
		"too many":        {"show", "admit", "s", "10001"},
		"nobody to ask":   {"explain", "s", "ada"},
		"no such stream":  {"dead-letters", "list", "--stream", "commands.bookings"},
		"nor to requeue":  {"dead-letters", "requeue", "commands.bookings", "1-1"},
		"nor to show":     {"dead-letters", "show", "bookings", "1-1"},
		"nobody's token":  {"token", "--jwt-secret", "s", "--sub", ""},
		"token of bytes":  {"token", "--jwt-secret", "s", "--sub", "\xff"},
		"no share":        {"simulate", "--people", "9", "--lane", "a:1:NaN"},
		"endless weight":  {"simulate", "--people", "9", "--seats-per-buyer", "1,Inf"},
		"endless weights": {"simulate", "--people", "9", "--seats-per-buyer", "1e308,1e308"},
	} {
		status, _, stderr := foyer(t, args...)
		require.Equal(t, exitUsage, status, name)
		require.True(t, strings.HasPrefix(stderr, "foyer: "), name)
	}
}

func TestTokenIsWhatTheApiAccepts(t *testing.T) {
	t.Setenv("FOYER_JWT_SECRET", "a secret")
	status, out, _ := foyer(t, "token", "--sub", "ada", "--name", "Ada", "--roles", "operator", "--ttl", "1m")
	require.Equal(t, exitOK, status)
	token, err := jwt.Parse(strings.TrimSpace(out), func(*jwt.Token) (any, error) { return []byte("a secret"), nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired())
	require.NoError(t, err)
	claims, ok := token.Claims.(jwt.MapClaims)
	require.True(t, ok)
	require.Equal(t, "ada", claims["sub"])
	require.Equal(t, []any{"operator"}, claims["roles"])

	t.Setenv("FOYER_JWT_SECRET", "")
	status, _, stderr := foyer(t, "token", "--sub", "ada")
	require.Equal(t, exitUsage, status)
	require.Contains(t, stderr, "FOYER_JWT_SECRET")
}

func TestVersionIsPrinted(t *testing.T) {
	status, out, _ := foyer(t, "version")
	require.Equal(t, exitOK, status)
	require.True(t, strings.HasPrefix(out, "foyer "))
}
