// Package bench measures what is shipped beside what it is compared to: every
// variant of a comparison runs in turn, in one process, on the same servers, and
// this is repeated, so that a busy moment of the machine falls on all of them. A
// ratio is the median of the repeats' ratios and holds on a machine that is not
// idle; a rate or a latency holds only on one that is.
//
// The measurements are benchmarks in this package's tests, and in the module
// peers, which needs libraries that the product must not depend on. Each keeps
// its numbers as a file in results and renders all of them into RESULTS.md.
// "make bench" runs them.
package bench
