// Package snapshotfiles writes the files of snapshots: a gzipped one in each form.
package snapshotfiles

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

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

// Write writes the files of a new snapshot, of which content writes the forms, each in a goroutine of its
// own. It returns the snapshot with its ID, Sizes and Ends. After an error there are no files of it.
func (f Folder) Write(ctx context.Context, content func(w io.Writer, version xtm.Version) error) (*collections.Snapshot, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	if err := durable.SyncFolder(filepath.Dir(string(f))); err != nil { // the folder may be new
		return nil, err
	}
	s := &collections.Snapshot{ID: uuid.New(), Sizes: map[xtm.Version]int64{}, Ends: map[xtm.Version]uint64{}}
	var files [len(rendered.Forms)]written
	var writing sync.WaitGroup
	for i, version := range rendered.Forms {
		writing.Go(func() {
			files[i] = write(ctx, f.Path(s.ID, version), func(w io.Writer) error { return content(w, version) })
		})
	}
	writing.Wait()
	var err error
	for i, version := range rendered.Forms {
		s.Sizes[version], s.Ends[version] = files[i].size, files[i].end
		err = cmp.Or(err, files[i].err)
	}
	if err == nil {
		err = durable.SyncFolder(string(f))
	}
	if err != nil {
		f.Remove(s.ID)
		return nil, err
	}
	return s, nil
}

// written is a file that was written.
type written struct {
	size int64
	end  uint64 // see [collections.GzipEnd]
	err  error
}

// write writes a file under a temporary name, syncs it and renames it into place.
func write(ctx context.Context, path string, content func(io.Writer) error) (w written) {
	f, err := os.CreateTemp(filepath.Dir(path), "*.tmp")
	if err != nil {
		return written{err: err}
	}
	defer func() {
		f.Close()
		if w.err != nil {
			os.Remove(f.Name())
		}
	}()
	buffer := bufio.NewWriterSize(f, 64<<10)
	z := gzip.NewWriter(buffer)
	if err := content(durable.ContextWriter{Context: ctx, Writer: z}); err != nil {
		return written{err: err}
	}
	if err := errors.Join(z.Close(), buffer.Flush(), f.Sync()); err != nil {
		return written{err: err}
	}
	info, err := f.Stat()
	if err != nil {
		return written{err: err}
	}
	end, err := collections.GzipEnd(f, info.Size())
	if err != nil {
		return written{err: err}
	}
	return written{info.Size(), end, os.Rename(f.Name(), path)}
}
