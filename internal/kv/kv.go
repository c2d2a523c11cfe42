// Package kv is the interface between a node's store and the engine with its rows: an ordered map of keys to values
// with concurrent readers and writers.
//
// [Engine] is the contract. Package badger keeps the rows on disk, package memory in the process, and package kvtest
// has the tests for all engines.
//
// The store above is one of several writers. It reads a state ([Engine.Snapshot]), computes a change, and commits that
// ([Engine.Begin]) on the condition that the state is still the present one. Otherwise the error is [ErrConflict], and
// it computes the change again.
package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// Engine keeps rows in the order of their keys, compared byte by byte. It is safe for
// concurrent use, also by several stores.
type Engine interface {
	// Snapshot returns a reader of the present state: all commits that have returned are in
	// it. The reader is of no use once ctx has ended.
	Snapshot(ctx context.Context) (Reader, error)

	// Version returns the version of the present state, at almost no cost.
	Version(ctx context.Context) (Version, error)

	// Changed returns the keyspaces in which commits have changed rows from a state to a later one; nil if they are not
	// known, as a state was lost, or there were more than [MostRecent].
	Changed(from, to Version) map[uint32]bool

	// Begin collects changes of any size that are committed together: readers see all of them or none, also after a
	// crash. The error of the commit is [ErrConflict] unless the state with the version since is still the present one,
	// by its number and its id, or the part that the writer depends on ([Writer.Narrow]). A large one may wait until
	// another is committed or cancelled.
	Begin(ctx context.Context, since Version) (Writer, error)

	// Bulk writes rows without a single commit, for rows that are not visible yet. Readers may see some of them
	// meanwhile, and some may exist after a crash or an error. It changes no version, and no transaction waits for it.
	Bulk(ctx context.Context) (Writer, error)

	// DeletePrefix removes all rows whose keys begin with prefix, without a single commit, for rows that are no longer
	// visible. It changes no version. An interrupted deletion can be repeated.
	DeletePrefix(ctx context.Context, prefix []byte) error

	// Size returns the number of bytes of the rows, on disk or in memory.
	Size() (int64, error)

	// Close frees the resources of the engine. All readers must be closed, and all writers committed or cancelled; it
	// can be called again. Other methods then return [ErrClosed].
	Close() error
}

// Version identifies a state after commits. The engine keeps it in a row, which each commit writes and each reader
// reads. Two readers with the same version see the same rows, except those of [Engine.Bulk] and [Engine.DeletePrefix].
// No other state has it, even if the engine is reset to an earlier state and written again. The zero value is the
// version of no state.
type Version struct {
	Number uint64 // increases by one with each commit of any process
	ID     uint64 // grows with each commit by a random number, modulo 2^64; 0 before the first one
	Era    uint64 // the value of the row at [EraKey] in the state
}

// EraKey is the key of the row with the era: eight random bytes; a change prepared in one era is not committed in
// another one. The row is the store's own; engines read it with the version.
var EraKey = []byte("\x00\x00\x00\x00\x00\x00\x00\x00mera")

// EraOf returns the era in the value of a row, 0 if it has none.
func EraOf(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// First is the version of the state without commits.
var First = Version{Number: 1}

// Same reports whether two versions identify the same state: number and id are equal.
func (v Version) Same(other Version) bool {
	return v.Number == other.Number && v.ID == other.ID && v.Number != 0
}

// IsBefore reports whether a state cannot follow another one, unless that was lost: it has fewer commits, or as many
// others.
func (v Version) IsBefore(other Version) bool {
	return v.Number < other.Number || v.Number == other.Number && !v.Same(other)
}

// Next returns the version of the state after a commit that is based on this one, with a new id.
func (v Version) Next() Version {
	var id uint64
	for id == 0 {
		id = rand.Uint64()
	}
	return Version{v.Number + 1, id, v.Era}
}

// Dated is an engine that knows the time of its state. One that lags behind, such as a standby, has an earlier state
// than the present one. Its readers are [DatedReader]. If an engine is not Dated, its state is the present one.
type Dated interface {
	Engine
	// VersionAt is Version, and a time at which that was the version of the present state, by the clock of the
	// database; zero if not known.
	VersionAt(ctx context.Context) (Version, time.Time, error)
	// History identifies the history of the state. A new one begins if the database is restored from a backup, or
	// another server takes over. It is "" if not known.
	History(ctx context.Context) (string, error)
}

// DatedReader is a reader of a [Dated] engine.
type DatedReader interface {
	Reader
	// At returns a time at which the state was the present one; zero if not known.
	At() time.Time
}

// Reader reads one state; later commits do not show in it. It is safe for concurrent use.
// All its methods fail with the cause of its context once that has ended.
type Reader interface {
	// Get returns the value of a key, or nil if there is no row. An empty value is not nil. The value does not change,
	// and must not be changed.
	Get(key []byte) ([]byte, error)

	// Range iterates over the rows whose keys begin with prefix, in the order of keys or in reverse. It begins with the
	// key from, or the next one; with the first or the last row if from is nil. A row is valid until the next one. An
	// error is the last item.
	Range(prefix, from []byte, reverse bool) iter.Seq2[Row, error]

	// Version returns the version of the state.
	Version() Version

	// Close ends reading. No iteration may be running.
	Close()
}

// Row is a row: a value under a key.
type Row struct{ Key, Value []byte }

// Writer collects changes. It is not safe for concurrent use. What it is given must not be
// changed until Commit or Cancel has returned. Of several changes of one key the last counts.
type Writer interface {
	// Put writes a row; nil is an empty value.
	Put(key, value []byte) error
	// Delete removes a row, if it is there.
	Delete(key []byte) error
	// Commit returns when all changes are durable, as far as the engine is. After an error of a transaction nothing is
	// changed. If the context of the writer has ended before, nothing is committed.
	Commit() error
	// Narrow restricts the condition of the commit to some keyspaces, and those in which it changes rows: the error is
	// [ErrConflict] only if another commit has changed one of these since the state of base, which has the version that
	// the writer is based on. Otherwise the commit depends on the whole state. It is called once, after all changes.
	Narrow(base Reader, spaces []uint32) error
	// Leads returns the version after the commit, unless that begins another era. It is zero if the changes are not
	// committed as a whole. After Narrow it is known after the commit.
	Leads() Version
	// Cancel drops the changes unless they are committed. Each writer is committed or cancelled, or both.
	Cancel()
}

// Verifier is an Engine that can check whether its rows are as they were written.
type Verifier interface {
	Engine
	// Verify reads all rows. Others may write meanwhile. The error is [ErrDamaged] if a row is not as it was written.
	Verify(ctx context.Context) error
}

var (
	// ErrConflict is the error for a commit based on an outdated state. Nothing was changed: read the new state and
	// compute the change again.
	ErrConflict = errors.New("others have written meanwhile; decide again on the present state")
	// ErrClosed is the error for a closed engine.
	ErrClosed = errors.New("the database is closed")
	// ErrReadOnly is the error for changes to an engine that was opened for reading.
	ErrReadOnly = errors.New("the database is opened for reading only")
	// ErrUnavailable is the error for a database that does not answer.
	ErrUnavailable = errors.New("the database cannot be reached")
	// ErrOtherDatabase is the error for an address that leads to another database than before, or to a server that was
	// replaced.
	ErrOtherDatabase = errors.New("the address leads to another database than before")
	// ErrDamaged is the error for damaged data of an engine.
	ErrDamaged = errors.New("the data folder is damaged")
	// ErrTooLarge is the error for a row with more bytes than [MaxValue].
	ErrTooLarge = errors.New("too large a record")
)

// Shared is an engine whose state other processes also change, possibly always faster.
type Shared interface {
	// Turn makes commits that change rows of some keyspaces wait until the turn ends, at the latest after a time. It
	// has keyspaces to change, and others to read. Without any to change, all commits wait. States that are read from
	// then on do not change in these keyspaces.
	Turn(ctx context.Context, reads, changes []uint32, most time.Duration) (Turn, error)
	// Writable returns nil if changes are accepted now, else the error of a change.
	Writable(ctx context.Context) error
}

// Turn is the time in which others do not commit. It is used by one goroutine.
type Turn interface {
	// Begin is that of [Engine]. The turn ends with the writer.
	Begin(ctx context.Context, since Version) (Writer, error)
	// End ends the turn if nothing has begun.
	End()
}

// SpaceOf returns the keyspace of a row: the number with which its key begins, big-endian.
func SpaceOf(key []byte) uint32 {
	var first [4]byte
	copy(first[:], key)
	return binary.BigEndian.Uint32(first[:])
}

// MaxKey is the length in bytes of the longest key.
const MaxKey = 65000

// MaxValue is the length in bytes of the longest value.
const MaxValue = 64 << 20

// Reserved is the prefix of the keys of engines' own rows. Iterations over all rows omit them.
const Reserved = "\xFF\xFF\xFF\xFF"

// CheckRow returns an error if such a row is not allowed: [ErrTooLarge] if its value is too long.
func CheckRow(key, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: it has %d bytes, %d are allowed", ErrTooLarge, len(value), MaxValue)
	}
	return CheckKey(key)
}

// CheckKey returns an error if a row may not have this key.
func CheckKey(key []byte) error {
	switch {
	case len(key) == 0:
		return errors.New("a row needs a key")
	case len(key) > MaxKey:
		return fmt.Errorf("a key of %d bytes is too long, %d are allowed: %.80q…", len(key), MaxKey, key)
	case IsReserved(key):
		return fmt.Errorf("keys that begin with %q are those of the engine", Reserved)
	}
	return nil
}

// IsReserved reports whether a key belongs to the engine.
func IsReserved(key []byte) bool {
	return bytes.HasPrefix(key, []byte(Reserved))
}

// After returns the least key after all keys with a prefix, nil if there is none.
func After(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xFF {
			key := bytes.Clone(prefix[:i+1])
			key[i]++
			return key
		}
	}
	return nil
}
