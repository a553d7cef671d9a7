package api

import (
	"runtime"
	"sync"
)

// writersBatch bounds the connections that a writer takes at once.
const writersBatch = 32

// writers write what connections have to send: a few goroutines for all of them,
// since to wake one for each socket costs as much as the write. They choose what a
// connection is sent at the last moment, one frame at a time, and never wait for a client.
//
// A connection stands in a queue at most once, which bounds them.
type writers struct {
	mu      sync.Mutex
	work    sync.Cond
	queues  [urgencies]queue
	stopped bool
	running sync.WaitGroup
}

// urgency is which of the queues a connection stands in. What decides about a turn
// overtakes the news of a whole crowd.
type urgency int

const (
	urgent urgency = iota
	ordinary
	urgencies
)

// queue is connections in the order of their coming; those before head are gone.
type queue struct {
	list []*connection
	head int
}

// move takes some from the front and appends them to batch.
func (q *queue) move(batch []*connection) []*connection {
	n := min(len(q.list)-q.head, writersBatch)
	batch = append(batch, q.list[q.head:q.head+n]...)
	q.head += n
	if 2*q.head >= len(q.list) { // as many were moved as are left to be
		kept := copy(q.list, q.list[q.head:])
		clear(q.list[kept:])
		q.list, q.head = q.list[:kept], 0
	}
	return batch
}

// start runs as many writers as can write at the same time.
func (ws *writers) start() {
	ws.work.L = &ws.mu
	for range runtime.GOMAXPROCS(0) {
		ws.running.Go(func() {
			batch := make([]*connection, 0, writersBatch)
			for {
				var from urgency
				if batch, from = ws.take(batch[:0]); len(batch) == 0 {
					return
				}
				for _, c := range batch {
					c.serve(from)
				}
			}
		})
	}
}

// stop ends the writers; what is still queued is not written.
func (ws *writers) stop() {
	ws.mu.Lock()
	ws.stopped = true
	ws.mu.Unlock()
	ws.work.Broadcast()
	ws.running.Wait()
}

// add has a connection written to soon.
func (ws *writers) add(c *connection, to urgency) {
	ws.mu.Lock()
	ws.queues[to].list = append(ws.queues[to].list, c)
	ws.mu.Unlock()
	ws.work.Signal()
}

// take waits for connections and moves some to batch; none means the end.
func (ws *writers) take(batch []*connection) ([]*connection, urgency) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for !ws.stopped {
		for from := range ws.queues {
			if batch = ws.queues[from].move(batch); len(batch) > 0 {
				return batch, urgency(from)
			}
		}
		ws.work.Wait()
	}
	return batch, 0
}
