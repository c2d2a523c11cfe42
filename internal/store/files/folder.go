package files

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/durable"
)

// Folder is a [Store] in a folder of a disk, where its areas are folders. One process at a time
// writes there. A file is written under a temporary name, synced and renamed.
type Folder string

func (f Folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// Create implements [Store].
func (f Folder) Create(ctx context.Context, name string) (Writer, error) {
	if err := errors.Join(checkName(name), context.Cause(ctx)); err != nil {
		return nil, err
	}
	to := f.path(name)
	emptying.RLock()
	defer emptying.RUnlock()
	if err := makeFolder(filepath.Dir(to), string(f)); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(to), "*"+temporary)
	if err != nil {
		return nil, err
	}
	return &folderWriter{file, bufio.NewWriterSize(file, 64<<10), ctx, f, name}, nil
}

// emptying is held for writing while an empty folder is removed, and for reading from when a folder is made until a
// file is in it.
var emptying sync.RWMutex

// makeFolder makes a folder below another, durably.
func makeFolder(folder, root string) error {
	if _, err := os.Stat(folder); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for at := filepath.Dir(folder); ; at = filepath.Dir(at) {
		if err := durable.SyncFolder(at); err != nil || at == filepath.Clean(root) || at == filepath.Dir(at) {
			return err
		}
	}
}

// folderWriter implements [Writer].
type folderWriter struct {
	file   *os.File
	buffer *bufio.Writer
	ctx    context.Context
	folder Folder
	name   string
}

func (w *folderWriter) Write(p []byte) (int, error) {
	return durable.ContextWriter{Context: w.ctx, Writer: w.buffer}.Write(p)
}

func (w *folderWriter) Commit() error {
	err := errors.Join(context.Cause(w.ctx), w.buffer.Flush(), w.file.Sync(), w.file.Close())
	if err == nil {
		err = os.Rename(w.file.Name(), w.folder.path(w.name))
	}
	if err != nil {
		w.Cancel()
		return err
	}
	return durable.SyncFolder(filepath.Dir(w.file.Name()))
}

func (w *folderWriter) Cancel() {
	w.file.Close()
	if os.Remove(w.file.Name()) == nil { // it is not committed
		w.folder.removeEmpty(path.Dir(w.name))
	}
}

// Open implements [Store].
func (f Folder) Open(ctx context.Context, name string) (File, error) {
	if err := errors.Join(checkName(name), context.Cause(ctx)); err != nil {
		return nil, err
	}
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = missing(name)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &openFile{file, info.Size()}, nil
}

type openFile struct {
	*os.File
	size int64
}

func (f *openFile) Size() int64 { return f.size }

// WriteTo leaves the copying to the writer: the system can copy from files to sockets.
func (f *openFile) WriteTo(w io.Writer) (int64, error) { return f.File.WriteTo(w) }

// List implements [Store].
func (f Folder) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, err)
			return
		}
		err := f.walk(ctx, prefix, func(name string, entry fs.DirEntry) error {
			info, err := entry.Info()
			switch {
			case entry.IsDir(), errors.Is(err, fs.ErrNotExist):
				return nil
			case err == nil && !strings.HasSuffix(name, temporary) && !yield(Info{name, info.Size(), info.ModTime()}, nil):
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(Info{}, err)
		}
	}
}

// walk calls visit with each file and each folder whose name has a prefix. It skips those removed meanwhile.
func (f Folder) walk(ctx context.Context, prefix string, visit func(name string, entry fs.DirEntry) error) error {
	err := filepath.WalkDir(f.path(path.Dir(prefix+"x")), func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := errors.Join(err, context.Cause(ctx)); err != nil {
			return err
		}
		relative, err := filepath.Rel(string(f), at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		switch {
		case d.IsDir() && !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/"):
			return fs.SkipDir
		case !strings.HasPrefix(name, prefix):
			return nil
		}
		return visit(name, d)
	})
	return err
}

// Remove implements [Store]. It also removes the folders of the file that become empty.
func (f Folder) Remove(_ context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.removeEmpty(path.Dir(name))
	return nil
}

// removeEmpty removes a folder below an area, and those above, as long as they are empty.
func (f Folder) removeEmpty(name string) {
	for ; strings.Contains(name, "/"); name = path.Dir(name) {
		emptying.Lock()
		err := os.Remove(f.path(name))
		emptying.Unlock()
		if err != nil { // which fails where something is in it
			return
		}
	}
}

// Sweep implements [Store]. It removes empty folders as well.
func (f Folder) Sweep(ctx context.Context, before time.Time) error {
	for _, area := range Areas {
		var folders []string
		err := f.walk(ctx, area+"/", func(name string, entry fs.DirEntry) error {
			info, err := entry.Info()
			switch {
			case entry.IsDir():
				folders = append(folders, name)
			case err == nil && strings.HasSuffix(name, temporary) && !info.ModTime().After(before):
				return os.Remove(f.path(name))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, folder := range slices.Backward(folders) { // those in others first
			f.removeEmpty(folder)
		}
	}
	return nil
}
