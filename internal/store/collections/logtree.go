package collections

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// ErrHashMissing is the error for a missing hash of the tree.
var ErrHashMissing = errors.New("a hash is missing")

// LogTree is the tree of a collection's log, as a transaction has it.
type LogTree struct {
	Tx  *txn.Tx
	Log keys.Source // the number of the log's rows, see [Collection.Log]
}

func (t LogTree) key(index int64) []byte {
	return t.Log.Numbered(keys.TableLogHash, uint64(index))
}

// ReadHashes implements [tlog.HashReader].
func (t LogTree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		value, err := t.Tx.Get(t.key(index))
		if err == nil && len(value) != tlog.HashSize {
			err = fmt.Errorf("%w from the tree of the log: the one with the index %d", ErrHashMissing, index)
		}
		if err != nil {
			return nil, err
		}
		copy(all[i][:], value)
	}
	return all, nil
}

// LogWriter appends leaves to a tree. It keeps the written hashes that the next leaf needs.
type LogWriter struct {
	LogTree
	Put  func(key, value []byte) error
	edge []edge // by level: the last hash that was written there
}

type edge struct {
	index int64
	hash  tlog.Hash
}

// ReadHashes implements [tlog.HashReader].
func (w *LogWriter) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if at := slices.IndexFunc(w.edge, func(e edge) bool { return e.index == index }); at >= 0 {
			all[i] = w.edge[at].hash
			continue
		}
		stored, err := w.LogTree.ReadHashes([]int64{index})
		if err != nil {
			return nil, err
		}
		all[i] = stored[0]
	}
	return all, nil
}

// Append adds a leaf to a tree of n leaves.
func (w *LogWriter) Append(n uint64, leaf []byte) error {
	return w.AppendHash(n, tlog.RecordHash(leaf))
}

// AppendHash is Append of a leaf of which the hash is known.
func (w *LogWriter) AppendHash(n uint64, leaf tlog.Hash) error {
	hashes, err := tlog.StoredHashesForRecordHash(int64(n), leaf, w)
	if err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, int64(n))
	for level := range hashes {
		index := first + int64(level)
		if err := w.Put(w.key(index), hashes[level][:]); err != nil {
			return err
		}
		if level == len(w.edge) {
			w.edge = append(w.edge, edge{index: -1})
		}
		w.edge[level] = edge{index, hashes[level]}
	}
	return nil
}
