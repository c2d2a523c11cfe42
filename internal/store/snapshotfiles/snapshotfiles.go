// Package snapshotfiles writes the files of snapshots: a gzipped one in each form.
package snapshotfiles

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/datafolder"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// Folder is the path of the folder with the files of a collection's snapshots. It need not be there.
type Folder string

// Path returns the path of the file of a snapshot in a form.
func (f Folder) Path(snapshot uuid.UUID, version xtm.Version) string {
	return filepath.Join(string(f), snapshot.String()+datafolder.SnapshotExt(version))
}

// Remove removes the files of a snapshot. What stays behind goes when the store is opened.
func (f Folder) Remove(snapshot uuid.UUID) {
	for _, version := range rendered.Forms {
		os.Remove(f.Path(snapshot, version))
	}
}

// Write writes the files of a new snapshot, which is all of src: a publisher's state with the source locator
// prefix sp. It returns the snapshot with its ID, Sizes and Ends. After an error there are no files of it.
func (f Folder) Write(ctx context.Context, src fragment.Source, sp string) (s *collections.Snapshot, err error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	if err := durable.SyncFolder(filepath.Dir(string(f))); err != nil { // the folder may be new
		return nil, err
	}
	s = &collections.Snapshot{ID: uuid.New(), Sizes: map[xtm.Version]int64{}, Ends: map[xtm.Version]uint64{}}
	var files []*file
	defer func() {
		for _, written := range files {
			written.drop()
		}
		if err != nil {
			f.Remove(s.ID)
			s = nil
		}
	}()
	var documents []fragment.Document
	for _, version := range rendered.Forms {
		next, err := create(string(f))
		if err != nil {
			return s, err
		}
		files = append(files, next)
		documents = append(documents, fragment.Document{
			To: durable.ContextWriter{Context: ctx, Writer: next.packed}, Form: fragment.Form{Version: version, SP: sp},
		})
	}
	if err := fragment.WriteSnapshots(src, documents...); err != nil {
		return s, err
	}
	for i, version := range rendered.Forms {
		if s.Sizes[version], s.Ends[version], err = files[i].end(f.Path(s.ID, version)); err != nil {
			return s, err
		}
	}
	return s, durable.SyncFolder(string(f))
}

// file is a file that is being written, under a temporary name.
type file struct {
	*os.File
	buffer *bufio.Writer
	packed *gzip.Writer
}

func create(folder string) (*file, error) {
	f, err := os.CreateTemp(folder, "*.tmp")
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(f, 64<<10)
	return &file{f, buffer, gzip.NewWriter(buffer)}, nil
}

// end syncs the file and renames it into place. It returns its size and what [collections.GzipEnd] does.
func (f *file) end(path string) (size int64, end uint64, err error) {
	if err := f.packed.Close(); err != nil {
		return 0, 0, err
	}
	if err := errors.Join(f.buffer.Flush(), f.Sync()); err != nil {
		return 0, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if end, err = collections.GzipEnd(f.File, info.Size()); err != nil {
		return 0, 0, err
	}
	return info.Size(), end, os.Rename(f.Name(), path)
}

// drop closes the file, and removes it where it has its temporary name still.
func (f *file) drop() {
	f.Close()
	os.Remove(f.Name())
}
