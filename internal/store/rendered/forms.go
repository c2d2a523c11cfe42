package rendered

import (
	"bytes"
	"errors"

	"github.com/tmshare/tmshare/xtm"
)

// Forms are the XTM versions in which fragments and snapshots are available.
var Forms = [...]xtm.Version{xtm.V10, xtm.V21}

// Snapshot is the form in which snapshots are stored. It carries all, and the others are made of it.
const Snapshot = xtm.V21

// Version is the version of the output of fragments and records. An address always has the same bytes, and its ETag
// contains this version: a change of the bytes needs a new version.
const Version = First

// First is the version if none is stated.
const First = 1

// Knows reports whether this program supports a version.
func Knows(version uint64) bool { return version == Version }

// MaxSmall is the size in bytes up to which a document is made in memory, kept and described. A larger one is made in a
// file.
const MaxSmall = 256 << 10

// ErrLarge is the error for a document larger than [MaxSmall].
var ErrLarge = errors.New("the document is large")

// Small is a document in memory. Writing more than [MaxSmall] bytes is [ErrLarge].
type Small struct{ bytes.Buffer }

// Write implements [io.Writer].
func (s *Small) Write(p []byte) (int, error) {
	if s.Len()+len(p) > MaxSmall {
		return 0, ErrLarge
	}
	return s.Buffer.Write(p)
}
