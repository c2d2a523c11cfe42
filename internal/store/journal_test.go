package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// interrupted is a database in which a commit has been left off at some stage of
// the journal. Its rows are in a table of their own.
type interrupted struct {
	t             *testing.T
	db            *DB
	changes       []change
	pieces        uint64
	before, after []string
}

// interruptible prepares a commit of several pieces: rows that are new, that
// change, that go, and one without a value.
func interruptible(t *testing.T) *interrupted {
	i := &interrupted{t: t, db: openDB(t, t.TempDir())}
	old, large := []byte("old"), bytes.Repeat([]byte("new "), journalPiece/4)
	require.NoError(t, i.db.update(func(tx *tx) error {
		return errors.Join(tx.put([]byte("x/a"), old), tx.put([]byte("x/c"), old), tx.put([]byte("x/e"), old), tx.put([]byte("x/z"), old))
	}))
	i.before = i.rows()
	i.changes = []change{
		{[]byte("x/a"), large}, {[]byte("x/b"), large}, {[]byte("x/c"), nil}, {[]byte("x/d"), []byte{}}, {[]byte("x/e"), large}, {[]byte("x/f"), old},
	}
	i.after = []string{"x/a=" + string(large), "x/b=" + string(large), "x/d=", "x/e=" + string(large), "x/f=old", "x/z=old"}
	return i
}

func (i *interrupted) rows() (rows []string) {
	i.t.Helper()
	require.NoError(i.t, i.db.viewing(func(tx *tx) error {
		rows = scanned(i.t, tx, []byte("x/"), nil)
		return nil
	}))
	return rows
}

func (i *interrupted) write() {
	i.t.Helper()
	var err error
	i.pieces, err = i.db.writeJournal(i.changes)
	require.NoError(i.t, err)
	require.Greater(i.t, i.pieces, uint64(2), "the commit has several pieces")
}

func (i *interrupted) decide() {
	i.t.Helper()
	i.set([]byte{tableJournalCommit}, binary.BigEndian.AppendUint64(nil, i.pieces))
}

func (i *interrupted) set(key, value []byte) {
	i.t.Helper()
	require.NoError(i.t, i.db.badger.Update(func(txn *badger.Txn) error {
		if value == nil {
			return txn.Delete(key)
		}
		return txn.Set(key, value)
	}))
}

// apply carries out some of the changes as a roll forward does.
func (i *interrupted) apply(changes []change) {
	i.t.Helper()
	require.NoError(i.t, i.db.badger.Update(func(txn *badger.Txn) error { return apply(changes, txn) }))
}

func pieceKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{tableJournal}, n) }

// A crash at any stage of a commit leaves the state before it or after it.
func TestACommitInTheJournalIsForgottenOrFinished(t *testing.T) {
	for _, stage := range []struct {
		name    string
		reach   func(*interrupted)
		decided bool
	}{
		{"nothing written", func(*interrupted) {}, false},
		{"some pieces written", func(i *interrupted) { i.write(); i.set(pieceKey(i.pieces-1), nil) }, false},
		{"all pieces written", func(i *interrupted) { i.write() }, false},
		{"decided", func(i *interrupted) { i.write(); i.decide() }, true},
		{"partly carried out", func(i *interrupted) { i.write(); i.decide(); i.apply(i.changes[2:4]) }, true},
		{"carried out", func(i *interrupted) { i.write(); i.decide(); i.apply(i.changes) }, true},
		{"decision removed", func(i *interrupted) {
			i.write()
			i.decide()
			i.apply(i.changes)
			i.set([]byte{tableJournalCommit}, nil)
		}, true},
		{"some pieces removed", func(i *interrupted) {
			i.write()
			i.apply(i.changes)
			i.set(pieceKey(0), nil)
		}, true},
	} {
		t.Run(stage.name, func(t *testing.T) {
			i := interruptible(t)
			stage.reach(i)
			for range 2 { // to open again changes nothing more
				i.db = reopen(t, i.db)
				if stage.decided {
					require.Equal(t, i.after, i.rows(), "the commit is finished")
				} else {
					require.Equal(t, i.before, i.rows(), "the commit is forgotten")
				}
				require.Zero(t, rows(t, i.db, "jJ"), "nothing is left of the journal")
			}
			require.NoError(t, i.db.commitThroughJournal(i.changes))
			require.Equal(t, i.after, i.rows(), "later commits can use the journal")
		})
	}
}

func TestRollingForwardTwiceIsRollingForwardOnce(t *testing.T) {
	i := interruptible(t)
	i.write()
	i.decide()
	require.NoError(t, i.db.rollForward(i.pieces))
	once := i.rows()
	require.Equal(t, i.after, once)
	i.write()
	i.decide()
	require.NoError(t, i.db.rollForward(i.pieces))
	require.Equal(t, once, i.rows())
}

// What an older commit has left in the journal is no part of a new one.
func TestLeftPiecesDoNotJoinALaterCommit(t *testing.T) {
	i := interruptible(t)
	i.write() // undecided: the process goes on after an error
	require.NoError(t, i.db.commitThroughJournal([]change{{[]byte("x/y"), []byte("later")}}))
	require.Equal(t, append(i.before[:3:3], "x/y=later", "x/z=old"), i.rows())
	require.Zero(t, rows(t, i.db, "jJ"))
}

// A journal that cannot be read is an error when the database is opened, every
// time, and nothing is thrown away.
func TestACorruptJournalIsAnError(t *testing.T) {
	for name, damage := range map[string]func(*interrupted){
		"a piece cut short":          func(i *interrupted) { i.set(pieceKey(1), i.piece(1)[:10]) },
		"a piece with more":          func(i *interrupted) { i.set(pieceKey(1), append(i.piece(1), 7)) },
		"a key of nonsense length":   func(i *interrupted) { i.set(pieceKey(0), bytes.Repeat([]byte{0xFF}, 9)) },
		"a value of nonsense length": func(i *interrupted) { i.set(pieceKey(0), append([]byte{1, 'x'}, bytes.Repeat([]byte{0xFF}, 9)...)) },
		"an endless number":          func(i *interrupted) { i.set(pieceKey(0), bytes.Repeat([]byte{0xFF}, 30)) },
		"a row without a key":        func(i *interrupted) { i.set(pieceKey(0), []byte{0, 0}) },
		"a piece missing":            func(i *interrupted) { i.set(pieceKey(1), nil) },
		"a piece too many":           func(i *interrupted) { i.set(pieceKey(i.pieces), []byte{}) },
		"a decision cut short":       func(i *interrupted) { i.set([]byte{tableJournalCommit}, []byte{0, 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			i := interruptible(t)
			i.write()
			i.decide()
			damage(i)
			require.NoError(t, i.db.Close())
			for range 2 {
				_, err := Open(testOptions(i.db.Dir()))
				require.Error(t, err)
				require.ErrorContains(t, err, i.db.Dir())
			}
		})
	}
}

func (i *interrupted) piece(n uint64) []byte {
	var value []byte
	require.NoError(i.t, i.db.viewing(func(tx *tx) (err error) { value, err = tx.get(pieceKey(n)); return err }))
	return value
}

// A decided commit that cannot be carried out stops the database: neither a
// reader nor the next writer meets a state between, and the commit is not
// forgotten.
func TestACommitThatCannotBeCarriedOutStopsTheDatabase(t *testing.T) {
	i := interruptible(t)
	i.write()
	good := i.piece(1)
	i.set(pieceKey(1), good[:10])
	require.ErrorIs(t, i.db.carryOut(i.pieces), errCorruptJournal)
	require.ErrorIs(t, i.db.viewing(func(*tx) error { t.Error("a reader is let in"); return nil }), errCorruptJournal)
	require.ErrorIs(t, i.db.update(func(*tx) error { t.Error("a writer is let in"); return nil }), errCorruptJournal)
	i.set(pieceKey(1), good) // the disk is back
	i.db = reopen(t, i.db)
	require.Equal(t, i.after, i.rows())
}

// A row that cannot be written is found before the commit is decided; otherwise
// the database could never be opened again.
func TestAnImpossibleRowIsNoCommit(t *testing.T) {
	for name, changes := range map[string][]change{
		"key too long":   {{[]byte("x/b"), nil}, {bytes.Repeat([]byte("x"), maxKey+1), []byte("v")}},
		"value too long": {{[]byte("x/b"), nil}, {[]byte("x/c"), make([]byte, 65<<20)}},
	} {
		t.Run(name, func(t *testing.T) {
			i := interruptible(t)
			require.Error(t, i.db.commitThroughJournal(changes))
			require.Equal(t, i.before, i.rows())
			i.db = reopen(t, i.db)
			require.Equal(t, i.before, i.rows())
		})
	}
	i := interruptible(t)
	require.NoError(t, i.db.commitThroughJournal([]change{{bytes.Repeat([]byte("x"), maxKey), []byte("v")}}), "the longest key is possible")
	require.Equal(t, len(i.before)+1, rows(t, i.db, "x"))
}

// The journal of a newer program is not for this one to read.
func TestAJournalInANewerFormatIsLeftAlone(t *testing.T) {
	i := interruptible(t)
	i.write()
	i.decide()
	i.set(metaKey("format"), fmt.Append(nil, FormatVersion+1))
	require.NoError(t, i.db.Close())
	_, err := Open(testOptions(i.db.Dir()))
	require.ErrorContains(t, err, fmt.Sprintf("format %d", FormatVersion+1))
	b, err := badger.Open(badgerOptions(i.db.Dir()+"/badger", testOptions("").Logger))
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.View(func(txn *badger.Txn) error {
		_, err := txn.Get([]byte{tableJournalCommit})
		return err
	}), "it is still there")
}

// Pieces are read as they were written.
func TestPiecesRoundTrip(t *testing.T) {
	db := openDB(t, t.TempDir())
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40)
		value := rapid.Ptr(rapid.SliceOfN(rapid.Byte(), 0, 300), true)
		var changes []change
		for range rapid.IntRange(1, 10).Draw(r, "rows") {
			c := change{key: key.Draw(r, "key")}
			if v := value.Draw(r, "value"); v != nil {
				c.value = *v
			}
			changes = append(changes, c)
		}
		pieces, err := db.writeJournal(changes)
		require.NoError(r, err)
		require.Equal(r, uint64(1), pieces)
		var piece []byte
		require.NoError(r, db.viewing(func(tx *tx) (err error) { piece, err = tx.get(pieceKey(0)); return err }))
		again, err := readPiece(piece)
		require.NoError(r, err)
		require.Equal(r, changes, again)
	})
}

// No bytes whatever make the reader of pieces panic.
func TestReadingAPieceDoesNotPanic(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		_, _ = readPiece(rapid.SliceOf(rapid.Byte()).Draw(r, "piece"))
	})
}
