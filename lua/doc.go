// Package lua holds Foyer's atomic steps: Lua scripts that run inside Redis, one
// file a step, and a typed caller for each. Who waits, who is inside and who holds
// what for the moment is decided here and nowhere else.
//
// # Promises
//
// A step checks everything and then writes, and nothing runs in between: it happens
// as a whole or not at all. At no instant are more people inside than a show allows,
// no 60 seconds see more admissions than its rate, the line is served in order, a
// seat has one owner, and a person has no more seats than the limit, whoever calls
// and from however many processes.
//
// Every deadline is an instant of the Redis server's clock, kept as data. It is over
// when it is not later than now, judged when it is read; sweeping only tidies up, and
// nothing relies on a key's expiry or on being told of one. A person whose session
// ran out counts as outside, and a seat whose hold ran out as free, from that very
// instant.
//
// Every step may be sent twice. Joining, claiming, holding under one hold id and
// settling a booking answer the second time what is true already; leaving,
// extending, swapping and releasing find nothing left to do.
//
// A show's keys carry its id as hash tag and each step touches the keys of one show
// only, all of them passed in KEYS, so the steps run on Redis Cluster. They run on
// Redis 7.0 and on miniredis alike.
//
// # Rules of use
//
// A step on a show that is not in Redis fails with domain.ErrNotLoaded. With
// [WithLoader] the steps have the show loaded (see [Steps.Restore]) and try once more.
// Redis may be lost at any time: sold seats come back from SQL, places do not, and
// the show's epoch must grow with each restoration.
package lua
