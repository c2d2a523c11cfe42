package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// commit writes the changes of t, synced, all or nothing. The caller holds
// db.write.
func (db *DB) commit(t *tx) error {
	tap := t.tap
	t.tap = nil // what is read from here on is only to see what need not be written
	changes, err := t.changes()
	if err != nil || len(changes) == 0 {
		return err
	}
	if tap != nil {
		tap.commits(changes)
	}
	db.commits.Add(1)
	defer db.commits.Add(1)
	err = db.badger.Update(func(txn *badger.Txn) error { return apply(changes, txn) })
	if errors.Is(err, badger.ErrTxnTooBig) {
		return db.commitThroughJournal(changes)
	}
	return err
}

// change is a row to write, or with a nil value to delete.
type change struct{ key, value []byte }

// changes returns what t really changes, in the order of keys.
func (t *tx) changes() ([]change, error) {
	var changes []change
	var err error
	t.pending.Scan(func(key string, value []byte) bool {
		var old []byte
		if old, err = t.stored([]byte(key)); err != nil {
			return false
		}
		if (old == nil) != (value == nil) || !bytes.Equal(old, value) {
			changes = append(changes, change{[]byte(key), value})
		}
		return true
	})
	return changes, err
}

// writer is what badger.Txn and badger.WriteBatch have in common.
type writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
}

func apply(changes []change, w writer) error {
	for _, c := range changes {
		var err error
		if c.value == nil {
			err = w.Delete(c.key)
		} else {
			err = w.Set(c.key, c.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A commit that outgrows a transaction is first written to the journal, piece
// by piece; one row then decides it; then it is rolled forward. Readers wait
// while it is, so that they see the state before or after. After a crash, a
// decided commit is rolled forward again, which does no harm, and an undecided
// one is forgotten.

// journalPiece is about the size in bytes of one row of the journal.
const journalPiece = 256 << 10

// maxKey is the length of the longest key that Badger takes. A decided commit
// must not have a longer one: it could never be carried out.
const maxKey = 65000

func (db *DB) commitThroughJournal(changes []change) error {
	if err := db.clearJournal(); err != nil {
		return err
	}
	pieces, err := db.writeJournal(changes)
	if err != nil {
		return errors.Join(fmt.Errorf("store: commit of %d rows: %w", len(changes), err), db.clearJournal())
	}
	return db.carryOut(pieces)
}

// carryOut decides the commit in the journal and rolls it forward. Where that
// fails, the state is between before and after, and nothing shows it: the
// database is of no use until it is opened again.
func (db *DB) carryOut(pieces uint64) error {
	db.view.Lock()
	defer db.view.Unlock()
	err := db.badger.Update(func(txn *badger.Txn) error {
		return txn.Set([]byte{tableJournalCommit}, binary.BigEndian.AppendUint64(nil, pieces))
	})
	if err != nil {
		err = fmt.Errorf("store: commit: %w", err)
		if failed := db.clearJournal(); failed != nil { // it may be decided after all
			db.unusable = errors.Join(err, failed)
			return db.unusable
		}
		return err
	}
	if err := db.rollForward(pieces); err != nil {
		db.unusable = fmt.Errorf("store: a commit is decided, but could not be carried out; it will be when the store is opened again: %w", err)
		return db.unusable
	}
	return nil
}

func (db *DB) writeJournal(changes []change) (pieces uint64, err error) {
	batch := db.badger.NewWriteBatch()
	defer batch.Cancel()
	var piece []byte
	flush := func() error {
		key := binary.BigEndian.AppendUint64([]byte{tableJournal}, pieces)
		pieces++
		err := batch.Set(key, piece)
		piece = nil
		return err
	}
	for _, c := range changes {
		if len(c.key) > maxKey {
			return 0, fmt.Errorf("a key of %d bytes is too long: %.80q…", len(c.key), c.key)
		}
		piece = binary.AppendUvarint(piece, uint64(len(c.key)))
		piece = append(piece, c.key...)
		if c.value == nil {
			piece = binary.AppendUvarint(piece, 0)
		} else {
			piece = binary.AppendUvarint(piece, uint64(len(c.value))+1)
			piece = append(piece, c.value...)
		}
		if len(piece) >= journalPiece {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if err := flush(); err != nil {
		return 0, err
	}
	return pieces, batch.Flush()
}

var errCorruptJournal = errors.New("corrupt journal")

// readPiece is the inverse of what writeJournal puts into one row.
func readPiece(piece []byte) ([]change, error) {
	var changes []change
	for len(piece) > 0 {
		var c change
		n, size := binary.Uvarint(piece)
		if size <= 0 || n > uint64(len(piece)-size) {
			return nil, errCorruptJournal
		}
		c.key, piece = piece[size:size+int(n)], piece[size+int(n):]
		n, size = binary.Uvarint(piece)
		if size <= 0 || n > uint64(len(piece)-size)+1 {
			return nil, errCorruptJournal
		}
		piece = piece[size:]
		if n > 0 {
			c.value, piece = piece[:n-1:n-1], piece[n-1:]
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// rollForward carries out the decided commit and removes the journal.
func (db *DB) rollForward(pieces uint64) error {
	t := &tx{base: db.badger.NewTransaction(false)}
	defer t.discard()
	batch := db.badger.NewWriteBatch()
	defer batch.Cancel()
	found := uint64(0)
	for r, err := range t.scan([]byte{tableJournal}, nil) {
		if err != nil {
			return err
		}
		found++
		changes, err := readPiece(r.value)
		if err != nil {
			return err
		}
		if err := apply(changes, batch); err != nil {
			return err
		}
	}
	if found != pieces {
		return fmt.Errorf("%w: %d pieces, not %d", errCorruptJournal, found, pieces)
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	return db.clearJournal()
}

// clearJournal removes the decision first, then the pieces: a crash between the
// two leaves pieces that nothing decides.
func (db *DB) clearJournal() error {
	err := db.badger.Update(func(txn *badger.Txn) error { return txn.Delete([]byte{tableJournalCommit}) })
	if err != nil {
		return err
	}
	return db.deletePrefix([]byte{tableJournal})
}

func (db *DB) recoverJournal() error {
	t := &tx{base: db.badger.NewTransaction(false)}
	defer t.discard()
	decided, err := t.stored([]byte{tableJournalCommit})
	if err != nil {
		return err
	}
	if decided != nil {
		if len(decided) != 8 {
			return errCorruptJournal
		}
		db.log.Info("finishing a commit that was interrupted")
		return db.rollForward(binary.BigEndian.Uint64(decided))
	}
	return db.deletePrefix([]byte{tableJournal})
}

// deletePrefix removes all rows whose keys begin with prefix, in no single
// transaction: only for rows that nothing shows any more.
func (db *DB) deletePrefix(prefix []byte) error {
	t := &tx{base: db.badger.NewTransaction(false)}
	defer t.discard()
	o := badger.DefaultIteratorOptions
	o.Prefix, o.PrefetchValues = prefix, false
	it := t.base.NewIterator(o)
	defer it.Close()
	batch := db.badger.NewWriteBatch()
	defer batch.Cancel()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := batch.Delete(it.Item().KeyCopy(nil)); err != nil {
			return err
		}
	}
	return batch.Flush()
}
