// Package snapshotfiles writes the files of snapshots: a gzipped one in each form.
package snapshotfiles

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// Of are the files of the snapshots of a collection.
type Of struct {
	Store files.Store
	Epoch uuid.UUID // of the collection
}

func (o Of) prefix() string { return files.Snapshots + "/" + o.Epoch.String() + "/" }

// Name returns the name of the file of a snapshot in a form.
func (o Of) Name(snapshot uuid.UUID, version xtm.Version) string {
	return o.prefix() + snapshot.String() + datafolder.SnapshotExt(version)
}

// Remove removes the files of a snapshot. What it cannot remove goes when the files are swept.
func (o Of) Remove(ctx context.Context, snapshot uuid.UUID) {
	for _, version := range rendered.Forms {
		_ = o.Store.Remove(context.WithoutCancel(ctx), o.Name(snapshot, version))
	}
}

// RemoveAll removes the files of all snapshots. What it cannot remove goes when the files are swept.
func (o Of) RemoveAll(ctx context.Context) {
	_ = files.RemoveAll(context.WithoutCancel(ctx), o.Store, o.prefix())
}

// Open opens the gzipped file of a snapshot. It is [collections.ErrLost] where it is missing, or
// another one than was written.
func (o Of) Open(ctx context.Context, s *collections.Snapshot, version xtm.Version) (files.File, error) {
	f, err := o.Store.Open(ctx, o.Name(s.ID, version))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: snapshot %s", collections.ErrLost, s.ID)
	}
	if err != nil {
		return nil, err
	}
	if err := s.Check(f, f.Size(), version); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Write writes the files of a new snapshot, which is all of src: a publisher's state with the source locator
// prefix sp. It returns the snapshot with its ID, Sizes and Ends. After an error there are no files of it.
func (o Of) Write(ctx context.Context, src fragment.Source, sp string) (s *collections.Snapshot, err error) {
	s = &collections.Snapshot{ID: uuid.New(), Sizes: map[xtm.Version]int64{}, Ends: map[xtm.Version]uint64{}}
	var written []*file
	defer func() {
		for _, f := range written {
			f.Cancel()
		}
		if err != nil {
			o.Remove(ctx, s.ID)
			s = nil
		}
	}()
	var documents []fragment.Document
	for _, version := range rendered.Forms {
		w, err := o.Store.Create(ctx, o.Name(s.ID, version))
		if err != nil {
			return s, err
		}
		next := &file{Writer: w}
		next.packed = gzip.NewWriter(next)
		written = append(written, next)
		documents = append(documents, fragment.Document{To: next.packed, Form: fragment.Form{Version: version, SP: sp}})
	}
	if err := fragment.WriteSnapshots(src, documents...); err != nil {
		return s, err
	}
	for i, version := range rendered.Forms {
		f := written[i]
		if err := f.packed.Close(); err != nil {
			return s, err
		}
		s.Sizes[version], s.Ends[version] = f.size, binary.LittleEndian.Uint64(f.end[:])
		if err := f.Commit(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// file is a gzipped file that is being written.
type file struct {
	files.Writer
	packed *gzip.Writer
	size   int64   // in bytes
	end    [8]byte // the last bytes: see [collections.GzipEnd]
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.size += int64(n)
	last := p[max(0, n-len(f.end)):n]
	copy(f.end[:], f.end[len(last):])
	copy(f.end[len(f.end)-len(last):], last)
	return n, err
}

// Unlisted returns the names of the files of snapshots that were made before a time, and are not listed. list is asked after
// it is seen what there is.
func Unlisted(ctx context.Context, store files.Store, before time.Time, list func(context.Context) ([]string, error)) (unlisted []string, err error) {
	there, err := files.All(ctx, store, files.Snapshots+"/")
	if err != nil || len(there) == 0 {
		return nil, err
	}
	names, err := list(ctx)
	listed := map[string]bool{}
	for _, name := range names {
		listed[name] = true
	}
	for _, f := range there {
		if err == nil && !listed[f.Name] && f.Made.Before(before) && strings.HasSuffix(f.Name, datafolder.SnapshotEnding) {
			unlisted = append(unlisted, f.Name)
		}
	}
	return unlisted, err
}
