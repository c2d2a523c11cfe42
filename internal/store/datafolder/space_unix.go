//go:build linux || darwin || freebsd

package datafolder

import "syscall"

// FreeBytes returns the number of bytes that this process may still write to the disk of a folder.
func FreeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
