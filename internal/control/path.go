package control

import (
	"os"
	"path/filepath"
)

// socketName is the name of the socket in the data folder.
const socketName = "control.sock"

// maxPath is the length that every system takes as the address of a socket
// (sun_path of sockaddr_un: 104 bytes on BSD and macOS, 108 on Linux, with the
// zero at the end).
const maxPath = 103

// withAddress calls f with an address of the socket in dir. If the path is too long for one, it uses a link in the
// folder for temporary files, because only the length of the given path is limited.
func withAddress(dir string, f func(address string) error) error {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxPath {
		return f(path)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	short, err := os.MkdirTemp("", "tmshare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(short)
	link := filepath.Join(short, "d")
	if err := os.Symlink(abs, link); err != nil {
		return err
	}
	return f(filepath.Join(link, socketName))
}
