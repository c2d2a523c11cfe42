// Package logtree keeps the log of a collection as a Merkle tree (RFC 6962 §2.1, Merkle Hash Trees). Its hashes are rows that stay for
// ever: those of entries that are pruned prove that the log goes on from what it was.
package logtree

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// ErrMissing says that a hash of the tree is not there.
var ErrMissing = errors.New("a hash is missing")

// Tree is the tree of a collection's log, as a transaction has it.
type Tree struct {
	Tx     *txn.Tx
	Number uint32 // of the collection
}

func (t Tree) key(index int64) []byte {
	return keys.Sequence(keys.TableLogHash, t.Number, uint64(index))
}

// ReadHashes implements [tlog.HashReader].
func (t Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		value, err := t.Tx.Get(t.key(index))
		if err == nil && len(value) != tlog.HashSize {
			err = fmt.Errorf("%w from the tree of the log: the one with the index %d", ErrMissing, index)
		}
		if err != nil {
			return nil, err
		}
		copy(all[i][:], value)
	}
	return all, nil
}

// Append adds a leaf to a tree of n leaves.
func (t Tree) Append(n uint64, leaf []byte) error {
	hashes, err := tlog.StoredHashesForRecordHash(int64(n), tlog.RecordHash(leaf), t)
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, int64(n))
	for i := range hashes {
		if err := t.Tx.Put(t.key(first+int64(i)), hashes[i][:]); err != nil {
			return err
		}
	}
	return nil
}

// Compare reports whether leaf n, which counts from 0, and the hashes above it are as they must be. Of an entry that is not there any more
// the leaf is nil, and its hash is taken as it is.
func (t Tree) Compare(n uint64, leaf []byte) (bool, error) {
	first := tlog.StoredHashIndex(0, int64(n))
	have, err := t.ReadHashes([]int64{first})
	if err != nil {
		return false, err
	}
	if leaf != nil {
		have[0] = tlog.RecordHash(leaf)
	}
	want, err := tlog.StoredHashesForRecordHash(int64(n), have[0], t)
	if err != nil {
		return false, err
	}
	for i := range want {
		if have, err = t.ReadHashes([]int64{first + int64(i)}); err != nil || have[0] != want[i] {
			return false, err
		}
	}
	return true, nil
}
