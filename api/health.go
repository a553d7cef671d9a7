package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTime bounds one look at whether the process is ready.
const readyTime = 2 * time.Second

// healthz says that the process runs. It asks no other part: restarting this
// process mends none of them.
func (s *Server) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// States of one check, as people see them; the cause is in the log.
const (
	checkOK      = "ok"
	checkFailing = "failing"
)

// readyz says whether requests should come here: every part answers, the
// notifications arrive, and the process is not about to stop.
func (s *Server) readyz(c echo.Context) error {
	checks, ready := s.runChecks(c.Request().Context())
	if !ready {
		return newProblem(http.StatusServiceUnavailable, codeUnavailable, "Not ready", "This process should get no traffic now.").
			with("checks", checks).retry(retryUnavailable)
	}
	return c.JSON(http.StatusOK, map[string]any{"status": "ready", "checks": checks})
}

func (s *Server) runChecks(ctx context.Context) (checks map[string]string, ready bool) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	checks, ready = map[string]string{}, true
	var mu sync.Mutex
	note := func(name string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		checks[name] = checkOK
		if !ok {
			checks[name], ready = checkFailing, false
		}
	}
	note("serving", !s.draining.Load())
	note("notifications", s.deps.Bus.Healthy())
	var running sync.WaitGroup
	for name, check := range s.deps.Ready {
		running.Go(func() {
			err := check(ctx)
			if err != nil {
				s.log.WarnContext(ctx, "readiness check failed", "check", name, "error", err)
			}
			note(name, err == nil)
		})
	}
	running.Wait()
	return checks, ready
}

// metrics shows the registry; without one there is nothing to show.
func (s *Server) metrics() echo.HandlerFunc {
	if s.deps.Metrics == nil {
		return func(echo.Context) error { return echo.ErrNotFound }
	}
	return echo.WrapHandler(promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{}))
}
