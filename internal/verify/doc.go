// Package verify holds a show's sale against what Foyer promises: across Redis, the
// streams and SQL. It reads, changes nothing, and says what is wrong in words that an
// operator can act on.
//
// The three are read one after the other while people go on buying, so what looks
// wrong may only be on its way. A Verifier therefore looks again after a pause and
// reports what was wrong every time.
package verify
