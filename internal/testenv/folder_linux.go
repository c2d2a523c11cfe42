package testenv

import (
	"os"
	"syscall"
)

// Tests sync files thousands of times, which takes a part of the time in memory. Processes are killed, not machines: so
// nothing is tested less.
func init() {
	const folder, enough, noexec, writable = "/dev/shm", 8 << 30, 8, 2
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Access(folder, writable) != nil ||
		syscall.Statfs(folder, &fs) != nil || fs.Flags&noexec != 0 {
		return
	}
	if free := fs.Bavail * uint64(fs.Bsize); free > enough {
		os.Setenv("TMPDIR", folder)
	}
}
