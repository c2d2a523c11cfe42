//go:build unix

package testenv

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used. Other programs of the machine do not disturb
// differences of it.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
