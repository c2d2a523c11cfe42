package datafolder

import (
	"fmt"
	"syscall"
)

// MinFree is the number of free bytes on the disk that a write requires. Badger maps its files into memory, and a full
// disk under such a file ends the process.
const MinFree = 64 << 20

// CheckFreeSpace returns an error, which is ENOSPC, if the disk of a folder is nearly full.
func CheckFreeSpace(dir string) error {
	free, err := FreeBytes(dir)
	if err != nil || free >= MinFree { // if unknown, the write itself will fail
		return nil
	}
	return fmt.Errorf(
		"%s: %w: %d MB are free, %d MB must be. Nothing was changed; free some space on this disk, and try again", dir,
		syscall.ENOSPC, free>>20, MinFree>>20)
}
