package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/internal/store/datafolder"
)

// Sizes are the bytes that a database takes on disk.
type Sizes struct {
	Records   int64 // all rows
	Snapshots int64
}

// Sizes returns how much room the database takes. It looks at each file.
func (db *DB) Sizes() (s Sizes, err error) {
	if s.Records, err = db.rows.Engine.Size(); err != nil {
		return s, err
	}
	s.Snapshots, err = sizeOf(filepath.Join(db.dir, datafolder.Snapshots))
	return s, err
}

// sizeOf adds up the sizes of the files in a folder. Files and folders that go
// meanwhile have none.
func sizeOf(folder string) (bytes int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		var info os.FileInfo
		if err == nil && !d.IsDir() {
			if info, err = d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return bytes, err
}
