package testenv

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP connection's way that a test may break: between a client, which dials
// Addr, and a server.
type Proxy struct {
	Addr string // 127.0.0.1:PORT

	target   string
	listener net.Listener
	carrying sync.WaitGroup

	mu    sync.Mutex
	links map[*link]bool
	delay time.Duration
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	mu             sync.Mutex
	silent         bool
}

// StartProxy carries connections to a server until the test ends.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	p := &Proxy{Addr: listener.Addr().String(), target: target, listener: listener, links: map[*link]bool{}}
	p.carrying.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.carrying.Wait()
	})
	return p
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		p.carrying.Go(func() { p.carry(l, server, client) })
		p.carrying.Go(func() { p.carry(l, client, server) })
	}
}

// carry passes on what comes from one side until that side ends.
func (p *Proxy) carry(l *link, to, from net.Conn) {
	buffer := make([]byte, 32*1024)
	for {
		n, err := from.Read(buffer)
		if delay := p.delayNow(); delay > 0 {
			<-time.After(delay)
		}
		if l.isSilent() {
			if err != nil {
				return // the other side must not learn of it
			}
			continue
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			l.close()
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
			return
		}
	}
}

func (l *link) isSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func (p *Proxy) delayNow() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// Silence makes every connection that is there half open, for ever: what is sent is
// swallowed, nothing comes, and neither side is told. New connections are carried.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.mu.Lock()
		l.silent = true
		l.mu.Unlock()
	}
}

// Cut closes every connection that is there. New ones are carried.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Delay makes everything take that much longer, each way.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}
