package durable

import "os"

// Temporary makes a file in a folder, which is made where it is not there. The file has no name, so that nobody else
// can change it, and it goes when it is closed, or when the process ends. Where nothing can be made in the folder, as
// it is only read, the file is in that of the system for such files.
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
