package testenv

import (
	"os"
	"runtime/debug"
)

// Tests have small heaps and much garbage: the collector takes a fifth of their time unless it waits for more.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(250)
	}
}
