package durable

import (
	"errors"
	"syscall"
)

// IsDiskFull reports whether an error means that the disk is full.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
