package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

const (
	// dialTimeout bounds one try to reach Redis.
	dialTimeout = 5 * time.Second
	// commandTimeout bounds one command's answer, so that a frozen server is an
	// error in time and never a request that hangs.
	commandTimeout = 3 * time.Second
	// poolSize bounds the connections of one role's client.
	poolSize = 64
)

// redisServer opens clients of one Redis, each for one role: a reader that
// blocks never takes a connection that a command waits for, and only the
// commands' client may repeat what it sends.
type redisServer struct{ options redis.UniversalOptions }

// parseRedis reads redis://, rediss:// or redis+sentinel:// with one host or
// several, separated by commas: several hosts behind redis:// are a Cluster.
// The answer's error never repeats the URL, which may hold a password.
func parseRedis(address string) (redisServer, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return redisServer{}, fmt.Errorf("redis URL must begin with redis://, rediss:// or redis+sentinel://")
	}
	authority, path, _ := strings.Cut(rest, "/")
	path, _, _ = strings.Cut(path, "?")
	credentials := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		credentials, authority = authority[:at], authority[at+1:]
	}
	options := redis.UniversalOptions{
		Addrs: withPorts(strings.Split(authority, ","), scheme), Protocol: 2, DisableIdentity: true,
		DialTimeout: dialTimeout, ReadTimeout: commandTimeout, WriteTimeout: commandTimeout,
		ContextTimeoutEnabled: true, PoolSize: poolSize,
	}
	if credentials != "" {
		user, password, both := strings.Cut(credentials, ":")
		if !both {
			user, password = "", user
		}
		var err1, err2 error
		options.Username, err1 = url.PathUnescape(user)
		options.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return redisServer{}, fmt.Errorf("redis URL has a user or password that is not URL-encoded")
		}
	}
	if scheme == "rediss" {
		host, _, _ := strings.Cut(options.Addrs[0], ":")
		options.TLSConfig = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	}
	database := path
	if scheme == "redis+sentinel" {
		options.MasterName, database, _ = strings.Cut(path, "/")
		if options.MasterName == "" {
			return redisServer{}, fmt.Errorf("redis+sentinel:// needs the master's name as its path")
		}
	}
	if database != "" {
		n, err := strconv.Atoi(database)
		if err != nil || n < 0 {
			return redisServer{}, fmt.Errorf("redis URL's database must be a number")
		}
		options.DB = n
	}
	options.IsClusterMode = len(options.Addrs) > 1 && options.MasterName == ""
	return redisServer{options: options}, nil
}

func withPorts(hosts []string, scheme string) []string {
	port := ":6379"
	if scheme == "redis+sentinel" {
		port = ":26379"
	}
	for i, host := range hosts {
		if strings.LastIndexByte(host, ':') <= strings.LastIndexByte(host, ']') {
			hosts[i] = host + port
		}
	}
	return hosts
}

// commands opens a client for scripts and plain commands, which are safe to repeat.
func (s redisServer) commands() redis.UniversalClient {
	options := s.options
	return redis.NewUniversalClient(&options)
}

// once opens a client that never repeats a command on its own: an entry that is
// added twice would stand on its stream twice.
func (s redisServer) once() redis.UniversalClient {
	options := s.options
	options.MaxRetries = -1
	return redis.NewUniversalClient(&options)
}

// embeddedRedis is a Redis inside this process, for trying out.
type embeddedRedis struct {
	server *miniredis.Miniredis
	stop   context.CancelFunc
	done   chan struct{}
}

// expiryStep is how often the embedded Redis lets its few expiring keys age;
// it does not do so by itself.
const expiryStep = time.Second

func startEmbeddedRedis() (*embeddedRedis, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start embedded redis: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	embedded := &embeddedRedis{server: server, stop: stop, done: make(chan struct{})}
	go embedded.age(ctx)
	return embedded, nil
}

func (e *embeddedRedis) age(ctx context.Context) {
	defer close(e.done)
	clock := time.NewTicker(expiryStep)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
			e.server.FastForward(expiryStep)
		}
	}
}

func (e *embeddedRedis) url() string { return "redis://" + e.server.Addr() }

func (e *embeddedRedis) close() {
	e.stop()
	<-e.done
	e.server.Close()
}
