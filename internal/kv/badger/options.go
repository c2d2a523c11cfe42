package badger

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
)

// Options are the options for opening a database.
type Options struct {
	ReadOnly bool         // the folder must have been inspected, and need no recovery
	Logger   *slog.Logger // default: slog.Default()
	Settings

	// Refusal, if not nil, is the error of changes with ReadOnly; default: [kv.ErrReadOnly].
	Refusal error

	// CheckSpace, if not nil, is called periodically during large writes. Its error ends them.
	CheckSpace func() error

	// Node is the one that the folder was inspected for.
	Node uuid.UUID

	// Accept, if not nil, checks the rows before any change. Open returns its error.
	Accept func(kv.Reader) error

	// Closed, if not nil, is called when the database is closed, before others can lock its folder.
	Closed func() error
}

// Settings are changed in tests and benchmarks only. Sizes are in bytes; zero is the default of a node.
type Settings struct {
	Unsynced         bool  // commits do not wait for the disk
	MemTableSize     int64 // a transaction has space for less than a sixth of it
	TableSize        int64
	ValueLogFileSize int64
	ValueThreshold   int64 // length from which on values are in value logs
	LoadFrom         int64 // size from which a load goes into tables of its own
}

// The sizes of a load in a node.
const (
	loadFrom        = 8 << 20
	loadedTableSize = 16 << 20
)

// loadedTableSize is how large the tables are that a load makes.
func (s *Settings) loadedTableSize() int64 { return cmp.Or(s.TableSize, loadedTableSize) }

// Small has small buffers. Opening a database takes a fraction of the time, which dominates a test with few rows.
var Small = Settings{MemTableSize: 1 << 20, TableSize: 256 << 10, ValueThreshold: 16 << 10, LoadFrom: 1 << 20}

// badgerOptions are sized for small machines: at most about 45 MB of buffers and caches. The buffers in which Badger
// makes tables are three times the largest, which is a memtable, so memtables are small, too. Tables are not
// compressed: they are read from mapped files, so there is no cache of unpacked blocks, and a compaction, which builds
// up to a dozen tables at a time in memory, needs no space to unpack them. Large values are gzipped anyway. At most two
// compactions run at a time.
//
// Opening maps each table and compares the checksum of its index. So tables are as large as the memory of a compaction
// permits, and an index has a key for 16 KB of rows. A load is compacted level by level, and is written once for each.
// So the level below the memtables may be large: nearly all maps have at most one more level.
//
// Badger's detection of conflicts is off: a commit is based on a version, and rows written in bulk belong to one
// writer; Badger would remember every written key while there is a reader.
func (s *Settings) badgerOptions(dir string) badgerdb.Options {
	o := badgerdb.DefaultOptions(dir)
	o.TableSizeMultiplier, o.MaxLevels = 1, lastLevel+1
	o = o.
		WithNumCompactors(2).
		WithSyncWrites(!s.Unsynced).
		WithDetectConflicts(false).
		WithMemTableSize(8 << 20).
		WithNumMemtables(3).
		WithBaseTableSize(8 << 20).
		WithBaseLevelSize(256 << 20).
		WithBlockSize(16 << 10).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(16 << 20).
		WithValueLogFileSize(64 << 20).
		WithNumVersionsToKeep(1).
		WithVerifyValueChecksum(true).
		WithCompactL0OnClose(false).
		WithMetricsEnabled(false)
	if s.MemTableSize > 0 {
		o = o.WithMemTableSize(s.MemTableSize)
	}
	if s.TableSize > 0 {
		o = o.WithBaseTableSize(s.TableSize)
	}
	if s.ValueLogFileSize > 0 {
		o = o.WithValueLogFileSize(s.ValueLogFileSize)
	}
	if s.ValueThreshold > 0 {
		o = o.WithValueThreshold(s.ValueThreshold)
	}
	return o
}

// badgerLog passes Badger's warnings and errors on; the rest is for debugging.
type badgerLog struct {
	log   *slog.Logger
	place *durable.Place
}

func (l badgerLog) line(format string, args []any) string {
	return l.place.Text(strings.TrimSpace(fmt.Sprintf("badger: "+format, args...)))
}
func (l badgerLog) Errorf(f string, a ...any)   { l.log.Error(l.line(f, a)) }
func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn(l.line(f, a)) }
func (l badgerLog) Infof(f string, a ...any) {
	l.log.Log(context.Background(), slog.LevelDebug-4, l.line(f, a)) // its own affairs
}
func (l badgerLog) Debugf(string, ...any) {}
