//go:build !linux

package folder

import (
	"errors"
	"os"
)

// syncFiles brings files of a folder, and what was renamed in it and in folders below it, to
// the disk.
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
		if sub, err := root.Open(name); err == nil { // else it is empty by now, and gone
			err = errors.Join(syncNames(sub), sub.Close())
			if err != nil {
				return err
			}
		}
	}
	return syncNames(dir)
}

// syncNames brings what was renamed in a folder to the disk, where that can be asked for.
func syncNames(dir *os.File) error {
	_ = dir.Sync()
	return nil
}
