// Package domain holds Foyer's nouns and their rules: shows, admission, seats,
// holds, bookings and chat. It uses the standard library only, does no I/O and
// reads no clock: a function that needs the time is given it. Every other
// package speaks in these types, so that a word means one thing everywhere.
//
// Values are plain and safe to copy unless a comment says otherwise. Rules that
// two processes must agree on (deadlines, vacancy, who owns a seat) are judged
// in Redis and SQL; what is here is validation, derivation and arithmetic.
package domain
