//go:build unix

package api

import (
	"errors"
	"syscall"
)

// writeNow writes what the kernel has room for; nothing is no error.
func writeNow(fd uintptr, p []byte) (n int, err error) {
	n, err = syscall.Write(int(fd), p)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		err = nil
	}
	return max(n, 0), err
}
