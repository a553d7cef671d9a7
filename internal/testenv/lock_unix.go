//go:build unix

package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockInstalling keeps test processes of several packages, which run beside each
// other, from installing at once. The kernel lets go of it with the process.
func lockInstalling() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "foyer-testenv-install.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open install lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("take install lock: %w", err)
	}
	return func() { _ = file.Close() }, nil
}
