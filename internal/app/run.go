package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"foyer/api"
	"foyer/events"
	"foyer/internal/config"
	"foyer/web"
	"foyer/workers"
)

const (
	// readyCheck is how often a starting process asks whether it is ready yet.
	readyCheck = 10 * time.Millisecond
	// readyLimit is how long a process may take to be ready before that is an error.
	readyLimit = 30 * time.Second
	// metricsHeaderTime bounds how slowly a request to a worker's metrics may come.
	metricsHeaderTime = 5 * time.Second
)

// Ready says where and what a process is, once it can be used.
type Ready struct {
	URL      string // base address; empty for a worker
	Groups   []string
	Embedded []string // what runs inside the process
	Pages    []string // addresses of pages worth opening
}

// Lines are what a process prints when it is ready; the last is the contract's.
func (r Ready) Lines() []string {
	var lines []string
	for _, part := range r.Embedded {
		lines = append(lines, "foyer: embedded: "+part)
	}
	for _, page := range r.Pages {
		lines = append(lines, "foyer: page: "+page)
	}
	if r.URL == "" {
		return append(lines, fmt.Sprintf("foyer: working %v", r.Groups))
	}
	return append(lines, "foyer: listening on "+r.URL)
}

// Run serves the role until ctx ends, then drains: sockets are closed in slices,
// running commands finish, the rest is handed back. ready is called once, when
// everything can be used. Run returns nil after a stop that ctx asked for. However it
// ends, nothing of what it started is left.
func (a *App) Run(ctx context.Context, ready func(Ready)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts []func(context.Context) error
	var checks []func() bool
	told := Ready{Embedded: a.embedded}
	if a.config.Role != config.RoleWorker {
		server, listener, err := a.newServer()
		if err != nil {
			return err
		}
		told.URL = baseURL(listener.Addr())
		receiver := a.client(a.redis.once) // here: what is opened is noted by one goroutine only
		parts = append(parts, func(ctx context.Context) error { return a.serveAPI(ctx, server, listener, receiver) })
		checks = append(checks, a.bus.Healthy)
	}
	if a.config.Role != config.RoleAPI {
		part, check, err := a.newWorkers()
		if err != nil {
			return err
		}
		told.Groups = a.config.Groups
		parts, checks = append(parts, part), append(checks, check)
	}
	if a.config.Role == config.RoleDev {
		told.Pages = []string{told.URL + "/", told.URL + "/show.html?show=demo", told.URL + "/operator.html"}
	}
	errs := make([]error, len(parts)+1)
	var running sync.WaitGroup
	defer running.Wait() // also when ready ends its goroutine: Close may follow
	defer cancel()
	for i, part := range parts {
		running.Go(func() {
			defer cancel() // when one part ends, the process ends
			errs[i] = part(ctx)
		})
	}
	errs[len(parts)] = whenReady(ctx, checks, func() { ready(told) })
	if errs[len(parts)] != nil {
		cancel()
	}
	running.Wait()
	return errors.Join(errs...)
}

// whenReady calls then as soon as every check holds. It gives up with ctx, which
// is no error, or after readyLimit, which is one.
func whenReady(ctx context.Context, checks []func() bool, then func()) error {
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	clock := time.NewTicker(readyCheck)
	defer clock.Stop()
	for {
		all := true
		for _, check := range checks {
			all = all && check()
		}
		if all {
			then()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-limit.C:
			return fmt.Errorf("not ready within %s", readyLimit)
		case <-clock.C:
		}
	}
}

func (a *App) newServer() (*api.Server, net.Listener, error) {
	server, err := api.New(api.Config{
		AllowedOrigins: a.config.AllowedOrigins, JWTSecret: a.config.JWTSecret, JWKS: a.config.JWKS,
		SigningKey: a.config.SigningKey, DevMode: a.config.Role == config.RoleDev,
		MaxActiveLimit: a.config.MaxActiveLimit, RateLimit: a.config.RateLimit,
	}, api.Deps{
		Steps: a.steps, Store: a.store, Commands: a.sender, Bus: a.bus, DeadLetters: a.deadLetters,
		Ready: a.readyChecks(), Web: web.Files(), Log: a.log, Metrics: a.metrics,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make api: %w", err)
	}
	listener, err := net.Listen("tcp", a.config.HTTPAddr)
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	a.onClose(func() { _ = listener.Close() }) // when nobody came to serve it
	return server, listener, nil
}

func (a *App) readyChecks() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"redis":    func(ctx context.Context) error { return a.commands.Ping(ctx).Err() },
		"database": a.store.Ping,
	}
}

// serveAPI serves until ctx ends. The bus goes on until the last socket is
// closed, so that nobody misses what happens during the drain.
func (a *App) serveAPI(ctx context.Context, server *api.Server, listener net.Listener, receiver redis.UniversalClient) error {
	receive, stop := context.WithCancel(context.WithoutCancel(ctx))
	received := make(chan error, 1)
	go func() { received <- a.bus.Run(receive, receiver, server) }()
	err := server.Serve(ctx, listener)
	stop()
	return errors.Join(err, <-received)
}

// baseURL is the address that a person on this machine can open.
func baseURL(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", tcp.Port)
	}
	return "http://" + address.String()
}

// newWorkers makes the worker part: its consumer, what runs beside it, and the
// check that it is reading.
func (a *App) newWorkers() (part func(context.Context) error, check func() bool, err error) {
	w := workers.New(a.config.Tick, workers.Deps{
		Steps: a.steps, Store: a.store, Commands: a.sender, Notifier: a.bus, Log: a.log, Retention: a.config.CommandRetention, Metrics: a.metrics,
	})
	consumer, err := a.newConsumer(w.Handlers())
	if err != nil {
		return nil, nil, err
	}
	part = func(ctx context.Context) error { return a.work(ctx, w, consumer) }
	return part, func() bool {
		select {
		case <-consumer.Running():
			return true
		default:
			return false
		}
	}, nil
}

// work consumes until ctx ends. The handlers' shared runs outlive the consumer,
// whose last handlers finish while it drains.
func (a *App) work(ctx context.Context, w *workers.Workers, consumer *events.Consumer) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { w.Serve(serving) })
	beside.Go(func() { w.Tick(ctx) })
	beside.Go(func() { w.Sweep(ctx) })
	beside.Go(func() { w.Prune(ctx) })
	beside.Go(func() { a.rebuilder().Watch(ctx) })
	beside.Go(func() { a.desk().Watch(ctx) })
	var metricsErr error
	beside.Go(func() {
		if metricsErr = a.serveMetrics(ctx); metricsErr != nil {
			cancel()
		}
	})
	err := consumer.Run(ctx)
	cancel()
	stopServing()
	beside.Wait()
	return errors.Join(err, metricsErr)
}

// serveMetrics answers /healthz, /readyz and /metrics of a worker process, where
// it was given an address for that.
func (a *App) serveMetrics(ctx context.Context) error {
	if a.config.Role != config.RoleWorker || a.config.MetricsAddr == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		for _, check := range a.readyChecks() {
			if check(r.Context()) != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{}))
	server := &http.Server{Addr: a.config.MetricsAddr, Handler: mux, ReadHeaderTimeout: metricsHeaderTime}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve metrics: %w", err)
	case <-ctx.Done():
		return errors.Join(server.Close(), ignoreClosed(<-failed))
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
