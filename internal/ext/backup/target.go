package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/durable"
)

// target is the destination of a backup.
type target interface {
	// put keeps a chunk, unless it is there. It reports whether it was new.
	put(name string, packed []byte) (bool, error)
	// finish adds the manifest. The backup is there, durably, when it returns.
	finish(name string, manifest []byte) (path string, err error)
	// abandon removes unfinished files. It does nothing after finish.
	abandon()
}

// chunkFolder is the folder of the chunks, in a folder of backups and in the archive.
const chunkFolder = "chunks"

// newTarget returns the target for a path: a folder, if path is one or ends in a slash, else a new file.
func newTarget(path string) (target, error) {
	if IsFolder(path) {
		return newFolderTarget(filepath.Clean(path))
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		return nil, fmt.Errorf("%s is there already: name another file, or a folder, which holds many backups", path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return newFileTarget(path)
}

// IsFolder reports whether [Make] writes to path as a folder of backups: it is a folder, or it is missing and ends in a
// slash.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && path != "" && os.IsPathSeparator(path[len(path)-1])
	}
	return info.IsDir()
}

// folderTarget is a folder of backups.
type folderTarget struct {
	path string
	lock *os.File
}

func newFolderTarget(path string) (*folderTarget, error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); name != chunkFolder && !manifestName.MatchString(name) && !strings.HasSuffix(name, temporary) {
			return nil, fmt.Errorf("%s holds other things than backups (%s): name a folder that is empty or new, or a file",
				path, name)
		}
	}
	if err := os.MkdirAll(filepath.Join(path, chunkFolder), 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFolder(path)
	return &folderTarget{path, lock}, err
}

func chunkPath(name string) string { return filepath.Join(chunkFolder, name[:2], name) }

func (t *folderTarget) put(name string, packed []byte) (bool, error) {
	path := filepath.Join(t.path, chunkPath(name))
	if there, err := os.ReadFile(path); err == nil && sum(there) == name {
		return false, os.Chtimes(path, time.Time{}, time.Now()) // it is in use, see Prune
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, writeFile(path, packed)
}

func (t *folderTarget) finish(name string, manifest []byte) (string, error) {
	folders, err := os.ReadDir(filepath.Join(t.path, chunkFolder))
	if err != nil {
		return "", err
	}
	for _, f := range folders { // sync chunks before the manifest
		if err := durable.SyncFolder(filepath.Join(t.path, chunkFolder, f.Name())); err != nil {
			return "", err
		}
	}
	if err := durable.SyncFolder(filepath.Join(t.path, chunkFolder)); err != nil {
		return "", err
	}
	path := filepath.Join(t.path, name)
	if err := writeFile(path, manifest); err != nil {
		return "", err
	}
	return path, errors.Join(durable.SyncFolder(t.path), durable.SyncFolder(filepath.Dir(t.path)))
}

// abandon leaves the chunks: the next backup can use them.
func (t *folderTarget) abandon() { t.lock.Close() }

// temporary ends the names of files that are not finished.
const temporary = ".unfinished"

// writeFile writes a file that is there as a whole or not at all. Its folder is not synced.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "*"+temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// fileTarget is a tar archive.
type fileTarget struct {
	path string
	file *os.File
	tar  *tar.Writer
	has  map[string]bool
}

func newFileTarget(path string) (*fileTarget, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+temporary)
	if err != nil {
		return nil, err
	}
	return &fileTarget{path, f, tar.NewWriter(f), map[string]bool{}}, nil
}

func (t *fileTarget) put(name string, packed []byte) (bool, error) {
	if t.has[name] {
		return false, nil
	}
	t.has[name] = true
	return true, t.add(chunkFolder+"/"+name, packed)
}

func (t *fileTarget) add(name string, content []byte) error {
	if err := t.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)),
		ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := t.tar.Write(content)
	return err
}

func (t *fileTarget) finish(name string, manifest []byte) (string, error) {
	defer t.abandon()
	if err := t.add(name, manifest); err != nil {
		return "", err
	}
	if err := errors.Join(t.tar.Close(), t.file.Sync()); err != nil {
		return "", err
	}
	if err := os.Link(t.file.Name(), t.path); err != nil { // unlike renaming, it never replaces a file
		if errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if err := os.Rename(t.file.Name(), t.path); err != nil {
			return "", err
		}
	}
	return t.path, durable.SyncFolder(filepath.Dir(t.path))
}

func (t *fileTarget) abandon() {
	t.file.Close()
	os.Remove(t.file.Name())
}
