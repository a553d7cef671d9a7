// Package workers does what commands ask for: it lets people in, writes
// bookings, moves read pointers, and sweeps up what ran out. Each does its work
// in the same order: the atomic step in SQL or Redis, then the notification,
// then (by returning nil) the acknowledgement.
//
// Every handler is safe to run twice, since a command runs at least once: an
// effect in SQL is recorded with its command id in one transaction, an effect in
// Redis is recorded by booking id in one script, and a notification carries a
// version that a reader compares. A handler that returns an error is run again
// later; one that returns events.Permanent is given up on at once.
//
// Any number of processes may run these workers beside each other. None is a
// leader: the admit script alone decides whether a tick is due and who gets in.
package workers
