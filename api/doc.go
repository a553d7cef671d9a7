// Package api is Foyer's edge: HTTP requests and WebSocket frames come in, and
// answers and live frames go out. It holds no state that another process would
// miss: any number of API processes serve the same shows side by side.
//
// What answers a person at once (joining, claiming, holding, releasing) is one
// atomic step in Redis. What changes SQL for good (booking, cancelling, read
// marks) becomes a command on a stream, and the answer is 202. What follows from
// a step for others is published as a notification; a notification that gets
// lost costs nobody anything, since versions show the gap and state is re-read.
//
// Every error that leaves the package is a problem document with a stable code;
// errors.go is the only place that knows which code and status belong to which
// condition, and an unknown error says nothing about its cause to the caller.
package api
