// Package simulate plays a sale before it is held: a synthetic crowd comes to a show
// with planned settings, on virtual time. It tells when the show would be sold out, how
// long people would wait, how many sockets would be open and what Redis would have to do.
//
// # Promises
//
// [Room] decides as the steps in Redis do, in the same words: who gets a place, who is
// let in, and whose place ends. The steps are Lua, too slow to be run for a million
// people in a moment, so the rules stand here a second time; a test in package lua plays
// random sales through both and requires the same outcome. Whoever changes a rule there
// is told by that test to change it here.
//
// The same plan, crowd and seed give the same result. Nothing is started, and nothing
// outside the process is asked.
//
// What people do is a model and not a promise: see [Crowd].
package simulate
