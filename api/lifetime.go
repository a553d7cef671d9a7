package api

import (
	"context"
	"slices"
	"sync"
)

// lifetime bounds what is done on a client's behalf. It makes a context for the time
// that something is done, which is seldom, instead of keeping one for each socket.
type lifetime struct {
	mu   sync.Mutex
	over bool
	work []*context.CancelFunc // of what is being done
}

// during is a context that ends with the lifetime, for something that begins now;
// release must be called when it is done.
func (l *lifetime) during(parent context.Context) (life context.Context, release context.CancelFunc) {
	life, cancel := context.WithCancel(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		cancel()
		return life, cancel
	}
	l.work = append(l.work, &cancel)
	return life, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.work = slices.DeleteFunc(l.work, func(of *context.CancelFunc) bool { return of == &cancel })
	}
}

// end stops what is being done, and what will be.
func (l *lifetime) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, cancel := range l.work {
		(*cancel)()
	}
	l.work = nil
}
