package api

import "time"

// Limits of HTTP. Those of sockets stand with the hub.
const (
	// maxBodyBytes bounds a request's body.
	maxBodyBytes = 64 << 10
	// maxHeaderBytes bounds a request's header.
	maxHeaderBytes = 32 << 10
	// maxBodyDepth bounds how deep a body may nest; the deepest of ours has 4.
	maxBodyDepth = 16
	// requestTime bounds how long one request may work, so that a part that does
	// not answer becomes a 503 and not a page that hangs.
	requestTime = 10 * time.Second
	// maxCorrelationBytes bounds a correlation id that a caller brings along.
	maxCorrelationBytes = 128
	// maxIDBytes bounds the opaque ids that callers name in paths and bodies.
	maxIDBytes = 64
)

// Times of the HTTP server. A slow reader or writer gives its connection up.
const (
	readHeaderTime = 5 * time.Second
	readTime       = 15 * time.Second
	writeTime      = 30 * time.Second
	idleTime       = 2 * time.Minute
	// drainTime bounds the goodbye to sockets, shutdownTime what HTTP requests
	// may still take after it.
	drainTime    = 50 * time.Second
	shutdownTime = 15 * time.Second
)

// Limits of what is done after an answer.
const (
	// maxAfterwards bounds the read marks that are published behind answers;
	// beyond it an answer waits for its own.
	maxAfterwards = 256
	// afterwardsTime bounds one of them.
	afterwardsTime = 5 * time.Second
)

// SocketLimits are the limits of sockets that a deployment may want otherwise. A
// zero field means the default.
type SocketLimits struct {
	Sockets             int           // of this process; 10,000
	PerPerson           int           // 5
	HandshakesPerSecond float64       // 300
	FramesPerSecond     float64       // from one client; 5
	FrameBurst          int           // 10
	DrainTime           time.Duration // over which a stop spreads its goodbyes; 45 s
}
