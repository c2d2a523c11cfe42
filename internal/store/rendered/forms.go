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

// Version is the number of the way in which fragments and records are written. What has an address has the same bytes
// for good, and its ETag is made of this number: a change of the bytes needs a new one.
const Version = First

// First is the version of all that states none.
const First = 1

// Knows reports whether this program writes in the way with a number.
func Knows(version uint64) bool { return version == Version }

// MaxSmall is the size in bytes up to which a document is made in memory, kept and described. A larger one is made in a
// file.
const MaxSmall = 256 << 10

// ErrLarge says that a document is larger than [MaxSmall].
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
