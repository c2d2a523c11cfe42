package backup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/durable"
)

// spared is the time for which a chunk without a backup is kept, because a running backup may need it.
const spared = 24 * time.Hour

// The number of tries to get the lock, and the time between two.
const (
	lockTries = 20
	lockPause = 25 * time.Millisecond
)

// lockFolder keeps other processes from writing to a folder of backups until the file is closed. A process that this
// one is just starting has the lock of the last backup for a moment.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	held, err := durable.Lock(f, false)
	for tries := 0; held && tries < lockTries; tries++ {
		time.Sleep(lockPause)
		held, err = durable.Lock(f, false)
	}
	if held {
		err = fmt.Errorf("another backup into %s is being made: wait until it has ended, or name another folder", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Prune removes all backups in a folder except the newest keep, and the chunks that none of these names and no backup
// used for a day. It returns the number of removed backups.
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
	if err := durable.SyncFolder(path); err != nil { // so that a crash leaves no manifest without its chunks
		return removed, err
	}
	until := time.Now().Add(-spared)
	err = filepath.WalkDir(filepath.Join(path, chunkFolder), func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || used[d.Name()] || !chunkName.MatchString(d.Name()) &&
			!strings.HasSuffix(d.Name(), temporary) {
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
