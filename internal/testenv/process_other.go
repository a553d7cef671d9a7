//go:build unix && !linux

package testenv

import "syscall"

// Only Linux tells children of their parent's death; elsewhere the servers end
// with Main, and outlive a test process that was killed.
func childAttributes(owner *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Setpgid: true}
}
