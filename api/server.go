package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"foyer/domain"
	"foyer/events"
	"foyer/internal/operate"
)

// Config is what the edge is told by the settings.
type Config struct {
	// AllowedOrigins are the exact origins, such as https://tickets.example, of
	// other sites whose pages may call the API and open sockets. Empty: only the
	// pages of the same origin.
	AllowedOrigins []string
	JWTSecret      []byte // of HS256 identity tokens; empty: none are accepted
	JWKS           string // path or URL of the keys of other identity tokens
	SigningKey     []byte // Ed25519 seed of the admission pass, 32 bytes, the same on every process
	DevMode        bool   // POST /api/dev/token exists
	MaxActiveLimit int    // the most that a show's maxActive may be; 0: as much as any show may
	RateLimit      int    // the same of ratePerMinute
	Sockets        SocketLimits
}

// Server is the edge of one process. Make it with New and let it work with Serve.
// It is an events.Sink: give it to the bus.
type Server struct {
	config     Config
	deps       Deps
	echo       *echo.Echo
	log        *slog.Logger
	auth       *authenticator
	pass       *passSigner
	shows      *showCache
	admissions *admissions
	hub        *Hub
	mirrors    *seatMirrors
	draws      *drawTables
	desk       *operate.Desk
	reads      *pendingReads
	afterwards *afterwards
	requests   *requestMetrics
	assets     map[string]asset // the pages by path
	draining   atomic.Bool
}

// New checks the settings and mounts every route. It starts nothing.
func New(config Config, deps Deps) (*Server, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	auth, err := newAuthenticator(config.JWTSecret, config.JWKS)
	if err != nil {
		return nil, err
	}
	pass, err := newPassSigner(config.SigningKey)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: config, deps: deps, log: deps.Log, auth: auth, pass: pass,
		shows: newShowCache(deps.Store, deps.Log), mirrors: newSeatMirrors(deps.Steps), reads: newPendingReads(), afterwards: newAfterwards(maxAfterwards),
	}
	s.draws, s.desk = newDrawTables(deps.Steps, s.afterwards), s.newDesk()
	s.admissions = &admissions{
		steps: deps.Steps, shows: s.shows, commands: deps.Commands, bus: deps.Bus,
		ids: domain.NewRequestIDs(config.SigningKey), codes: domain.NewJoinCodes(config.SigningKey), log: deps.Log,
	}
	s.admissions.newcomers = newcomers{tell: s.admissions.tell, afterwards: s.afterwards}
	if s.assets, err = loadAssets(deps.Web); err != nil {
		return nil, err
	}
	if s.requests, err = newRequestMetrics(deps.Metrics); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.hub = s.newHub()
	s.echo = s.routes()
	return s, nil
}

// newHub gives the sockets what they need of the rest.
func (s *Server) newHub() *Hub {
	limits := s.config.Sockets
	config := hubConfig{
		origins: s.config.AllowedOrigins, maxSockets: limits.Sockets, maxPerPerson: limits.PerPerson,
		handshakesPerSecond: limits.HandshakesPerSecond, framesPerSecond: limits.FramesPerSecond, frameBurst: limits.FrameBurst,
		drainLimit: limits.DrainTime,
	}
	deps := hubDeps{
		steps: s.deps.Steps, store: s.deps.Store, admissions: s.admissions, shows: s.shows, requests: s.admissions.ids,
		identify: s.auth.Identify, markRead: s.markReadUpTo, sign: s.pass.sign,
		viewShow: func(show domain.Show, stats domain.Stats) any { return viewShow(show, stats) },
		log:      s.log,
	}
	if s.deps.Metrics != nil { // a nil registry in the interface would not be nil
		deps.metrics = s.deps.Metrics
	}
	return newHub(config, deps)
}

// Handler serves every route. Serve uses it; a test may use it alone.
func (s *Server) Handler() http.Handler { return s.echo }

// Serve answers on the listener until ctx ends. Then it says that it is not
// ready, closes its sockets in slices so that their clients spread over the
// other processes, lets requests finish, and returns. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.echo,
		ReadHeaderTimeout: readHeaderTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.hub.Start(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		s.draining.Store(true)
		return errors.Join(fmt.Errorf("serve: %w", err), s.stop(ctx, server))
	case <-ctx.Done():
	}
	s.draining.Store(true)
	err := s.stop(ctx, server)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// stop ends sockets, then requests, then what was left to do behind answers. The
// caller's context has ended already; the goodbye has bounds of its own.
func (s *Server) stop(ctx context.Context, server *http.Server) error {
	ctx = context.WithoutCancel(ctx)
	drain, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	s.hub.Drain(drain)
	shutdown, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	err := server.Shutdown(shutdown)
	if err != nil {
		err = errors.Join(fmt.Errorf("finish requests: %w", err), server.Close())
	}
	s.afterwards.wait()
	return err
}

// Notify takes a notification from the bus.
func (s *Server) Notify(n events.Notification) {
	if n.Event == events.EventShow {
		s.shows.forget(n.ShowID)
	}
	s.hub.Notify(n)
}

// Gap says that notifications may have been lost: whatever is remembered from
// them is read again.
func (s *Server) Gap(reason string) {
	s.shows.forgetAll()
	s.hub.Gap(reason)
}

// routes mounts everything. The order of middleware is the order in which a
// request meets it.
func (s *Server) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(discard{})
	e.HTTPErrorHandler = s.answerProblem
	e.Use(s.correlate, s.observe, s.survive, secureHeaders)
	if len(s.config.AllowedOrigins) > 0 {
		e.Use(s.cors())
	}
	e.Use(s.orPage, plainPath, bound, noStore)
	s.mountOperations(e)
	s.hub.register(e)
	// Without middleware of its own: Echo would mount a catch-all beneath it, which
	// turns every 405 into a 404.
	api := e.Group("/api")
	s.mountShows(api)
	s.mountSelling(api)
	s.mountChat(api)
	s.mountOperator(api)
	s.mountOperating(api)
	if s.config.DevMode && len(s.config.JWTSecret) > 0 {
		api.POST("/dev/token", s.devToken)
	}
	return e
}

// getter is what routes are mounted on: all of the server, or a part under a prefix.
type getter interface {
	Match(methods []string, path string, handler echo.HandlerFunc, middleware ...echo.MiddlewareFunc) []*echo.Route
}

// get mounts a reading. HEAD is answered as GET is, and net/http keeps the body back.
func get(on getter, path string, handler echo.HandlerFunc, middleware ...echo.MiddlewareFunc) {
	on.Match([]string{http.MethodGet, http.MethodHead}, path, handler, middleware...)
}

func (s *Server) mountShows(api *echo.Group) {
	get(api, "/shows", s.listShows)
	api.POST("/shows", s.operator(s.createShow))
	get(api, "/shows/:show", s.getShow)
	api.PATCH("/shows/:show", s.operator(s.changeShow))
	get(api, "/shows/:show/draw", s.getDraw)
	api.POST("/shows/:show/admission", s.person(s.joinShow))
	get(api, "/shows/:show/admission", s.person(s.myPlace))
	api.GET("/shows/:show/admission/stream", s.person(s.streamPlace))
	api.DELETE("/shows/:show/admission", s.person(s.leaveShow))
	api.POST("/shows/:show/admission/claim", s.person(s.claimTurn))
	api.POST("/shows/:show/admission/extend", s.person(s.extendTurn))
	get(api, "/pass/jwks.json", s.passKeys)
	get(api, "/pass/revocations", s.passRevocations)
}

func (s *Server) mountSelling(api *echo.Group) {
	get(api, "/shows/:show/seats", s.person(s.listSeats), middleware.GzipWithConfig(middleware.GzipConfig{Level: seatsGzip, MinLength: seatsGzipFrom}))
	get(api, "/shows/:show/holds", s.person(s.listHolds))
	api.POST("/shows/:show/holds", s.person(s.holdSeats))
	api.PUT("/shows/:show/holds/:hold", s.person(s.swapHold))
	api.DELETE("/shows/:show/holds/:hold", s.person(s.releaseHold))
	api.POST("/shows/:show/holds/:hold/extend", s.person(s.extendHold))
	api.POST("/shows/:show/bookings", s.person(s.bookHold))
	get(api, "/bookings", s.person(s.listBookings))
	get(api, "/bookings/:booking", s.person(s.getBooking))
	api.DELETE("/bookings/:booking", s.person(s.cancelBooking))
}

func (s *Server) mountChat(api *echo.Group) {
	api.POST("/chat/rooms", s.person(s.createRoom))
	get(api, "/chat/rooms", s.person(s.listRooms))
	get(api, "/shows/:show/chat/rooms", s.person(s.listShowRooms))
	api.POST("/chat/rooms/:room/members", s.person(s.joinRoom))
	api.DELETE("/chat/rooms/:room/members", s.person(s.leaveRoom))
	api.POST("/chat/rooms/:room/messages", s.person(s.say))
	get(api, "/chat/rooms/:room/messages", s.person(s.listMessages))
	api.DELETE("/chat/rooms/:room/messages/:seq", s.person(s.deleteMessage))
	api.POST("/chat/rooms/:room/read", s.person(s.markRead))
	api.POST("/chat/rooms/:room/unread", s.person(s.markUnread))
	get(api, "/chat/rooms/:room/readers", s.person(s.listReaders))
}

func (s *Server) mountOperator(api *echo.Group) {
	get(api, "/operator/shows", s.operator(s.operatorShows))
	get(api, "/operator/shows/:show", s.operator(s.operatorShow))
	get(api, "/operator/dead-letters", s.operator(s.listDeadLetters))
	api.POST("/operator/dead-letters", s.operator(s.requeueDeadLetter))
	api.DELETE("/operator/dead-letters", s.operator(s.dropDeadLetter))
	get(api, "/operator/dead-letters/audit", s.operator(s.listLetterActions))
}

func (s *Server) mountOperations(e *echo.Echo) {
	get(e, "/healthz", s.healthz)
	get(e, "/readyz", s.readyz)
	get(e, "/metrics", s.metrics())
	get(e, "/openapi.yaml", serveSpec(openapiSpec))
	get(e, "/asyncapi.yaml", serveSpec(asyncapiSpec))
	get(e, "/.well-known/jwks.json", s.passKeys)
}

// person lets a handler run for whoever the request's token names.
func (s *Server) person(handle func(echo.Context, Identity) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := s.auth.Identify(c.Request())
		if err != nil {
			return err
		}
		return handle(c, who)
	}
}

// operator is person for those who run shows.
func (s *Server) operator(handle func(echo.Context, Identity) error) echo.HandlerFunc {
	return s.person(func(c echo.Context, who Identity) error {
		if !who.Operator() {
			return forbidden()
		}
		return handle(c, who)
	})
}
