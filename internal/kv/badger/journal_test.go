package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testenv"
)

// interrupted is a database in which a commit has been left off at some stage of the journal.
type interrupted struct {
	t             *testing.T
	folder        string
	e             *Engine
	changes       []kv.Row
	pieces        uint64
	before, after []string
}

// interruptible prepares a commit of several pieces: rows that are new, that
// change, that go, and one without a value.
func interruptible(t *testing.T) *interrupted {
	i := &interrupted{t: t, folder: t.TempDir()}
	i.e = openIn(t, i.folder, Settings{})
	old, large := []byte("old"), bytes.Repeat([]byte("new "), journalPiece/4)
	i.commit([]kv.Row{{Key: []byte("x/a"), Value: old}, {Key: []byte("x/c"), Value: old}, {Key: []byte("x/e"), Value: old}, {Key: []byte("x/z"), Value: old}})
	i.before = i.rows()
	i.changes = []kv.Row{
		{Key: []byte("x/a"), Value: large}, {Key: []byte("x/b"), Value: large}, {Key: []byte("x/c")}, {Key: []byte("x/d"), Value: []byte{}},
		{Key: []byte("x/e"), Value: large}, {Key: []byte("x/f"), Value: old},
	}
	i.after = []string{"x/a=" + string(large), "x/b=" + string(large), "x/d=", "x/e=" + string(large), "x/f=old", "x/z=old"}
	return i
}

func (i *interrupted) reopen() {
	i.t.Helper()
	require.NoError(i.t, i.e.Close())
	i.e = openIn(i.t, i.folder, Settings{})
}

func (i *interrupted) rows() (rows []string) {
	i.t.Helper()
	r, err := i.e.Snapshot(i.t.Context())
	require.NoError(i.t, err)
	defer r.Close()
	for row, err := range r.Range([]byte("x/"), nil, false) {
		require.NoError(i.t, err)
		rows = append(rows, string(row.Key)+"="+string(row.Value))
	}
	return rows
}

// left counts the rows of the journal.
func (i *interrupted) left() (n int) {
	i.t.Helper()
	r := i.e.reader(i.t.Context())
	defer r.Close()
	for _, table := range []string{tableJournal, tableDecision} {
		for row, err := range r.rows(rowRange{prefix: []byte(table), own: true}) {
			require.NoError(i.t, err)
			if !bytes.Equal(row.Key, versionKey) {
				n++
			}
		}
	}
	return n
}

// begin begins a transaction with changes.
func (i *interrupted) begin(changes []kv.Row) (*transaction, error) {
	i.t.Helper()
	version, err := i.e.Version(i.t.Context())
	require.NoError(i.t, err)
	w, err := i.e.Begin(i.t.Context(), version)
	require.NoError(i.t, err)
	for _, c := range changes {
		if c.Value == nil {
			err = errors.Join(err, w.Delete(c.Key))
		} else {
			err = errors.Join(err, w.Put(c.Key, c.Value))
		}
	}
	return w.(*transaction), err
}

func (i *interrupted) commit(changes []kv.Row) {
	i.t.Helper()
	w, err := i.begin(changes)
	require.NoError(i.t, err)
	require.NoError(i.t, w.Commit())
}

// commitThroughJournal commits changes so that they go through the journal, whatever their size.
func (i *interrupted) commitThroughJournal(changes []kv.Row) error {
	i.t.Helper()
	w, err := i.begin(changes)
	defer w.Cancel()
	if err == nil {
		err = w.spill()
	}
	if err == nil {
		err = w.Commit()
	}
	return err
}

// write writes the pieces of the commit, as a process that is killed then.
func (i *interrupted) write() {
	i.t.Helper()
	j, err := i.e.beginJournal(i.t.Context())
	require.NoError(i.t, err)
	require.NoError(i.t, j.add(i.changes))
	i.pieces, err = j.end()
	require.NoError(i.t, err)
	require.Greater(i.t, i.pieces, uint64(2), "the commit has several pieces")
	<-i.e.journal
}

func (i *interrupted) decide() {
	i.t.Helper()
	i.set([]byte(tableDecision), binary.BigEndian.AppendUint64(nil, i.pieces))
}

func (i *interrupted) set(key, value []byte) {
	i.t.Helper()
	i.apply([]kv.Row{{Key: key, Value: value}})
}

// apply carries out changes as a roll forward does.
func (i *interrupted) apply(changes []kv.Row) {
	i.t.Helper()
	require.NoError(i.t, i.e.badger.Update(func(txn *badgerdb.Txn) error { return apply(changes, txn) }))
}

func pieceKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte(tableJournal), n) }

func (i *interrupted) piece(n uint64) []byte {
	i.t.Helper()
	r := i.e.reader(i.t.Context())
	defer r.Close()
	value, err := r.Get(pieceKey(n))
	require.NoError(i.t, err)
	return value
}

// A crash at any stage of a commit leaves the state before it or after it.
func TestACommitInTheJournalIsForgottenOrFinished(t *testing.T) {
	t.Parallel()
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
			i.set([]byte(tableDecision), nil)
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
				i.reopen()
				if stage.decided {
					require.Equal(t, i.after, i.rows(), "the commit is finished")
				} else {
					require.Equal(t, i.before, i.rows(), "the commit is forgotten")
				}
				require.Zero(t, i.left(), "nothing is left of the journal")
			}
			require.NoError(t, i.commitThroughJournal(i.changes))
			require.Equal(t, i.after, i.rows(), "later commits can use the journal")
			require.Equal(t, uint64(1), i.e.Journaled())
		})
	}
}

func TestRollingForwardTwiceIsRollingForwardOnce(t *testing.T) {
	t.Parallel()
	i := interruptible(t)
	i.write()
	i.decide()
	require.NoError(t, i.e.rollForward(i.pieces))
	once := i.rows()
	require.Equal(t, i.after, once)
	i.write()
	i.decide()
	require.NoError(t, i.e.rollForward(i.pieces))
	require.Equal(t, once, i.rows())
}

// What an older commit has left in the journal is no part of a new one, and no row of anybody.
func TestLeftPiecesDoNotJoinALaterCommit(t *testing.T) {
	t.Parallel()
	i := interruptible(t)
	i.write() // undecided: the process goes on after an error
	require.Positive(t, i.left())
	for _, reverse := range []bool{false, true} {
		r, err := i.e.Snapshot(t.Context())
		require.NoError(t, err)
		n := 0
		for _, err := range r.Range(nil, nil, reverse) {
			require.NoError(t, err)
			n++
		}
		r.Close()
		require.Len(t, i.before, n, "rows of the journal are in no iteration")
	}
	require.NoError(t, i.commitThroughJournal([]kv.Row{{Key: []byte("x/y"), Value: []byte("later")}}))
	require.Equal(t, append(i.before[:3:3], "x/y=later", "x/z=old"), i.rows())
	require.Zero(t, i.left())
}

// A commit that is given up leaves nothing, and the journal to the next one.
func TestACommitThatIsGivenUpLeavesTheJournal(t *testing.T) {
	t.Parallel()
	i := interruptible(t)
	w, err := i.begin(i.changes)
	require.NoError(t, err)
	require.NoError(t, w.spill())
	waiting, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = i.e.beginJournal(waiting)
	require.ErrorIs(t, err, context.Canceled, "there is one journal")
	w.Cancel()
	require.Zero(t, i.left())
	require.NoError(t, i.commitThroughJournal(i.changes))
	require.Equal(t, i.after, i.rows())
}

// A journal that cannot be read is an error when the database is opened, every
// time, and nothing is thrown away.
func TestACorruptJournalIsAnError(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*interrupted){
		"a piece cut short":          func(i *interrupted) { i.set(pieceKey(1), i.piece(1)[:10]) },
		"a piece with more":          func(i *interrupted) { i.set(pieceKey(1), append(i.piece(1), 7)) },
		"a key of nonsense length":   func(i *interrupted) { i.set(pieceKey(0), bytes.Repeat([]byte{0xFF}, 9)) },
		"a value of nonsense length": func(i *interrupted) { i.set(pieceKey(0), append([]byte{1, 'x'}, bytes.Repeat([]byte{0xFF}, 9)...)) },
		"an endless number":          func(i *interrupted) { i.set(pieceKey(0), bytes.Repeat([]byte{0xFF}, 30)) },
		"a row without a key":        func(i *interrupted) { i.set(pieceKey(0), []byte{0, 0}) },
		"a piece missing":            func(i *interrupted) { i.set(pieceKey(1), nil) },
		"a piece too many":           func(i *interrupted) { i.set(pieceKey(i.pieces), []byte{}) },
		"a decision cut short":       func(i *interrupted) { i.set([]byte(tableDecision), []byte{0, 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			i := interruptible(t)
			i.write()
			i.decide()
			damage(i)
			left := i.left()
			require.NoError(t, i.e.Close())
			for range 2 {
				_, err := tryToOpen(i.folder, Options{})
				require.Error(t, err)
			}
			f, err := Lock(i.folder, false)
			require.NoError(t, err)
			i.e, err = f.open(Options{})
			require.NoError(t, err)
			defer i.e.Close()
			require.Equal(t, left, i.left(), "nothing is thrown away")
		})
	}
}

// A decided commit that cannot be carried out stops the database: neither a
// reader nor the next writer meets a state between, and the commit is not
// forgotten.
func TestACommitThatCannotBeCarriedOutStopsTheDatabase(t *testing.T) {
	t.Parallel()
	i := interruptible(t)
	i.write()
	good := i.piece(1)
	i.set(pieceKey(1), good[:10])
	require.ErrorIs(t, (&journal{engine: i.e}).carryOut(i.pieces), errCorruptJournal)
	_, err := i.e.Snapshot(t.Context())
	require.ErrorIs(t, err, errCorruptJournal)
	_, err = i.e.Version(t.Context())
	require.ErrorIs(t, err, errCorruptJournal)
	_, err = i.e.Begin(t.Context(), kv.First)
	require.ErrorIs(t, err, errCorruptJournal)
	i.set(pieceKey(1), good) // the disk is back
	i.reopen()
	require.Equal(t, i.after, i.rows())
}

// A row that cannot be written is found before the commit is decided; otherwise
// the database could never be opened again.
func TestAnImpossibleRowIsNoCommit(t *testing.T) {
	t.Parallel()
	i := interruptible(t)
	require.Error(t, i.commitThroughJournal([]kv.Row{{Key: []byte("x/b")}, {Key: []byte("x/c"), Value: make([]byte, 65<<20)}}))
	require.Equal(t, i.before, i.rows())
	i.reopen()
	require.Equal(t, i.before, i.rows())
	longest := bytes.Repeat([]byte("x"), kv.MaxKey)
	require.NoError(t, i.commitThroughJournal([]kv.Row{{Key: longest, Value: []byte("v")}}), "the longest key is possible")
	r, err := i.e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	value, err := r.Get(longest)
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
}

// What is not accepted is left as it is, the journal too.
func TestRowsThatAreNotAcceptedAreLeftAlone(t *testing.T) {
	t.Parallel()
	i := interruptible(t)
	i.write()
	i.decide()
	require.NoError(t, i.e.Close())
	wrong := errors.New("of a newer format")
	for _, readOnly := range []bool{false, true} {
		seen := false
		_, err := tryToOpen(i.folder, Options{ReadOnly: readOnly, Accept: func(r kv.Reader) error {
			value, err := r.Get([]byte("x/a"))
			seen = string(value) == "old"
			return errors.Join(err, wrong)
		}})
		require.ErrorIs(t, err, wrong)
		require.True(t, seen, "it is asked before the journal is carried out")
	}
	_, err := tryToOpen(i.folder, Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrRecover, "who only reads carries nothing out")
	i.e = openIn(t, i.folder, Settings{})
	require.Equal(t, i.after, i.rows(), "it is still there")
}

// Pieces are read as they were written.
func TestPiecesRoundTrip(t *testing.T) {
	testenv.Check(t, 25, 100, func(r *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40)
		value := rapid.Ptr(rapid.SliceOfN(rapid.Byte(), 0, 300), true)
		var changes []kv.Row
		var piece []byte
		for range rapid.IntRange(1, 10).Draw(r, "rows") {
			c := kv.Row{Key: key.Draw(r, "key")}
			if v := value.Draw(r, "value"); v != nil {
				c.Value = *v
			}
			changes = append(changes, c)
			piece = appendChange(piece, c)
		}
		again, err := readPiece(piece)
		require.NoError(r, err)
		require.Equal(r, changes, again)
	})
}

// No bytes whatever make the reader of pieces panic.
func TestReadingAPieceDoesNotPanic(t *testing.T) {
	testenv.Check(t, 25, 100, func(r *rapid.T) {
		_, _ = readPiece(rapid.SliceOf(rapid.Byte()).Draw(r, "piece"))
	})
}
