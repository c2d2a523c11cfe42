package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/durable"
)

// Two of Badger's files can be remade, because they have no rows. KEYREGISTRY has encryption keys, and none is used.
// DISCARD has the number of unused bytes of each value log, by which Badger selects the one to collect garbage in.
// Badger keeps all used values of that log, even if DISCARD is wrong. But if DISCARD names a log twice, or has an
// invalid number, Badger searches endlessly.
const (
	keysFile    = "KEYREGISTRY"
	discardFile = "DISCARD"
)

// keysText ends an unencrypted KEYREGISTRY, after 16 bytes.
const keysText = "Hello Badger"

// discardSize is the least size in bytes of DISCARD. An entry has the number of a value log, and the number of its
// unused bytes. The first number 0 ends the entries.
const (
	discardSize  = 1 << 20
	discardEntry = 16
)

// unusable returns those of the files that can be made again, and are not as Badger writes them.
func unusable(folder string) (names []string, err error) {
	for _, f := range []struct {
		name   string
		usable func([]byte) bool
	}{{keysFile, usableKeys}, {discardFile, usableDiscard}} {
		b, err := os.ReadFile(filepath.Join(folder, f.name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case !f.usable(b):
			names = append(names, f.name)
		}
	}
	return names, nil
}

func usableKeys(b []byte) bool { return len(b) == 16+len(keysText) && string(b[16:]) == keysText }

// usableDiscard reports whether Badger can use a DISCARD. A process that was killed in creating it leaves an empty one.
func usableDiscard(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if len(b) < discardSize || len(b)%discardEntry != 0 {
		return false
	}
	seen := map[uint64]bool{}
	for ; len(b) > 0; b = b[discardEntry:] {
		log, discarded := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		if log == 0 {
			break
		}
		if seen[log] || log > math.MaxUint32 || discarded > math.MaxInt64 {
			return false
		}
		seen[log] = true
	}
	return len(b) > 0 && bytes.Count(b, []byte{0}) == len(b)
}

// remake makes the files again that Inspect has found unusable.
func (f *Folder) remake(log *slog.Logger) error {
	for _, name := range f.condition.unusable {
		path := filepath.Join(f.path, name)
		remake := f.dropKeys
		if name == discardFile {
			remake = func() error { return f.remakeDiscard(path) }
		}
		if err := remake(); err != nil {
			return err
		}
		log.Error("a file of the database was damaged, and was made again: it says nothing of what is stored. Look for "+
			"other damage with \"check\"", "file", f.place.Text(path))
	}
	f.condition.unusable = nil
	return nil
}

// dropKeys removes an unusable KEYREGISTRY. Badger creates a new one, and reads without one.
func (f *Folder) dropKeys() error {
	if !slices.Contains(f.condition.unusable, keysFile) {
		return nil
	}
	if err := os.Remove(filepath.Join(f.path, keysFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remakeDiscard counts the bytes in each value log to which rows point. The rest is unused.
func (f *Folder) remakeDiscard(path string) error {
	m, err := readManifest(f.path)
	if err != nil {
		return err
	}
	used := map[uint32]int64{}
	count := func(_ []byte, p pointer) error {
		used[p.file] += int64(p.length)
		return nil
	}
	if err := m.pointersIn(f.path, count); err != nil {
		return err
	}
	for _, log := range f.condition.logs {
		l, err := checkMemtableLog(log)
		if err != nil {
			return err
		}
		for _, p := range l.pointers {
			_ = count(nil, p)
		}
	}
	logs, err := filepath.Glob(filepath.Join(f.path, "*"+valueLogExt)) // the newest last
	if err != nil {
		return err
	}
	content := make([]byte, 0, discardSize)
	for i, log := range logs {
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(log), valueLogExt), 10, 32)
		if err != nil {
			continue // not a file of Badger
		}
		info, err := os.Stat(log)
		if err != nil {
			return err
		}
		end := info.Size()
		if i == len(logs)-1 && end > 0 { // the file may be longer than its entries
			if end, _, err = endOfLog(log); err != nil {
				return err
			}
		}
		if unused := end - emptyLog - used[uint32(number)]; unused > 0 {
			content = binary.BigEndian.AppendUint64(content, number)
			content = binary.BigEndian.AppendUint64(content, uint64(unused))
		}
	}
	return durable.WriteFile(path, append(content, make([]byte, max(discardSize, 2*len(content))-len(content))...))
}
