package folder

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFiles brings files of a folder, and what was renamed in it, to the disk: all at
// once, which takes a fraction of the time of one after the other.
func syncFiles(_ *os.Root, dir *os.File, _, _ []string) error {
	return os.NewSyscallError("syncfs", unix.Syncfs(int(dir.Fd())))
}

// syncNames brings what was renamed in a folder to the disk.
func syncNames(dir *os.File) error { return dir.Sync() }
