// Package files is the seam between a node and where its large files are: those of snapshots, and
// the lists and packages of ResourceSync.
//
// [Store] is the contract. A [Folder] has files on a disk: it is for the engine that has its rows
// in the same data folder. [Rows] cuts files into chunks, which are rows of an engine: all nodes that
// share the engine have them. Package filestest holds the tests that both pass.
//
// Files are written first and listed then: those of snapshots in rows of the store, those of ResourceSync in notes,
// which are the last file of a group. So files that are not listed are of no use.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"
)

// Store stores files under names. It is safe for concurrent use, also by several processes that share the storage.
type Store interface {
	// Create begins a file. Nobody sees it before [Writer.Commit].
	Create(ctx context.Context, name string) (Writer, error)

	// Open opens a file. The error is [fs.ErrNotExist] if there is none. An open file stays readable for an hour at
	// least after it is removed, but not after ctx has ended.
	Open(ctx context.Context, name string) (File, error)

	// List iterates over the files whose names have a prefix, which begins with one of the [Areas]. It may or may not
	// include files added or removed meanwhile.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Remove removes a file, if it is there.
	Remove(ctx context.Context, name string) error

	// Sweep removes the remains of writers that began before a time, and were neither committed nor cancelled, and of
	// removed files. If other processes may be writing, the time must be [Unfinished] ago or longer.
	Sweep(ctx context.Context, before time.Time) error
}

// Writer writes a file. It is not safe for concurrent use.
type Writer interface {
	io.Writer
	// Commit makes the whole file visible in place of another one of the name, durably. After an error there is no new
	// file.
	Commit() error
	// Cancel gives the file up, unless it is committed. Each writer is committed or cancelled; both
	// is fine.
	Cancel()
}

// File is a file that is open. It is not safe for concurrent use.
type File interface {
	io.ReadSeekCloser
	io.ReaderAt
	Size() int64 // in bytes
}

// Info describes a file.
type Info struct {
	Name string
	Size int64     // in bytes
	Made time.Time // when it was begun, or committed
}

// Unfinished is the time limit for writing a file, after which others may take the writer for dead.
const Unfinished = 24 * time.Hour

// What names begin with, up to the first slash.
const (
	Snapshots = "snapshots"    // of collections
	Resources = "resourcesync" // lists and packages
)

// Areas are the parts into which files are divided.
var Areas = []string{Snapshots, Resources}

// temporary ends the names of files that are not committed, in a folder.
const temporary = ".tmp"

// checkName returns an error where a file cannot have a name.
func checkName(name string) error {
	area, _, below := strings.Cut(name, "/")
	if !below || !slices.Contains(Areas, area) || !fs.ValidPath(name) || strings.HasSuffix(name, temporary) ||
		len(name) > 500 {
		return fmt.Errorf("files: %.80q cannot be the name of a file", name)
	}
	return nil
}

// checkPrefix returns an error where no names can begin with a prefix.
func checkPrefix(prefix string) error {
	if area, _, below := strings.Cut(prefix, "/"); !below || !slices.Contains(Areas, area) {
		return fmt.Errorf("files: no names begin with %.80q", prefix)
	}
	return nil
}

func missing(name string) error { return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist} }

// All returns descriptions of the files whose names have a prefix.
func All(ctx context.Context, s Store, prefix string) (all []Info, err error) {
	for f, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// RemoveAll removes all files whose names have a prefix.
func RemoveAll(ctx context.Context, s Store, prefix string) error {
	all, err := All(ctx, s, prefix)
	for _, f := range all {
		err = errors.Join(err, s.Remove(ctx, f.Name))
	}
	return err
}

// Size returns the total length in bytes of the files whose names have a prefix.
func Size(ctx context.Context, s Store, prefix string) (bytes int64, err error) {
	for f, err := range s.List(ctx, prefix) {
		if err != nil {
			return 0, err
		}
		bytes += f.Size
	}
	return bytes, nil
}
