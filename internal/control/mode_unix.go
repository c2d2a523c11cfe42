//go:build unix

package control

import "syscall"

// private makes a socket that is not bound yet one of its owner only. Linux
// obeys it, so that nobody else can connect before the mode of the file is set.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
