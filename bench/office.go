package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"foyer/api"
	"foyer/domain"
	"foyer/events"
	"foyer/lua"
	"foyer/store"
)

const (
	officeSecret = "measurements alone know this secret, which is long enough"
	// MaxSockets and the handshakes a second of an Office are out of the way of
	// what is measured.
	MaxSockets    = 20_000
	officeHandles = 100_000
	tokenLife     = 24 * time.Hour
)

// Office is the edge of one API process, on the Redis and the database given, with
// limits that are out of the way.
type Office struct {
	URL    string
	Bus    *events.Bus
	server *api.Server
	stop   context.CancelFunc
	ended  chan error
	closes []func() error
}

// OpenOffice makes one that serves until Close, or until ctx ends.
func OpenOffice(ctx context.Context, redisURL, databaseURL string) (_ *Office, err error) {
	o := &Office{ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			_ = o.release()
		}
	}()
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true
	commands := redis.NewClient(options)
	once := *options
	once.MaxRetries = -1
	sending, receiving := redis.NewClient(&once), redis.NewClient(&once)
	o.closes = append(o.closes, commands.Close, sending.Close, receiving.Close)
	db, err := store.Open(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	o.closes = append(o.closes, db.Close)
	if err := db.Migrate(ctx); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	sender, err := events.NewCommands(sending, log)
	if err != nil {
		return nil, err
	}
	o.Bus = events.NewBus(commands, events.BusConfig{Log: log})
	o.server, err = api.New(api.Config{
		JWTSecret: []byte(officeSecret), SigningKey: make([]byte, 32),
		Sockets: api.SocketLimits{Sockets: MaxSockets, HandshakesPerSecond: officeHandles},
	}, api.Deps{
		Steps: lua.New(commands), Store: db, Commands: sender, Bus: o.Bus, DeadLetters: events.NewDeadLetters(commands), Log: log,
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o.URL = "http://" + listener.Addr().String()
	ctx, o.stop = context.WithCancel(ctx)
	go o.serve(ctx, listener, receiving)
	for !o.Bus.Healthy() {
		select {
		case err := <-o.ended:
			return nil, fmt.Errorf("office did not open: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
	return o, nil
}

// serve goes on receiving until the last socket is closed, as a process does.
func (o *Office) serve(ctx context.Context, listener net.Listener, receiving redis.UniversalClient) {
	receive, stop := context.WithCancel(context.WithoutCancel(ctx))
	var bus sync.WaitGroup
	bus.Go(func() { _ = o.Bus.Run(receive, receiving, o.server) })
	err := o.server.Serve(ctx, listener)
	stop()
	bus.Wait()
	o.ended <- err
}

// Close drains the sockets and waits for the end.
func (o *Office) Close() error {
	o.stop()
	return errors.Join(<-o.ended, o.release())
}

func (o *Office) release() error {
	var errs []error
	for _, release := range o.closes {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// Token is the identity of a person at every Office.
func Token(person string) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":%q,"exp":%d}`, person, time.Now().Add(tokenLife).Unix())
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(officeSecret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// Dial opens a person's socket.
func Dial(ctx context.Context, url, person string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: time.Minute, ReadBufferSize: 512, WriteBufferSize: 512, WriteBufferPool: &sync.Pool{}}
	conn, response, err := dialer.DialContext(ctx, strings.Replace(url, "http", "ws", 1)+"/ws", http.Header{"Authorization": {"Bearer " + Token(person)}})
	if err != nil && response != nil {
		return nil, fmt.Errorf("%w: %s", err, response.Status)
	}
	return conn, err
}

// Frame is what the measurements read of a frame.
type Frame struct {
	Event     string           `json:"event"`
	Version   int64            `json:"version"`
	RequestID domain.RequestID `json:"requestId"`
	Status    domain.Status    `json:"status"`
}
