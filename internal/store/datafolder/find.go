package datafolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/internal/kv/badger"
)

// findFolder reports whether there is a data folder at dir, complete or damaged. It looks for an identity and for the
// files of a database, so neither an empty folder nor a folder of other files is one. A file in its place, or the
// folder of the database itself, is an error.
func findFolder(dir string) (found bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, noFolder(dir, fmt.Sprintf("%v; name a folder with --data", withoutPath(err)))
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == identityFile:
			return true, nil
		case badger.IsFile(name):
			return false, noFolder(dir, fmt.Sprintf("it is the database inside of one; name the folder above it, --data %s",
				filepath.Dir(filepath.Clean(dir))))
		}
	}
	inside, err := os.ReadDir(filepath.Join(dir, Database))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, e := range inside {
		if badger.IsFile(e.Name()) {
			return true, nil
		}
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, Snapshots, "*", "*"+SnapshotEnding))
	return len(snapshots) > 0, err
}

// notInside returns an error if a new data folder at dir would be inside of another one.
func notInside(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for above := filepath.Dir(dir); above != filepath.Dir(above); above = filepath.Dir(above) {
		if _, err := os.Stat(filepath.Join(above, identityFile)); err == nil {
			return fmt.Errorf("%s is inside of the data folder %s: give another folder with --data", dir, above)
		}
	}
	return nil
}

func noFolder(dir, remedy string) error { return fmt.Errorf("%w at %s: %s", ErrNoFolder, dir, remedy) }

// withoutPath returns an error of the system without the name of the file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
