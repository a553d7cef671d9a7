package testenv

import "syscall"

func childAttributes(owner *syscall.Credential, death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: death, Setpgid: true}
}
