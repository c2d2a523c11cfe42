package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// ErrLocked says that another process has the data folder open.
var ErrLocked = errors.New("store: the data folder is in use by another process")

// Options configure a database. Only Dir is required.
type Options struct {
	Dir    string
	Logger *slog.Logger     // default: slog.Default()
	Now    func() time.Time // default: time.Now
}

// DB is a node's database. It is safe for concurrent use; writes run one at a
// time.
type DB struct {
	dir    string
	badger *badger.DB
	log    *slog.Logger
	now    func() time.Time

	write sync.Mutex   // held by the one writer
	view  sync.RWMutex // held for writing while a journal is rolled forward

	done chan struct{} // closed by Close: ends the collection of garbage

	unusable error          // under view: why nothing can be read or written any more
	rows     sync.Map       // name → *decodedRow: collections as readers saw them last
	latest   sync.Map       // name → *latestAt
	commits  atomic.Uint64  // how many have begun and how many have ended: odd while one is under way
	users    sync.WaitGroup // the views and updates that are under way

	tap        tap // of updates; nil but in benchmarks
	sortMemory int // for the rows of a load, in bytes; 0: as much as usual. Others are for tests
}

var errClosed = errors.New("store: the database is closed")

// Open opens the database in o.Dir, creating it where there is none, and
// finishes what a crash interrupted.
func Open(o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dir == "" {
		return nil, errors.New("store: no data folder given, and no home folder to put one into: use --data")
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, snapshotFolder), 0o750); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := room(o.Dir); err != nil {
		return nil, err
	}
	b, err := openBadger(badgerOptions(filepath.Join(o.Dir, "badger"), o.Logger))
	if err != nil {
		if isLocked(err) {
			return nil, fmt.Errorf("%w: %s (is another tmshare command running on it?)", ErrLocked, o.Dir)
		}
		return nil, fmt.Errorf("store: open %s: %w", o.Dir, err)
	}
	db := &DB{dir: o.Dir, badger: b, log: o.Logger, now: o.Now, done: make(chan struct{})}
	if err := db.recover(); err != nil {
		b.Close()
		return nil, fmt.Errorf("store: open %s: %w", o.Dir, err)
	}
	db.users.Go(db.collectGarbage)
	return db, nil
}

// collectGarbage gives back the space of old values now and then.
func (db *DB) collectGarbage() {
	for {
		select {
		case <-db.done:
			return
		case <-time.After(10 * time.Minute):
			for db.badger.RunValueLogGC(0.5) == nil { // as long as there was something to do
			}
		}
	}
}

// openBadger opens Badger's database, and tries again in two cases.
//
// A process that is killed while Badger creates a file can leave an empty one.
// Badger then makes it what it should have been, but fails; the next time it
// takes it. There may be one of a memtable and one of the value log.
//
// A process that has just been killed may hold its lock for another moment,
// when its supervisor has started the next one already.
func openBadger(o badger.Options) (*badger.DB, error) {
	for tries, emptied := 0, 0; ; tries++ {
		b, err := badger.Open(o)
		switch {
		case err == nil:
			return b, nil
		case isLocked(err) && tries < 20:
			time.Sleep(50 * time.Millisecond)
		case strings.Contains(err.Error(), "Create a new file") && emptied < 2:
			emptied++
		default:
			return nil, err
		}
	}
}

func isLocked(err error) bool { return strings.Contains(err.Error(), "Cannot acquire directory lock") }

// badgerOptions are sized for small machines: at most about 45 MB of buffers and
// caches. The buffers in which Badger makes tables are three times the largest,
// which is a memtable: so those are small, too. Tables are not compressed: they are
// read where the system has mapped them, so there is no cache of unpacked blocks,
// and a compaction, which builds up to a dozen tables at a time in memory, needs no
// room for what they are unpacked. What is large is gzipped anyway. Tables are
// small, also on the lower levels, for the same reason, and there are two
// compactions at a time. Conflicts are not looked for: there is one writer, and what
// loads a generation writes rows of its own; Badger would remember every key that is
// written while a reader is there.
func badgerOptions(dir string, log *slog.Logger) badger.Options {
	o := badger.DefaultOptions(dir)
	o.TableSizeMultiplier = 1
	return o.
		WithNumCompactors(2).
		WithSyncWrites(true).
		WithDetectConflicts(false).
		WithMemTableSize(8 << 20).
		WithNumMemtables(3).
		WithBaseTableSize(2 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(16 << 20).
		WithValueLogFileSize(64 << 20).
		WithNumVersionsToKeep(1).
		WithCompactL0OnClose(false).
		WithMetricsEnabled(false).
		WithLogger(badgerLog{log})
}

// Close closes the database, once the views and updates that are under way have
// ended. No others begin.
func (db *DB) Close() error {
	db.view.Lock()
	if db.unusable != errClosed && db.done != nil {
		close(db.done)
	}
	db.unusable = errClosed
	db.view.Unlock()
	db.users.Wait()
	return db.badger.Close()
}

// Dir returns the data folder.
func (db *DB) Dir() string { return db.dir }

// recover checks the format, finishes or forgets an interrupted commit, and
// removes what no collection or subscription owns.
func (db *DB) recover() error {
	current := []byte(strconv.Itoa(FormatVersion))
	var version []byte
	err := db.viewing(func(t *tx) (err error) {
		version, err = t.get(metaKey("format"))
		if err == nil && version != nil && !bytes.Equal(version, current) && string(version) != "1" {
			err = fmt.Errorf("the data are in format %s, this program reads format %s", version, current)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := db.recoverJournal(); err != nil { // not before its format is known
		return err
	}
	if string(version) == "1" {
		if err := db.migrateReified(); err != nil {
			return fmt.Errorf("bringing the data from format 1 to format %s: %w", current, err)
		}
	}
	if err := db.update(func(t *tx) error { return t.put(metaKey("format"), current) }); err != nil {
		return err
	}
	return db.sweep()
}

// badgerLog passes Badger's warnings and errors on; the rest is for debugging.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) line(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf("badger: "+format, args...))
}
func (l badgerLog) Errorf(f string, a ...any)   { l.log.Error(l.line(f, a)) }
func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn(l.line(f, a)) }
func (l badgerLog) Infof(f string, a ...any) {
	l.log.Log(context.Background(), slog.LevelDebug-4, l.line(f, a)) // its own affairs
}
func (l badgerLog) Debugf(string, ...any) {}
