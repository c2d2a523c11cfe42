//go:build !unix

package store

import "os"

func allocated(info os.FileInfo) int64 { return info.Size() }
