package durable

import "os"

// Temporary creates a file in a folder, which it creates if necessary. The file has no name, so that no other user can
// change it, and it is removed when it is closed, or when the process ends. If the folder is not writable, the file is
// in the system's folder for temporary files.
func Temporary(folder string) (*os.File, error) {
	err := os.MkdirAll(folder, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(folder, "*.part")
	}
	if err != nil && !IsDiskFull(err) {
		f, err = os.CreateTemp("", "tmshare-*.part")
	}
	if err == nil {
		_ = os.Remove(f.Name()) // a system that does not allow it keeps the name until the folder is emptied
	}
	return f, err
}
