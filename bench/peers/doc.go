// Package peers measures Foyer beside others who do the same work: the stock
// subscriber of its message library, asynq and centrifuge. It is a module of its
// own, so that what it needs to compare is no requirement of the product.
package peers
