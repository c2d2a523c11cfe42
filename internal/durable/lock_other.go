//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package durable

import "os"

// CanLock is false where there is no flock: see to it that one process has a file or a folder.
const CanLock = false

// Lock does nothing.
func Lock(*os.File, bool) (held bool, err error) { return false, nil }
