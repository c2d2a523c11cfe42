//go:build !unix

package badger

import "os"

func allocated(info os.FileInfo) int64 { return info.Size() }

func (f *Folder) isRemoved() bool { return false }
