package durable

import (
	"errors"
	"syscall"
)

// IsDiskFull reports whether an error is that nothing can be written to the disk any more.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
