package pg

import (
	"crypto/sha256"

	"github.com/tmshare/tmshare/internal/kv"
)

// maxHead is the length of the indexed part of a key, in bytes. PostgreSQL allows about 2,700 for an entry.
const maxHead = 2000

// split returns the parts of a key by which the database orders it.
func split(key []byte) (head, tail []byte) {
	if len(key) <= maxHead {
		return key, empty
	}
	return key[:maxHead], key[maxHead:]
}

// hashOf returns the hash of a tail.
func hashOf(tail []byte) []byte {
	if len(tail) == 0 {
		return empty
	}
	h := sha256.Sum256(tail)
	return h[:]
}

var empty = []byte{} // nil is NULL

// bounds are the keys of a range: from low on, below high. A nil high is above all.
type bounds struct{ low, high []byte }

// within returns the bounds of a range as [kv.Reader] has them.
func within(prefix, from []byte, reverse bool) bounds {
	b := bounds{low: prefix, high: kv.After(prefix)}
	switch {
	case from == nil:
	case !reverse:
		if string(from) > string(b.low) {
			b.low = from
		}
	case b.high == nil || string(from) < string(b.high):
		b.high = next(from)
	}
	return b
}

// next returns the least key that is greater.
func next(key []byte) []byte { return append(key[:len(key):len(key)], 0) }
