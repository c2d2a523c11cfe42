//go:build unix

package control

import "syscall"

// private restricts a socket that is not bound yet to its owner. Linux applies it, so that no other user can connect
// before the mode of the file is set.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
