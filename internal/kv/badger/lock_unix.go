//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package badger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tmshare/tmshare/internal/durable"
)

// CanShare says that several processes can read a database at the same time, since the lock is
// ours and not Badger's.
const CanShare = true

// flock locks the folder of a database until the file is closed, as Badger does itself.
func flock(path string, shared bool) (*durable.Place, error) {
	p, err := durable.OpenPlace(path)
	if err != nil {
		return nil, err
	}
	f := p.File()
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if err == nil {
		if p.CheckPlace() != nil { // it was removed meanwhile, see Options.Closed
			p.Close()
			return nil, fmt.Errorf("%w: %s has just been removed: try again", ErrLocked, filepath.Dir(path))
		}
		return p, nil
	}
	defer p.Close()
	switch {
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return nil, fmt.Errorf("%s: %w", f.Name(), os.NewSyscallError("flock", err))
	case !shared && syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrLocked, filepath.Dir(path), ErrBeingRead)
	}
	return nil, fmt.Errorf("%w: %s (is another tmshare command running on it? Wait for it, stop it, or name another folder with --data)", ErrLocked, filepath.Dir(path))
}
