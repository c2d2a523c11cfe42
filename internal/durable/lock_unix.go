//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// CanLock states that Lock excludes other processes.
const CanLock = true

// Lock keeps other processes from a file or a folder until it is closed, or, where the lock is shared, from having it
// alone. held reports that another process has it. A lock belongs to the open file: a process that this one is just
// starting has it too, until it executes its program.
func Lock(f *os.File, shared bool) (held bool, err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		err = fmt.Errorf("%s: %w", f.Name(), os.NewSyscallError("flock", err))
	}
	return false, err
}
