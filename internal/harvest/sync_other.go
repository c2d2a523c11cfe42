//go:build !linux

package harvest

import (
	"errors"
	"os"
)

// syncFiles brings files of a folder, and what was renamed in it, to the disk.
func syncFiles(root *os.Root, dir *os.File, names []string) error {
	for _, name := range names {
		file, err := root.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return syncNames(dir)
}

// syncNames brings what was renamed in a folder to the disk, where that can be asked for.
func syncNames(dir *os.File) error {
	_ = dir.Sync()
	return nil
}
