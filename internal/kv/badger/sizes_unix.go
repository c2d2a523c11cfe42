//go:build unix

package badger

import (
	"os"
	"syscall"
)

// allocated returns the bytes of a file that take space on disk. Badger makes its
// logs as large as they may become, and fills them later.
func allocated(info os.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Blocks) * 512
	}
	return info.Size()
}

// isRemoved reports whether the folder no longer has a name.
func (f *Folder) isRemoved() bool {
	info, err := f.place.File().Stat()
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
