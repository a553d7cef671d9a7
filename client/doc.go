// Package client speaks Foyer's HTTP API and its socket from Go. It serves the
// simulated crowd, the command line and the end-to-end tests, and any shop that
// is written in Go.
//
// A Client is cheap, safe for concurrent use and holds no connection of its own
// beyond those of its http.Client. Every method is one request unless its
// comment says otherwise, and answers either with the decoded body or with an
// error: *Error when the server answered with a problem document, the
// transport's error otherwise. Nothing is retried silently; Retry does so on
// request, for calls that are safe to repeat, and keeps to what the server asked
// for in Retry-After.
//
// Live keeps one socket session alive over any number of connections. It promises:
//
//   - Frames arrive in the server's order; one that is older than what was
//     delivered before for the same event and show is dropped.
//   - A join, claim or leave that was sent is repeated after a reconnect until
//     the server has said what became of it; topics are subscribed again.
//   - While no socket can be opened, admission is polled at the pace the server
//     names, so that a person behind a proxy that breaks sockets gets in as well.
//   - It ends when its context ends, when Close is called, or when the server
//     says that trying again is pointless; Frames is closed then and Err tells why.
package client
