//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package backup

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// How often, and how long apart, a lock that is held is tried.
const (
	lockTries = 20
	lockPause = 25 * time.Millisecond
)

// lockFolder keeps other processes from writing to a folder of backups until the file is closed.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	// A process that this one is just starting holds the lock of the last backup for a moment, until
	// it executes its program: a lock belongs to the open file, which both have.
	for tries := 0; ; tries++ {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || tries == lockTries {
			break
		}
		time.Sleep(lockPause)
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("another backup into %s is being made: wait until it has ended, or name another folder", path)
	}
	return nil, fmt.Errorf("%s: %w", path, os.NewSyscallError("flock", err))
}
