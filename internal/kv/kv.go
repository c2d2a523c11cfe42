// Package kv is the seam between a node's store and the engine that keeps its rows: an
// ordered map of keys to values that many read while some write.
//
// [Engine] is the contract. Package badger keeps the rows on disk, package memory in the
// process, and package kvtest holds the tests that every engine passes.
//
// The store above is one of several writers. It reads a state ([Engine.Snapshot]), decides what to change, and commits
// that ([Engine.Begin]) on the condition that the state is still the present one. A writer that is late gets
// [ErrConflict], and decides again.
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

	// Version returns the version of the present state. It costs next to nothing.
	Version(ctx context.Context) (Version, error)

	// Begin collects changes that are committed together, at any size: readers see all of
	// them or none, and so it is after a crash. The commit is [ErrConflict] unless the state
	// with the version since is still the present one, by its number and its id, or what the writer depends on of it
	// ([Writer.Narrow]). One that is large may wait until another is committed or cancelled.
	Begin(ctx context.Context, since Version) (Writer, error)

	// Bulk writes rows in no single commit: for rows that nothing shows yet. Readers may see
	// some of them meanwhile, and after a crash or an error some may be there. It changes no
	// version, and no transaction waits for it.
	Bulk(ctx context.Context) (Writer, error)

	// DeletePrefix removes all rows whose keys begin with prefix, in no single commit: for
	// rows that nothing shows any more. It changes no version. An interrupted deletion can
	// be done again.
	DeletePrefix(ctx context.Context, prefix []byte) error

	// Size returns how many bytes the rows take, on disk or in memory.
	Size() (int64, error)

	// Close gives up what the engine holds. It comes after all readers are closed, and all
	// writers committed or cancelled; it can be called again. All else is [ErrClosed] after it.
	Close() error
}

// Version stands for a state that commits have led to. The engine keeps it in a row, which each commit writes and each
// reader reads. Two readers with the same version see the same rows, but for those of [Engine.Bulk] and
// [Engine.DeletePrefix]. No other state has it, also not where the engine is put back to an earlier state and written
// again. The zero value is the version of no state.
type Version struct {
	Number uint64 // grows by one with each commit, for all who share the engine
	ID     uint64 // of the last commit, at random; 0 before the first one
	Era    uint64 // what the row at [EraKey] says in the state
}

// EraKey is the key of the row with the era: eight bytes at random, in which nobody commits what was decided in another
// one. It is one of the store's own rows; engines read it beside the version.
var EraKey = []byte("\x00\x00\x00\x00\x00\x00\x00\x00mera")

// EraOf returns the era that the value of a row says, 0 where it says none.
func EraOf(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// First is the version of the state in which nothing was committed yet.
var First = Version{Number: 1}

// Same reports whether two versions stand for the same state: that is so where number and id are equal.
func (v Version) Same(other Version) bool {
	return v.Number == other.Number && v.ID == other.ID && v.Number != 0
}

// IsBefore reports whether a state cannot come after another one, unless that was lost: its commits are fewer, or as
// many and others.
func (v Version) IsBefore(other Version) bool {
	return v.Number < other.Number || v.Number == other.Number && !v.Same(other)
}

// Next returns the version of the state that a commit leads to which is based on this one, with an id of its own.
func (v Version) Next() Version {
	var id uint64
	for id == 0 {
		id = rand.Uint64()
	}
	return Version{v.Number + 1, id, v.Era}
}

// Dated is an engine that knows of when its state is. One that lags behind, such as a standby, has an earlier state
// than others write now. Its readers are [DatedReader]. Where an engine is not Dated, its state is the present one.
type Dated interface {
	Engine
	// VersionAt is Version, and a time at which that was the version of the present state, by the clock of the
	// database; zero where that is not known.
	VersionAt(ctx context.Context) (Version, time.Time, error)
	// History names the history of the state. Another one begins where the database is made of a backup, or another
	// server takes over. It is "" where that is not known.
	History(ctx context.Context) (string, error)
}

// DatedReader is a reader of a [Dated] engine.
type DatedReader interface {
	Reader
	// At returns a time at which the state was the present one; zero where that is not known.
	At() time.Time
}

// Reader reads one state; later commits do not show in it. It is safe for concurrent use.
// All its methods fail with the cause of its context once that has ended.
type Reader interface {
	// Get returns the value of a key, or nil where there is no row. A row without a value has
	// an empty one. The value stays as it is, and must not be changed.
	Get(key []byte) ([]byte, error)

	// Range iterates over the rows whose keys begin with prefix, in the order of keys or in
	// the reverse one. It begins with the key from, or behind it where there is none of that
	// key; with the first or the last of the rows where from is nil. A row is valid until the
	// next one. An error is the last that it yields.
	Range(prefix, from []byte, reverse bool) iter.Seq2[Row, error]

	// Version returns the version of the state.
	Version() Version

	// Close ends reading. No iteration may be under way.
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
	// Commit returns when all changes are durable, as far as the engine is. After an error of
	// a transaction nothing is changed. Where the context of the writer has ended before,
	// nothing is committed.
	Commit() error
	// Narrow has the commit depend on some keyspaces alone, and on those in which it changes rows: it is [ErrConflict]
	// only where somebody else has committed changes in one of these since the state of base, which is the one with the
	// version that the writer is based on. Without it the commit depends on all of the state. It is called once, when
	// all changes are given.
	Narrow(base Reader, spaces []uint32) error
	// Leads returns the version of the state that a commit leads to, unless that begins another era. It is zero where
	// the changes are in no single commit. After Narrow it is known once the commit has returned.
	Leads() Version
	// Cancel gives the changes up, unless they are committed. Each writer is committed or
	// cancelled; both is fine.
	Cancel()
}

// Verifier is an Engine that can look whether its rows are as they were written.
type Verifier interface {
	Engine
	// Verify reads all rows, while others may write. It is [ErrDamaged] where something is
	// not as it was written.
	Verify(ctx context.Context) error
}

var (
	// ErrConflict says that others have committed since the state that a transaction is based
	// on. Nothing was changed: read the state anew and decide again.
	ErrConflict = errors.New("others have written meanwhile; decide again on the present state")
	// ErrClosed says that an engine is closed.
	ErrClosed = errors.New("the database is closed")
	// ErrReadOnly says that an engine was opened for reading.
	ErrReadOnly = errors.New("the database is opened for reading only")
	// ErrUnavailable says that the database of an engine does not answer.
	ErrUnavailable = errors.New("the database cannot be reached")
	// ErrOtherDatabase says that the address of the database leads to another one than before, or to a server that
	// another one has replaced.
	ErrOtherDatabase = errors.New("the address leads to another database than before")
	// ErrDamaged says that what an engine keeps is not as it was written.
	ErrDamaged = errors.New("the data folder is damaged")
	// ErrTooLarge says that a row has more bytes than [MaxValue] allows.
	ErrTooLarge = errors.New("too large a record")
)

// Shared is an engine whose state other processes change, too: they may be faster again and again.
type Shared interface {
	// Turn has commits that change rows of some keyspaces wait until the turn ends, at the latest after a time. It is
	// based on keyspaces that are changed, and on others that are read. Without any that is changed, all commits wait.
	// States that are read from then on stay as they are in these keyspaces.
	Turn(ctx context.Context, reads, changes []uint32, most time.Duration) (Turn, error)
	// Writable returns nil if changes are taken now, and the error of a change else.
	Writable(ctx context.Context) error
}

// Turn is the time in which others do not commit. It is used by one goroutine.
type Turn interface {
	// Begin is that of [Engine]. The turn ends with the writer.
	Begin(ctx context.Context, since Version) (Writer, error)
	// End ends it where nothing has begun.
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

// Reserved begins the keys that belong to engines: one may keep rows of its own
// there. They are in no iteration over all rows.
const Reserved = "\xFF\xFF\xFF\xFF"

// CheckRow returns an error where there can be no such row, [ErrTooLarge] where its value is too long.
func CheckRow(key, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: it has %d bytes, %d are allowed", ErrTooLarge, len(value), MaxValue)
	}
	return CheckKey(key)
}

// CheckKey returns an error where a row may not have a key.
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

// After returns the least key that is behind all keys with a prefix, nil where there is none.
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
