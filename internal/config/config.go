// Package config turns environment variables and flags into one validated
// Config. Every problem is reported at once, by the name of its variable, and a
// secret's value is never part of a problem or of what is printed.
package config

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"foyer/domain"
)

// Role is what a process does; it decides which settings it needs.
type Role string

// The roles of a process.
const (
	RoleDev     Role = "dev" // everything, with embedded servers where none is named
	RoleAPI     Role = "api"
	RoleWorker  Role = "worker"
	RoleMigrate Role = "migrate"
	RoleTool    Role = "tool"    // a command of the operator's, on Redis and SQL
	RoleLetters Role = "letters" // the same, on Redis alone
)

// Flags are the settings as text, with the names, defaults and help that the
// command line shows. A variable that is set but empty means its default.
type Flags struct {
	HTTPAddr         string `env:"FOYER_HTTP_ADDR" default:"127.0.0.1:8080" help:"Listen address; port 0 picks one and prints it."`
	MetricsAddr      string `env:"FOYER_METRICS_ADDR" default:"" placeholder:"HOST:PORT" help:"Where a worker serves /healthz, /readyz and /metrics; empty: nowhere."`
	RedisURL         string `env:"FOYER_REDIS_URL" default:"" placeholder:"URL" help:"redis://, rediss://, redis+sentinel://HOST,HOST/MASTER, or several hosts for a Cluster; empty: embedded, only in dev."`
	DatabaseURL      string `env:"FOYER_DATABASE_URL" default:"" placeholder:"URL" help:"postgres:// or sqlite:PATH; empty: an embedded SQLite file, only in dev."`
	DataDir          string `env:"FOYER_DATA_DIR" default:"" placeholder:"DIR" help:"Where dev keeps its embedded SQLite file and keys; empty: a fresh directory that is removed at the end."`
	JWTSecret        string `env:"FOYER_JWT_SECRET" default:"" placeholder:"SECRET" help:"Shared secret of HS256 identity tokens."`
	JWKS             string `env:"FOYER_JWKS" default:"" placeholder:"FILE|URL" help:"Keys of RS256, ES256 or EdDSA identity tokens."`
	SigningKey       string `env:"FOYER_SIGNING_KEY" default:"" placeholder:"HEX" help:"Key of the admission pass: 64 hex digits, the same for every api process."`
	AllowedOrigins   string `env:"FOYER_ALLOWED_ORIGINS" default:"" placeholder:"ORIGIN,..." help:"Exact origins for sockets and CORS; empty: same origin."`
	Tick             string `env:"FOYER_TICK" default:"1s" help:"Admission backstop interval."`
	Consumers        string `env:"FOYER_CONSUMERS" default:"1" help:"Readers per consumer group in a worker process."`
	Groups           string `env:"FOYER_GROUPS" default:"admission,booking,chat" help:"Which groups a worker process reads."`
	ReclaimIdle      string `env:"FOYER_RECLAIM_IDLE" default:"30s" help:"Silence after which a worker's commands are given to others; the same for every worker. A handler may take longer: a living worker is not silent."`
	CommandRetention string `env:"FOYER_COMMAND_RETENTION" default:"2160h" help:"How long a worker remembers that a command has had its effect; 744h at least, since dead letters can be requeued for 720h."`
	NotifyPartitions string `env:"FOYER_NOTIFY_PARTITIONS" default:"1" help:"Pub/Sub partitions; the same for every process."`
	MaxActiveLimit   string `env:"FOYER_MAX_ACTIVE_LIMIT" default:"1000000" help:"The most that any show's maxActive may be set to."`
	RateLimit        string `env:"FOYER_RATE_LIMIT" default:"1000000" help:"The most that any show's ratePerMinute may be set to."`
	LogLevel         string `env:"FOYER_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat        string `env:"FOYER_LOG_FORMAT" default:"text" help:"text or json."`
}

// Limits of the settings.
const (
	MinTick       = 50 * time.Millisecond
	MaxTick       = time.Minute
	MinReclaim    = time.Second
	MaxReclaim    = 30 * time.Minute
	MaxConsumers  = 256
	MaxPartitions = 64
	MaxLimit      = 1_000_000 // of any show's maxActive and ratePerMinute
)

// Groups that a worker may read.
var knownGroups = []string{"admission", "booking", "chat"}

// Config is a validated set of settings for one role.
type Config struct {
	Role             Role
	HTTPAddr         string
	MetricsAddr      string
	RedisURL         string // empty: embedded
	DatabaseURL      string // empty: embedded
	DataDir          string
	JWTSecret        []byte
	JWKS             string
	SigningKey       []byte // an Ed25519 seed, or nil where the role needs none
	AllowedOrigins   []string
	Tick             time.Duration
	Consumers        int
	Groups           []string
	ReclaimIdle      time.Duration
	CommandRetention time.Duration
	NotifyPartitions int
	MaxActiveLimit   int
	RateLimit        int
	LogLevel         slog.Level
	LogFormat        string
}

// problems gathers what is wrong, by variable.
type problems []error

func (p *problems) add(variable, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", variable, fmt.Sprintf(format, args...)))
}

// Load validates the flags for a role. Its error joins every problem found.
func (f Flags) Load(role Role) (Config, error) {
	var p problems
	c := Config{
		Role: role, RedisURL: f.RedisURL, DatabaseURL: f.DatabaseURL, DataDir: f.DataDir,
		JWTSecret: []byte(f.JWTSecret), JWKS: f.JWKS,
		HTTPAddr:         address(&p, "FOYER_HTTP_ADDR", or(f.HTTPAddr, "127.0.0.1:8080")),
		MetricsAddr:      address(&p, "FOYER_METRICS_ADDR", f.MetricsAddr),
		SigningKey:       signingKey(&p, f.SigningKey),
		AllowedOrigins:   origins(&p, f.AllowedOrigins),
		Tick:             interval(&p, "FOYER_TICK", or(f.Tick, "1s"), MinTick, MaxTick),
		Consumers:        count(&p, "FOYER_CONSUMERS", or(f.Consumers, "1"), MaxConsumers),
		Groups:           groups(&p, or(f.Groups, strings.Join(knownGroups, ","))),
		ReclaimIdle:      interval(&p, "FOYER_RECLAIM_IDLE", or(f.ReclaimIdle, "30s"), MinReclaim, MaxReclaim),
		CommandRetention: interval(&p, "FOYER_COMMAND_RETENTION", or(f.CommandRetention, "2160h"), domain.MinCommandRetention, domain.MaxCommandRetention),
		NotifyPartitions: count(&p, "FOYER_NOTIFY_PARTITIONS", or(f.NotifyPartitions, "1"), MaxPartitions),
		MaxActiveLimit:   count(&p, "FOYER_MAX_ACTIVE_LIMIT", or(f.MaxActiveLimit, "1000000"), MaxLimit),
		RateLimit:        count(&p, "FOYER_RATE_LIMIT", or(f.RateLimit, "1000000"), MaxLimit),
		LogFormat:        oneOf(&p, "FOYER_LOG_FORMAT", or(f.LogFormat, "text"), "text", "json"),
	}
	if err := c.LogLevel.UnmarshalText([]byte(or(f.LogLevel, "info"))); err != nil {
		p.add("FOYER_LOG_LEVEL", "must be debug, info, warn or error")
	}
	scheme(&p, "FOYER_REDIS_URL", f.RedisURL, "redis", "rediss", "redis+sentinel")
	scheme(&p, "FOYER_DATABASE_URL", f.DatabaseURL, "postgres", "postgresql", "sqlite")
	c.require(&p)
	return c, errors.Join(p...)
}

// require says what a role cannot do without. Only dev makes up what is missing.
func (c Config) require(p *problems) {
	if c.Role == RoleDev {
		return
	}
	if c.DatabaseURL == "" && c.Role != RoleLetters {
		p.add("FOYER_DATABASE_URL", "is required")
	}
	if c.Role == RoleMigrate {
		return
	}
	if c.RedisURL == "" {
		p.add("FOYER_REDIS_URL", "is required")
	}
	if c.Role != RoleAPI {
		return
	}
	if len(c.JWTSecret) == 0 && c.JWKS == "" {
		p.add("FOYER_JWT_SECRET", "or FOYER_JWKS is required")
	}
	if c.SigningKey == nil {
		p.add("FOYER_SIGNING_KEY", "is required: 64 hex digits, the same for every api process")
	}
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func address(p *problems, variable, value string) string {
	if value == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(value)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
		p.add(variable, "must be HOST:PORT, not %q", value)
	}
	return value
}

func signingKey(p *problems, value string) []byte {
	if value == "" {
		return nil
	}
	seed, err := hex.DecodeString(value)
	if err != nil || len(seed) != ed25519.SeedSize {
		p.add("FOYER_SIGNING_KEY", "must be %d hex digits", 2*ed25519.SeedSize)
	}
	return seed
}

func origins(p *problems, value string) []string {
	var all []string
	for _, origin := range list(value) {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || origin != u.Scheme+"://"+u.Host {
			p.add("FOYER_ALLOWED_ORIGINS", "%q is not an origin such as https://tickets.example", origin)
		}
		all = append(all, origin)
	}
	return all
}

func interval(p *problems, variable, value string, low, high time.Duration) time.Duration {
	d, err := time.ParseDuration(value)
	if err != nil || d < low || d > high {
		p.add(variable, "must be a duration from %s to %s, not %q", low, high, value)
	}
	return d
}

// count reads a number from 1 to high.
func count(p *problems, variable, value string, high int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > high {
		p.add(variable, "must be a number from 1 to %d, not %q", high, value)
	}
	return n
}

func groups(p *problems, value string) []string {
	all := list(value)
	for _, group := range all {
		if !slices.Contains(knownGroups, group) {
			p.add("FOYER_GROUPS", "%q is none of %s", group, strings.Join(knownGroups, ", "))
		}
	}
	return all
}

func oneOf(p *problems, variable, value string, allowed ...string) string {
	if !slices.Contains(allowed, value) {
		p.add(variable, "must be one of %s, not %q", strings.Join(allowed, ", "), value)
	}
	return value
}

// scheme judges a URL by its scheme alone and never repeats the rest, which may
// hold a password.
func scheme(p *problems, variable, value string, allowed ...string) {
	if value == "" {
		return
	}
	name, _, found := strings.Cut(value, ":")
	if !found || !slices.Contains(allowed, name) {
		p.add(variable, "must begin with one of %s", strings.Join(allowed, ":, ")+":")
	}
}

func list(value string) []string {
	var all []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}
