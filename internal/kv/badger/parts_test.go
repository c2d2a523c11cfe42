package badger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testenv"
)

// space returns a key in a keyspace.
func inSpace(space uint32, rest string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, space), rest...)
}

// interrupted is a database in which a commit in parts has been left off at some stage.
type interrupted struct {
	t             *testing.T
	folder        string
	e             *Engine
	changes       []kv.Row
	at            uint64
	before, after []string
}

// interruptible prepares a commit: new, changed and deleted rows, and one without a value. checkSpace is called while
// it is written.
func interruptible(t *testing.T, checkSpace func() error) *interrupted {
	i := &interrupted{t: t, folder: t.TempDir()}
	var err error
	i.e, err = tryToOpen(i.folder, Options{CheckSpace: checkSpace})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.e.Close()) })
	old, large := []byte("old"), bytes.Repeat([]byte("new "), meterEvery/4)
	key := func(name string) []byte { return inSpace(1, name) }
	i.commit([]kv.Row{{Key: key("a"), Value: old}, {Key: key("c"), Value: old}, {Key: key("e"), Value: old}, {Key: key("z"), Value: old}})
	i.before = i.rows(1)
	i.changes = []kv.Row{
		{Key: key("a"), Value: large}, {Key: key("b"), Value: large}, {Key: key("c")}, {Key: key("d"), Value: []byte{}},
		{Key: key("e"), Value: large}, {Key: key("f"), Value: old},
	}
	i.after = []string{"a=" + string(large), "b=" + string(large), "d=", "e=" + string(large), "f=old", "z=old"}
	return i
}

func (i *interrupted) reopen() {
	i.t.Helper()
	require.NoError(i.t, i.e.Close())
	var err error
	i.e, err = tryToOpen(i.folder, Options{})
	require.NoError(i.t, err)
}

func rowsIn(t *testing.T, e *Engine, space uint32) (rows []string) {
	t.Helper()
	r, err := e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	for row, err := range r.Range(inSpace(space, ""), nil, false) {
		require.NoError(t, err)
		rows = append(rows, string(row.Key[4:])+"="+string(row.Value))
	}
	return rows
}

func (i *interrupted) rows(space uint32) []string { return rowsIn(i.t, i.e, space) }

// begin begins a transaction with changes, which depends on the keyspaces that it changes alone.
func (i *interrupted) begin(changes []kv.Row) (*transaction, error) {
	i.t.Helper()
	r, err := i.e.Snapshot(i.t.Context())
	require.NoError(i.t, err)
	defer r.Close()
	w, err := i.e.Begin(i.t.Context(), r.Version())
	require.NoError(i.t, err)
	for _, c := range changes {
		if c.Value == nil {
			err = errors.Join(err, w.Delete(c.Key))
		} else {
			err = errors.Join(err, w.Put(c.Key, c.Value))
		}
	}
	return w.(*transaction), errors.Join(err, w.Narrow(r, nil))
}

func (i *interrupted) commit(changes []kv.Row) {
	i.t.Helper()
	w, err := i.begin(changes)
	require.NoError(i.t, err)
	require.NoError(i.t, w.Commit())
}

// commitInParts commits changes of any size in parts.
func (i *interrupted) commitInParts(changes []kv.Row) error {
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

// open writes the mark of parts, as a process killed after that.
func (i *interrupted) open() {
	i.t.Helper()
	i.at = i.e.clock.ahead()
	i.write(i.e.clock.tick(), kv.Row{Key: partsKey, Value: binary.BigEndian.AppendUint64(nil, i.at)})
}

func (i *interrupted) write(at uint64, changes ...kv.Row) {
	i.t.Helper()
	require.NoError(i.t, i.e.write(at, 0, changes...))
}

func (i *interrupted) last() {
	i.t.Helper()
	v, err := i.e.Version(i.t.Context())
	require.NoError(i.t, err)
	i.write(i.at, versionRow(v.Next()), kv.Row{Key: partsKey})
}

// A crash at any stage of a commit leaves the state before it or after it.
func TestACommitInPartsIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	for _, stage := range []struct {
		name  string
		reach func(*interrupted)
		whole bool
	}{
		{"nothing written", func(*interrupted) {}, false},
		{"begun", func(i *interrupted) { i.open() }, false},
		{"some parts written", func(i *interrupted) { i.open(); i.write(i.at, i.changes[2:4]...) }, false},
		{"all written but the last part", func(i *interrupted) { i.open(); i.write(i.at, i.changes...) }, false},
		{"others have committed meanwhile", func(i *interrupted) {
			i.open()
			i.write(i.at, i.changes...)
			i.commit([]kv.Row{{Key: inSpace(2, "other"), Value: []byte("1")}})
		}, false},
		{"partly taken back", func(i *interrupted) {
			i.open()
			i.write(i.at, i.changes...)
			i.write(i.at+1, kv.Row{Key: i.changes[0].Key, Value: []byte("old")}, kv.Row{Key: i.changes[1].Key})
		}, false},
		{"the last part written", func(i *interrupted) { i.open(); i.write(i.at, i.changes...); i.last() }, true},
	} {
		t.Run(stage.name, func(t *testing.T) {
			i := interruptible(t, nil)
			stage.reach(i)
			others := i.rows(2)
			require.Equal(t, i.before, i.rows(1), "nobody sees parts")
			for range 2 { // opening again changes nothing
				i.reopen()
				if stage.whole {
					require.Equal(t, i.after, i.rows(1))
				} else {
					require.Equal(t, i.before, i.rows(1))
				}
				require.Equal(t, others, i.rows(2), "what others have committed stays")
				require.Zero(t, i.e.torn)
			}
			require.NoError(t, i.commitInParts(i.changes))
			require.Equal(t, i.after, i.rows(1), "later commits may have parts")
			require.Equal(t, uint64(1), i.e.InParts())
			i.reopen()
			require.Equal(t, i.after, i.rows(1))
		})
	}
}

// While a commit is written in parts, others read, and commit changes that do not affect it. Those that do are made
// after it.
func TestOthersGoOnWhileACommitIsWrittenInParts(t *testing.T) {
	t.Parallel()
	var i *interrupted
	inParts, asked := false, 0
	conflict := make(chan error, 1)
	i = interruptible(t, func() error {
		if !inParts || i.e.torn == 0 { // it is still collected
			return nil
		}
		if asked++; asked == 1 {
			late, err := i.begin([]kv.Row{{Key: inSpace(1, "late"), Value: []byte("1")}})
			require.NoError(t, err)
			go func() { conflict <- late.Commit() }()
		}
		require.Equal(t, i.before, i.rows(1))
		i.commit([]kv.Row{{Key: inSpace(2, "other"), Value: fmt.Append(nil, asked)}})
		require.Equal(t, []string{fmt.Sprint("other=", asked)}, i.rows(2), "it is there at once")
		require.NoError(t, i.e.DeletePrefix(t.Context(), inSpace(3, "")))
		require.Empty(t, conflict, "one that changes the same waits")
		return nil
	})
	inParts = true
	before, err := i.e.Version(t.Context())
	require.NoError(t, err)
	r, err := i.e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, i.commitInParts(i.changes))
	require.Greater(t, asked, 1)
	require.ErrorIs(t, <-conflict, kv.ErrConflict)
	require.Equal(t, i.after, i.rows(1))
	require.Equal(t, []string{fmt.Sprint("other=", asked)}, i.rows(2))
	now, err := i.e.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Number+uint64(asked)+1, now.Number, "its version comes after theirs")
	old, err := r.Get(inSpace(1, "a"))
	require.NoError(t, err)
	require.Equal(t, "old", string(old), "a reader from before it sees what it saw")
	inParts = false
	i.commit([]kv.Row{{Key: inSpace(1, "a")}, {Key: inSpace(1, "b"), Value: []byte("later")}})
	require.Equal(t, append([]string{"b=later"}, i.after[2:]...), i.rows(1), "later commits have later times")
	i.reopen()
	require.Equal(t, append([]string{"b=later"}, i.after[2:]...), i.rows(1))
}

// A commit that fails after some of its parts has no effect, and others continue.
func TestACommitThatFailsInItsPartsIsNotThere(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	var fails error
	var i *interrupted
	i = interruptible(t, func() error {
		if i != nil && i.e.torn != 0 {
			return fails
		}
		return nil
	})
	fails = full
	before, err := i.e.Version(t.Context())
	require.NoError(t, err)
	for range 2 {
		require.ErrorIs(t, i.commitInParts(i.changes), full)
		require.Equal(t, i.before, i.rows(1))
		require.Zero(t, i.e.torn)
		now, err := i.e.Version(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, now)
	}
	ctx, leave := context.WithCancel(t.Context())
	w, err := i.begin(i.changes)
	require.NoError(t, err)
	require.NoError(t, w.spill())
	w.ctx = ctx
	fails = nil
	leave()
	require.ErrorIs(t, w.Commit(), context.Canceled)
	require.Equal(t, i.before, i.rows(1))
	require.NoError(t, i.commitInParts(i.changes))
	require.Equal(t, i.after, i.rows(1))
}

// Parts that could not be rolled back are not visible: others change the same rows, and read their own changes.
func TestPartsThatAreLeftHideNothing(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]func(i *interrupted){
		"opened again": func(i *interrupted) { i.reopen() },
		"another commit in parts": func(i *interrupted) {
			require.NoError(t, i.commitInParts([]kv.Row{{Key: inSpace(4, "a"), Value: []byte("1")}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := interruptible(t, nil)
			i.open()
			i.write(i.at, i.changes...)
			i.e.torn, i.e.ahead = i.at, i.at
			i.commit([]kv.Row{{Key: inSpace(1, "a"), Value: []byte("2")}, {Key: inSpace(1, "b"), Value: []byte("2")}, {Key: inSpace(1, "e")}})
			want := []string{"a=2", "b=2", "c=old", "z=old"}
			require.Equal(t, want, i.rows(1))
			require.ErrorContains(t, i.e.collectOnce(), "Value log GC attempt", "what is deleted must not be taken for what is there")
			goesOn(i)
			require.Equal(t, want, i.rows(1))
			require.Zero(t, i.e.torn)
			i.reopen()
			require.Equal(t, want, i.rows(1))
		})
	}
}

// A commit whose last part may be written or not stops the database: when it is opened again, the commit is whole, or
// has no effect.
func TestACommitThatMayBeWholeStopsTheDatabase(t *testing.T) {
	t.Parallel()
	i := interruptible(t, nil)
	w, err := i.begin(i.changes)
	require.NoError(t, err)
	require.NoError(t, w.spill())
	i.e.commits.writing.Lock()
	done := make(chan error, 1)
	go func() { done <- w.Commit() }()
	testenv.Eventually(t, func() bool {
		r := &reader{txn: i.e.badger.NewTransactionAt(1<<62, false), ctx: t.Context()}
		defer r.txn.Discard()
		value, err := r.Get(inSpace(1, "f"))
		return err == nil && value != nil
	})
	require.NoError(t, i.e.badger.Close())
	i.e.commits.writing.Unlock()
	require.ErrorIs(t, <-done, errLastPart)
	_, err = i.e.Snapshot(t.Context())
	require.ErrorIs(t, err, errLastPart)
	_, err = i.e.Begin(t.Context(), kv.First)
	require.ErrorIs(t, err, errLastPart)
	i.reopen()
	require.Equal(t, i.before, i.rows(1))
}

// A row about parts that cannot be read is an error when the database is opened, every time.
func TestARowAboutPartsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "short", strings.Repeat("\x00", 8), strings.Repeat("long", 3)} {
		i := interruptible(t, nil)
		i.write(i.e.clock.tick(), kv.Row{Key: partsKey, Value: []byte(value)})
		require.NoError(t, i.e.Close())
		for _, readOnly := range []bool{false, true, false} {
			_, err := tryToOpen(i.folder, Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, kv.ErrDamaged)
		}
	}
}

// A row that cannot be written is found before the commit begins.
func TestAnImpossibleRowIsNoCommit(t *testing.T) {
	t.Parallel()
	i := interruptible(t, nil)
	require.Error(t, i.commitInParts([]kv.Row{{Key: inSpace(1, "b")}, {Key: inSpace(1, "c"), Value: make([]byte, 65<<20)}}))
	require.Equal(t, i.before, i.rows(1))
	i.reopen()
	require.Equal(t, i.before, i.rows(1))
	longest := bytes.Repeat([]byte("x"), kv.MaxKey)
	require.NoError(t, i.commitInParts([]kv.Row{{Key: longest, Value: []byte("v")}}), "the longest key is possible")
	r, err := i.e.Snapshot(t.Context())
	require.NoError(t, err)
	defer r.Close()
	value, err := r.Get(longest)
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
}

// A database that is not accepted is not changed, including invisible parts.
func TestRowsThatAreNotAcceptedAreLeftAlone(t *testing.T) {
	t.Parallel()
	i := interruptible(t, nil)
	i.open()
	i.write(i.at, i.changes...)
	require.NoError(t, i.e.Close())
	wrong := errors.New("of a newer format")
	for _, readOnly := range []bool{false, true} {
		seen := false
		_, err := tryToOpen(i.folder, Options{ReadOnly: readOnly, Accept: func(r kv.Reader) error {
			value, err := r.Get(inSpace(1, "a"))
			seen = string(value) == "old"
			return errors.Join(err, wrong)
		}})
		require.ErrorIs(t, err, wrong)
		require.True(t, seen)
	}
	var err error
	i.e, err = tryToOpen(i.folder, Options{ReadOnly: true})
	require.NoError(t, err)
	require.Equal(t, i.before, i.rows(1), "who only reads sees the state before it")
	require.Equal(t, i.at, i.e.torn)
	i.reopen()
	require.Equal(t, i.before, i.rows(1))
}

// Changes are read as they were written.
func TestChangesRoundTrip(t *testing.T) {
	testenv.Check(t, 25, 100, func(r *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40)
		value := rapid.Ptr(rapid.SliceOfN(rapid.Byte(), 0, 300), true)
		var changes, again []kv.Row
		for range rapid.IntRange(1, 10).Draw(r, "rows") {
			c := kv.Row{Key: key.Draw(r, "key")}
			if v := value.Draw(r, "value"); v != nil {
				c.Value = *v
			}
			changes = append(changes, c)
		}
		var file bytes.Buffer
		s := &spilled{buffer: bufio.NewWriter(&file)}
		require.NoError(r, s.add(changes, &Engine{}))
		require.NoError(r, s.buffer.Flush())
		whole := bytes.Clone(file.Bytes())
		from := bufio.NewReader(&file)
		for {
			c, err := readChange(from)
			if err == io.EOF {
				break
			}
			require.NoError(r, err)
			again = append(again, c)
		}
		require.Equal(r, changes, again)
		last := bufio.NewReader(bytes.NewReader(whole[:len(whole)-1]))
		for err := error(nil); err != io.EOF; {
			if _, err = readChange(last); err != nil && err != io.EOF {
				return
			}
		}
		require.Fail(r, "a file that was cut must not be taken for a whole one")
	})
}

// timesOf returns the number of times at which rows of a key are written.
func timesOf(t *testing.T, e *Engine, key []byte) (n int) {
	t.Helper()
	all := e.badger.NewTransactionAt(math.MaxUint64, false)
	defer all.Discard()
	it := all.NewKeyIterator(key, badgerdb.IteratorOptions{AllVersions: true})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		n++
	}
	return n
}

// Each transaction of a batch has a time of its own: of two rows with one key and one time, Badger may return the older
// one after a compaction.
func TestNoTwoTransactionsHaveOneTime(t *testing.T) {
	t.Parallel()
	i := interruptible(t, nil)
	twice := inSpace(5, "twice")
	changes := []kv.Row{{Key: twice, Value: []byte("1")}}
	for n := range 8 {
		changes = append(changes, kv.Row{Key: inSpace(5, fmt.Sprint(n)), Value: bytes.Repeat([]byte("."), 500<<10)})
	}
	changes = append(changes, kv.Row{Key: twice, Value: []byte("2")})
	for n, commit := range []func() error{
		func() error { return i.commitInParts(changes) },
		func() error {
			b := i.e.newBatch()
			defer b.Cancel()
			return errors.Join(apply(changes, b), b.Flush())
		},
	} {
		require.NoError(t, commit())
		require.Equal(t, 2*(n+1), timesOf(t, i.e, twice))
		require.Contains(t, i.rows(5), "twice=2")
	}
}

// A process may be killed while it rolls back a commit whose last part had an error but exists.
func TestTakingBackIsInterruptedWhereTheLastPartIsThere(t *testing.T) {
	t.Parallel()
	i := interruptible(t, nil)
	i.open()
	i.write(i.at, i.changes...)
	i.last()
	i.e.torn, i.e.ahead = i.at, i.at
	require.NoError(t, i.e.beginToTakeBack())
	i.write(i.e.goAhead(), kv.Row{Key: i.changes[0].Key, Value: []byte("old")})
	for range 2 {
		require.Equal(t, i.before, i.rows(1))
		i.reopen()
	}
	require.Equal(t, i.before, i.rows(1))
}

// Large values are written before there are as many as Badger has space for pointers.
func TestLargeValuesAreWrittenSoon(t *testing.T) {
	t.Parallel()
	e := openIn(t, t.TempDir(), small)
	first := e.clock.tick()
	b := e.newBatch()
	defer b.Cancel()
	for n := range 20 {
		require.NoError(t, b.Set(inSpace(1, fmt.Sprint(n)), bytes.Repeat([]byte("."), int(e.batchSize/2))))
	}
	require.Greater(t, e.clock.tick(), first+5)
	require.NoError(t, b.Flush())
	require.Len(t, rowsIn(t, e, 1), 20)
}
