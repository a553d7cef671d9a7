// Package operate is what operators do to a show while it runs: change and pause it, let
// people in by hand, remove somebody, begin anew. The API and the command line both come
// through here, so that either does the same and leaves the same trace.
//
// Every action is written down with who and when: a change of a show in the transaction
// that makes it, anything else before it is done. An action that died half-way is found
// by that, and a reset is taken up again.
package operate
