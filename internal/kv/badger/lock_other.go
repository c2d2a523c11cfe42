//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package badger

import "github.com/tmshare/tmshare/internal/durable"

// CanShare is false where there is no flock: Badger keeps other processes out in its own way,
// and a database is always opened for writing, since Badger cannot share it there.
const CanShare = false

func flock(path string, _ bool) (*durable.Place, error) { return durable.OpenPlace(path) }
