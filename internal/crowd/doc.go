// Package crowd simulates people at a show, for trying Foyer out: it is what
// `foyer dev --crowd N` lets in. Its people use the front door only, with dev
// tokens, over HTTP and sockets, as the pages do: they join, wait, claim their
// turn, look at seats, hold and book some, talk in the lobby, change their minds,
// or just vanish.
//
// Run keeps a steady number of people around until its context ends: who is done
// comes back after a while as somebody else, so that there is always something to
// see. What it uses is bounded by Config, and everything is given back when Run
// returns. Chance comes from Config.Seed, so that two runs meet the same people,
// if not in the same instants.
package crowd
