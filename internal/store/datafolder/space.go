package datafolder

import (
	"fmt"
	"syscall"
)

// MinFree is how many bytes must be free on the disk for a write to begin. Badger
// maps its files into memory, and a full disk under such a file ends the process.
const MinFree = 64 << 20

// CheckFreeSpace returns an error, which is ENOSPC, if the disk of a folder is nearly full.
func CheckFreeSpace(dir string) error {
	free, err := FreeBytes(dir)
	if err != nil || free >= MinFree { // where nothing can be known, writing shows it
		return nil
	}
	return fmt.Errorf(
		"%s: %w: %d MB are free, %d MB must be. Nothing was changed; free some space on this disk, and try again", dir,
		syscall.ENOSPC, free>>20, MinFree>>20)
}
