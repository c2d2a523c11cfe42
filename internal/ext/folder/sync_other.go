//go:build !linux

package folder

import (
	"errors"
	"os"
)

// syncFiles makes files of a folder durable, and renamed entries of it and of folders below it.
func syncFiles(root *os.Root, dir *os.File, names, below []string) error {
	for _, name := range names {
		file, err := root.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	for _, name := range below {
		if sub, err := root.Open(name); err == nil { // otherwise it became empty and was removed
			err = errors.Join(syncNames(sub), sub.Close())
			if err != nil {
				return err
			}
		}
	}
	return syncNames(dir)
}

// syncNames makes renamed entries of a folder durable, if the system supports that.
func syncNames(dir *os.File) error {
	_ = dir.Sync()
	return nil
}
