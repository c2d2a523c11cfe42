package backup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/durable"
)

// spared is how long a chunk that no backup names is kept: another backup that is being made
// may be about to name it.
const spared = 24 * time.Hour

// Prune removes all backups in a folder but the newest keep, and the chunks that none of these
// names and that no backup has used for a day. It returns how many backups it has removed.
func Prune(path string, keep int) (removed int, err error) {
	lock, err := lockFolder(path)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	names, err := manifests(path)
	if err != nil {
		return 0, err
	}
	used := map[string]bool{}
	old := names[:max(len(names)-max(keep, 1), 0)]
	for _, name := range names[len(old):] {
		_, m, err := openFolder(path, name)
		if err != nil {
			return 0, err
		}
		for _, c := range m.all() {
			used[c.SHA256] = true
		}
	}
	for _, name := range old {
		if err := os.Remove(filepath.Join(path, name)); err != nil {
			return removed, err
		}
		removed++
	}
	if err := durable.SyncFolder(path); err != nil { // so that no manifest comes back without its chunks
		return removed, err
	}
	until := time.Now().Add(-spared)
	err = filepath.WalkDir(filepath.Join(path, chunkFolder), func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || used[d.Name()] || !chunkName.MatchString(d.Name()) && !strings.HasSuffix(d.Name(), temporary) {
			return err
		}
		info, err := d.Info()
		if err != nil || info.ModTime().After(until) {
			return err
		}
		return os.Remove(at)
	})
	return removed, err
}
