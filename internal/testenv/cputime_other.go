//go:build !unix

package testenv

import "time"

var begin = time.Now()

// CPUTime returns the time since the process began, where its processor time is
// not available.
func CPUTime() time.Duration { return time.Since(begin) }
