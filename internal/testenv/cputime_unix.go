//go:build unix

package testenv

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used. Differences of
// it are not disturbed by what else the machine is doing.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
