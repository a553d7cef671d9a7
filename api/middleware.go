package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"foyer/domain"
)

// headerCorrelation names a request in answers and logs. It has nothing to do
// with the request id of a place.
const headerCorrelation = "X-Request-Id"

const mediaProblem = "application/problem+json"

// discard silences Echo's own logger; what matters is logged with slog.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// correlate gives every request an id: the caller's own when it is harmless to
// repeat in a header and a log, else a new one.
func (s *Server) correlate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(headerCorrelation)
		if !plain(id, maxCorrelationBytes) {
			id = domain.NewID()
		}
		c.Request().Header.Set(headerCorrelation, id)
		c.Response().Header().Set(headerCorrelation, id)
		return next(c)
	}
}

// plain reports whether a text is 1 to most characters of the kind that ids have.
func plain(text string, most int) bool {
	if text == "" || len(text) > most {
		return false
	}
	for i := range len(text) {
		b := text[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !letter && b != '-' && b != '_' && b != '.' {
			return false
		}
	}
	return true
}

// requestMetrics counts requests by route, never by path: a path has ids in it.
type requestMetrics struct {
	count    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// newRequestMetrics registers with a registry, or counts for nobody without one.
func newRequestMetrics(registry *prometheus.Registry) (*requestMetrics, error) {
	m := &requestMetrics{
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "foyer_http_requests_total", Help: "Answered HTTP requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "foyer_http_request_seconds", Help: "Time to answer an HTTP request by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method"}),
	}
	if registry == nil {
		return m, nil
	}
	return m, errors.Join(registry.Register(m.count), registry.Register(m.duration))
}

// observe answers errors, measures, and carries the caller's trace on. Errors are
// answered here, so that what is measured is what was sent.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	tracer := otel.Tracer("foyer/api")
	return func(c echo.Context) error {
		request, start := c.Request(), time.Now()
		route := c.Path()
		if route == "" {
			route = "other"
		}
		ctx := otel.GetTextMapPropagator().Extract(request.Context(), propagation.HeaderCarrier(request.Header))
		ctx, span := tracer.Start(ctx, knownMethod(request.Method)+" "+route, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		c.SetRequest(request.WithContext(ctx))
		if err := next(c); err != nil {
			c.Error(err)
		}
		status := c.Response().Status
		span.SetAttributes(attribute.Int("http.response.status_code", status), attribute.String("http.route", route))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		s.requests.count.WithLabelValues(route, knownMethod(request.Method), strconv.Itoa(status)).Inc()
		s.requests.duration.WithLabelValues(route, knownMethod(request.Method)).Observe(time.Since(start).Seconds())
		return nil
	}
}

// knownMethod keeps callers from inventing label values.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// survive turns a panic of one request into its 500; no other request notices.
func (s *Server) survive(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch value := recover(); value {
			case nil:
			case http.ErrAbortHandler:
				panic(value)
			default:
				s.log.ErrorContext(c.Request().Context(), "handler panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", value)
			}
		}()
		return next(c)
	}
}

// contentPolicy lets a page run and fetch only what this server delivers. The
// socket has the page's own origin and so falls under 'self'.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		return next(c)
	}
}

// cors lets pages of the allowed origins call the API. Identity travels in a
// header and never in a cookie, so no credentials are allowed.
func (s *Server) cors() echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins:  s.config.AllowedOrigins,
		AllowMethods:  []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowHeaders:  []string{echo.HeaderAuthorization, echo.HeaderContentType, headerKey, headerCorrelation, "traceparent"},
		ExposeHeaders: []string{echo.HeaderLocation, echo.HeaderRetryAfter, headerCorrelation},
		MaxAge:        600,
	})
}

// ofAPI reports whether a request is for a person's or an operator's data, and not
// for a page, a socket or a probe.
func ofAPI(c echo.Context) bool { return strings.HasPrefix(c.Request().URL.Path, "/api/") }

// noStore keeps answers out of every cache: each is as of now and for one person.
// A handler whose answer may be kept says so itself.
func noStore(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if ofAPI(c) {
			c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
		}
		return next(c)
	}
}

// bound ends a request's work after requestTime; only a stream goes on.
func bound(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !ofAPI(c) || c.Path() == streamRoute {
			return next(c)
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), requestTime)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

// answerProblem writes an error as a problem document and logs what the caller
// is not told.
func (s *Server) answerProblem(err error, c echo.Context) {
	if c.Response().Committed {
		s.log.WarnContext(c.Request().Context(), "answer broke off", "error", err)
		return
	}
	p := problemFor(err)
	s.logProblem(c, p)
	h := c.Response().Header()
	if p.RetryAfter > 0 {
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(int(max(p.RetryAfter.Seconds(), 1))))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set(echo.HeaderWWWAuthenticate, challenge(p.Code))
	}
	p.Extra = withCorrelation(p.Extra, h.Get(headerCorrelation))
	document, err := json.Marshal(&p)
	if err != nil {
		s.log.ErrorContext(c.Request().Context(), "problem could not be encoded", "error", err)
	}
	if err := c.Blob(p.Status, mediaProblem, document); err != nil {
		s.log.DebugContext(c.Request().Context(), "answer was not taken", "error", err)
	}
}

func withCorrelation(extra map[string]any, id string) map[string]any {
	all := map[string]any{"correlationId": id}
	for name, value := range extra {
		all[name] = value
	}
	return all
}

// challenge is the WWW-Authenticate of RFC 6750.
func challenge(code string) string {
	if code == codeTokenExpired {
		return `Bearer realm="foyer", error="invalid_token", error_description="the token is expired"`
	}
	return `Bearer realm="foyer", error="invalid_token"`
}

// logProblem logs defects as errors, outages as warnings, and nothing of what
// callers do wrong beyond debug.
func (s *Server) logProblem(c echo.Context, p problem) {
	level := slog.LevelDebug
	switch {
	case p.Code == codeInternal:
		level = slog.LevelError
	case p.Status == http.StatusServiceUnavailable && !errors.Is(p.cause, context.Canceled):
		level = slog.LevelWarn
	}
	s.log.Log(c.Request().Context(), level, "request failed", "correlation_id", c.Response().Header().Get(headerCorrelation),
		"route", c.Path(), "status", p.Status, "code", p.Code, "error", p.cause)
}
