package filestate

import (
	"fmt"
	"io/fs"
	"syscall"
)

func identity(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(" ", s.Dev, s.Ino, s.Ctim.Nano())
}
