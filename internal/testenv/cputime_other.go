//go:build !unix

package testenv

import "time"

var begin = time.Now()

// CPUTime returns the time since the process began, where its processor time is
// not to be had.
func CPUTime() time.Duration { return time.Since(begin) }
