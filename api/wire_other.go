//go:build !unix

package api

// writeNow writes nothing: elsewhere a write that waits for nothing is not to be had,
// so that every frame is left to its socket's own goroutine.
func writeNow(uintptr, []byte) (n int, err error) { return 0, nil }
