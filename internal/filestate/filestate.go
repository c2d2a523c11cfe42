// Package filestate tells whether a file was written since, without reading it.
package filestate

import (
	"fmt"
	"io/fs"
)

// Describe returns what changes when a file is written, or another one takes its place: its size and modification
// time, and where the system tells them, the time of its last change of any kind, which no program can set,
// and which file it is. It may change though the content does not.
func Describe(info fs.FileInfo) string {
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), identity(info))
}
