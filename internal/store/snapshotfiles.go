package store

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
)

// snapshotsOf are the files of the snapshots of a collection.
type snapshotsOf struct {
	Store files.Store
	Epoch uuid.UUID // of the collection
}

func (o snapshotsOf) prefix() string { return files.Snapshots + "/" + o.Epoch.String() + "/" }

// Name returns the name of the file of a snapshot.
func (o snapshotsOf) Name(snapshot uuid.UUID) string {
	return o.prefix() + snapshot.String() + ".xtm21" + datafolder.SnapshotEnding
}

// Remove removes the file of a snapshot. If it fails, the next sweep of files removes it.
func (o snapshotsOf) Remove(ctx context.Context, snapshot uuid.UUID) {
	_ = o.Store.Remove(context.WithoutCancel(ctx), o.Name(snapshot))
}

// RemoveAll removes the files of all snapshots. The next sweep of files removes the rest after errors.
func (o snapshotsOf) RemoveAll(ctx context.Context) {
	_ = files.RemoveAll(context.WithoutCancel(ctx), o.Store, o.prefix())
}

// Open opens the gzipped file of a snapshot. The error is [collections.ErrLost] where the file is missing, or is not
// the one that was written.
func (o snapshotsOf) Open(ctx context.Context, s *collections.Snapshot) (files.File, error) {
	f, err := o.Store.Open(ctx, o.Name(s.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: snapshot %s", collections.ErrLost, s.ID)
	}
	if err != nil {
		return nil, err
	}
	if err := s.Check(f, f.Size()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Write writes the file of a new snapshot of src, the state of a publisher with the source locator prefix sp. It
// returns the snapshot with its ID, Size (in bytes) and End. After an error it removes the file.
func (o snapshotsOf) Write(ctx context.Context, src fragment.Source, sp string) (*collections.Snapshot, error) {
	s := &collections.Snapshot{ID: uuid.New()}
	w, err := o.Store.Create(ctx, o.Name(s.ID))
	if err != nil {
		return nil, err
	}
	defer w.Cancel()
	f := &file{Writer: w}
	packed := gzip.NewWriter(f)
	if err = fragment.WriteSnapshot(packed, src, fragment.Form{Version: rendered.Snapshot, SP: sp}); err == nil {
		err = packed.Close()
	}
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		o.Remove(ctx, s.ID)
		return nil, err
	}
	s.Size, s.End = f.size, binary.LittleEndian.Uint64(f.end[:])
	return s, nil
}

// file is a gzipped file that is being written.
type file struct {
	files.Writer
	size int64   // in bytes
	end  [8]byte // the last bytes: see [collections.GzipEnd]
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.size += int64(n)
	last := p[max(0, n-len(f.end)):n]
	copy(f.end[:], f.end[len(last):])
	copy(f.end[len(f.end)-len(last):], last)
	return n, err
}

// unlisted returns the names of snapshot files that were made before a time and that list does not return. It calls
// list after it has listed the files.
func unlisted(ctx context.Context, store files.Store, before time.Time,
	list func(context.Context) ([]string, error)) (unlisted []string, err error) {
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
