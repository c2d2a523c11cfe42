package badger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Size implements [kv.Engine]. It looks at each file.
func (e *Engine) Size() (bytes int64, err error) {
	err = filepath.WalkDir(e.folder.path+"/.", func(_ string, d fs.DirEntry, err error) error {
		var info os.FileInfo
		if err == nil && !d.IsDir() {
			if info, err = d.Info(); err == nil {
				bytes += allocated(info)
			}
		}
		if errors.Is(err, os.ErrNotExist) { // removed meanwhile
			return nil
		}
		return err
	})
	return bytes, err
}
