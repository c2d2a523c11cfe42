package badger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
)

// loadedExt ends the names of tables that a load makes, as long as MANIFEST does not name them. Opening the database
// for writing removes them.
const loadedExt = ".loaded"

// groupSize is the length in bytes of the key prefix of related rows, such as those of one table of a source. Where it
// changes, a table of Badger ends unless it is small, which leaves space between tables for another load.
const groupSize = 9

// mostRuns is the maximum number of ascending runs of keys in a load whose rows go into tables.
const mostRuns = 16

// buildersAtATime is the number of tables in memory: one is made, and one is written.
const buildersAtATime = 2

// tables are those of a load. The rows of a run ascend, and runs do not overlap: so all tables can be in one level.
type tables struct {
	engine  *Engine
	ctx     context.Context
	options table.Options
	version uint64 // of Badger, of all rows: its time
	prefix  string // of the names of files

	builder *table.Builder // of the table that is made
	size    int64          // of it, about
	held    *kv.Row        // to be added next: of rows with one key the last counts
	first   []byte         // key of the table
	last    []byte         // so far
	runs    sortedRuns     // all but the present one, and the ranges of tables that were there
	there   int            // so many of them
	run     keyRange       // the present one, if held is not nil
	limit   []byte         // end of the present one, exclusive; nil: none

	files   []loadedTable
	writing chan error // receives the error of the file being written, or nil
	buffer  []byte     // for one file
}

// loadedTable is a table that a load has made.
type loadedTable struct {
	path string
	keys keyRange
}

// newTables begins to make tables of rows that are newer than all present ones.
func (e *Engine) newTables(ctx context.Context) (*tables, error) {
	f, err := os.CreateTemp(e.folder.path, "*"+loadedExt)
	if err != nil {
		return nil, err
	}
	o := e.options.badgerOptions("")
	t := &tables{engine: e, ctx: ctx, version: e.clock.tick(), prefix: f.Name(), options: table.Options{
		TableSize: uint64(e.options.loadedTableSize()) / 2, // twice that is the memory with which Badger begins
		BlockSize: o.BlockSize, BloomFalsePositive: o.BloomFalsePositive,
		ChkMode: o.ChecksumVerificationMode, Compression: options.None,
		AllocPool: z.NewAllocatorPool(buildersAtATime),
	}}
	e.users.RLock()
	defer e.users.RUnlock()
	for _, there := range e.badger.Tables() {
		if there.Level == lastLevel {
			t.runs = t.runs.with(rangeOf(&there))
		}
	}
	t.there = len(t.runs)
	return t, errors.Join(f.Close(), os.Remove(f.Name()))
}

// tooMany reports whether there are more than mostRuns runs.
func (t *tables) tooMany() bool { return len(t.runs)-t.there > mostRuns }

// add adds a row, unless it belongs among those of tables that are made.
func (t *tables) add(r kv.Row) (fits bool, err error) {
	if t.held != nil {
		switch order := bytes.Compare(r.Key, t.held.Key); {
		case order == 0:
			t.held = &r
			return true, nil
		case order < 0, t.limit != nil && bytes.Compare(r.Key, t.limit) >= 0:
			if err := t.endRun(); err != nil {
				return false, err
			}
		}
	}
	if t.held == nil {
		t.limit = nil
		if next := t.runs.next(r.Key); next != nil {
			if bytes.Compare(next.first, r.Key) <= 0 {
				return false, nil
			}
			t.limit = next.first
		}
		t.run = keyRange{r.Key, r.Key}
	}
	if err := t.addHeld(); err != nil {
		return false, err
	}
	t.held = &r
	t.run.last = r.Key
	return true, nil
}

// addHeld adds the row that is held to the table.
func (t *tables) addHeld() error {
	if t.held == nil {
		return nil
	}
	size := int64(len(t.held.Key) + len(t.held.Value) + perChange)
	if t.size += size; t.builder != nil && t.isFull() {
		if err := t.endTable(); err != nil {
			return err
		}
	}
	if t.builder == nil {
		t.builder, t.first, t.size = table.NewTableBuilder(t.options), t.held.Key, size
	}
	t.builder.Add(y.KeyWithTs(t.held.Key, t.version), y.ValueStruct{Value: t.held.Value}, 0)
	t.last = t.held.Key
	return nil
}

// isFull reports whether a table ends before the row that is held.
func (t *tables) isFull() bool {
	full := t.engine.options.loadedTableSize()
	return t.size >= full || t.size >= full/16 && !bytes.Equal(group(t.last), group(t.held.Key))
}

func group(key []byte) []byte { return key[:min(groupSize, len(key))] }

// endRun ends the run. The next one has its own tables.
func (t *tables) endRun() error {
	if t.held == nil {
		return nil
	}
	if err := t.addHeld(); err != nil {
		return err
	}
	t.held = nil
	t.runs = t.runs.with(t.run)
	return t.endTable()
}

// endTable has the table written, once the one before is.
func (t *tables) endTable() error {
	if err := t.wait(); err != nil {
		return err
	}
	b := t.builder
	file := loadedTable{fmt.Sprintf("%s-%d%s", t.prefix, len(t.files), loadedExt), keyRange{t.first, t.last}}
	t.builder, t.files, t.writing = nil, append(t.files, file), make(chan error, 1)
	go func() {
		content := b.Done()
		t.buffer = slices.Grow(t.buffer[:0], content.Size)[:content.Size]
		content.Copy(t.buffer)
		b.Close() // its memory is for the next table
		t.writing <- writeFile(file.path, t.buffer, !t.engine.options.Unsynced)
	}()
	return nil
}

// wait waits until no table is being written.
func (t *tables) wait() (err error) {
	if t.writing != nil {
		err = <-t.writing
		t.writing = nil
	}
	return err
}

func writeFile(path string, content []byte, synced bool) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && synced {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// finish returns when all tables are written.
func (t *tables) finish() error { return errors.Join(t.endRun(), t.wait()) }

// copyTo copies all rows to a batch, in the order in which they came.
func (t *tables) copyTo(to sink) error {
	for i, file := range t.files {
		content, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		made, err := table.OpenInMemoryTable(content, uint64(i), &t.options)
		if err != nil {
			return err
		}
		rows := made.NewIterator(table.NOCACHE)
		for rows.Rewind(); rows.Valid() && err == nil; rows.Next() {
			err = cmp.Or(context.Cause(t.ctx), to.Set(bytes.Clone(y.ParseKey(rows.Key())), bytes.Clone(rows.Value().Value)))
		}
		if err = errors.Join(err, rows.Close()); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the files of tables that were not adopted.
func (t *tables) remove() error {
	err := t.wait()
	if t.builder != nil {
		t.builder.Close()
		t.builder = nil
	}
	t.options.AllocPool.Release()
	t.options.AllocPool = nil
	for _, f := range t.files {
		if failed := os.Remove(f.path); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	t.files = nil
	return err
}

// removeLoaded removes the unnamed tables of a process that was killed in a load.
func (f *Folder) removeLoaded() error {
	tables, err := filepath.Glob(filepath.Join(f.path, "*"+loadedExt))
	manifest, _ := filepath.Glob(filepath.Join(f.path, manifestFile+durable.New)) // the pattern is right
	for _, path := range append(tables, manifest...) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
