package badger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4/table"
)

// The files of Badger's database.
const (
	manifestFile = "MANIFEST" // names the tables
	tableExt     = ".sst"
	memtableExt  = ".mem"  // the log of a memtable: rows that are in no table yet
	valueLogExt  = ".vlog" // large values
)

// emptyLog is the size in bytes of an empty log of Badger.
const emptyLog = 20

// condition is the condition of the files of an undamaged database.
type condition struct {
	recover  bool     // it must be recovered, so Badger cannot open it read-only
	emptied  []string // logs that a process was killed in creating
	logs     []string // of memtables, all others
	unusable []string // names of files to remake
}

// preflight checks a database against its record, and changes nothing.
//
// Badger deletes each table that MANIFEST does not name, ignores tables with a damaged index, and drops the unreadable
// end of a log. That is right after a crash, and a loss otherwise. After a crash, tables may be not yet named, or not
// yet deleted, and MANIFEST and logs may end with a part of an entry. A closed database has only the logs of its
// record: Badger would add the last commits of a database that crashed to those of an older copy.
func preflight(folder string, r *record, m *manifest) (*condition, error) {
	grown, err := r.compare(folder, m)
	if err != nil {
		return nil, err
	}
	again, err := unusable(folder)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	c := &condition{recover: !r.Closed || grown || len(again) > 0, unusable: again}
	values, newest := "", uint64(0) // the newest value log
	for _, e := range entries {
		switch name := e.Name(); filepath.Ext(name) {
		case tableExt:
			id, ok := table.ParseFileID(name)
			if _, named := m.Tables[id]; ok && !named {
				c.recover = true
			}
		case memtableExt, valueLogExt:
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			if r.Closed && info.Size() > max(emptyLog, r.Files[name]) {
				return nil, mixed(filepath.Join(folder, name))
			}
			path := filepath.Join(folder, name)
			if info.Size() == 0 {
				c.emptied = append(c.emptied, path)
				continue
			}
			if err := checkLogHeader(path); err != nil {
				return nil, err
			}
			if filepath.Ext(name) == memtableExt {
				c.logs = append(c.logs, path)
			} else if n, err := strconv.ParseUint(strings.TrimSuffix(name, valueLogExt), 10, 32); err == nil && n >= newest {
				values, newest = path, n
			}
		}
	}
	c.recover = c.recover || len(c.emptied) > 0 || len(c.logs) > 0
	if err := checkTables(folder, m); err != nil {
		return nil, err
	}
	if values != "" {
		if err := checkNewestValues(folder, values, uint32(newest), !c.recover, m); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(c.logs, func(a, b string) int { return len(a) - len(b) }) // by number
	var writes []write
	for _, path := range c.logs {
		log, err := checkMemtableLog(path)
		if err != nil {
			return nil, err
		}
		writes = append(writes, log.writes...)
		for _, p := range log.pointers {
			if err := checkValue(valueLog(folder, p.file), p); err != nil {
				return nil, err
			}
		}
	}
	return c, r.checkOrder(writes)
}

// mixed returns the error if a log is of another time than the other files.
func mixed(log string) error {
	return damaged(log, "is of another time than the other files: empty a folder before you put a copy into it")
}

// checkOrder checks that the record has the sessions of writes in logs, and that the version before a commit is there.
// After a copy was put over the files of a crash, some logs may be of the copy, and others not: Badger replays all.
func (r *record) checkOrder(writes []write) error {
	known := map[uint64]bool{}
	for _, w := range writes {
		if w.session != 0 && !slices.Contains(r.Sessions, w.session) ||
			w.version != 0 && w.before != 0 && len(known) > 0 && !known[w.before] {
			return mixed(w.path)
		}
		if w.version != 0 {
			known[w.before], known[w.version] = true, true
		}
	}
	return nil
}

// valueLog returns the path of a value log.
func valueLog(folder string, number uint32) string {
	return filepath.Join(folder, fmt.Sprintf("%06d%s", number, valueLogExt))
}

// checkLogHeader checks that a log begins as Badger's do: the first 8 bytes name the encryption key, which is none.
func checkLogHeader(path string) error {
	f, size, err := openNamed(path, "is missing")
	if err != nil {
		return err
	}
	defer f.Close()
	var key uint64
	if size >= emptyLog { // otherwise a process was killed in creating it, or it was cut, which is found out otherwise
		err = binary.Read(f, binary.BigEndian, &key)
	}
	if err != nil || key == 0 {
		return err
	}
	return damaged(path, "is no log of this database: its first bytes were changed")
}

// compare checks that MANIFEST still has the content in the record, and reports whether it has grown. If it has not,
// the logs named in the record must exist.
func (r *record) compare(folder string, m *manifest) (grown bool, err error) {
	path := filepath.Join(folder, manifestFile)
	size := int64(len(m.content))
	switch {
	case r.Closed && size > r.Manifest.Size:
		return false, damaged(path, "is longer than it was when the database was closed: %d bytes, not %d", size,
			r.Manifest.Size)
	case size >= r.Manifest.Size && hashOf(m.content[:r.Manifest.Size]) == r.Manifest.SHA256:
	case !r.Closed && r.Manifest.Deletions >= rewrittenFrom && m.Deletions < r.Manifest.Deletions:
		return true, nil // Badger has rewritten it as a whole
	case size < r.Manifest.Size:
		return false, damaged(path, "is shorter than it was: %d bytes, not %d", size, r.Manifest.Size)
	default:
		return false, damaged(path, "is not the one of this database, or was changed")
	}
	grown = size > r.Manifest.Size
	return grown, r.checkFiles(folder, !grown)
}

// checkFiles checks that the logs in the record exist with at least their sizes. Those of memtables are removed after
// MANIFEST has grown.
func (r *record) checkFiles(folder string, memtables bool) error {
	for name, size := range r.Files {
		if filepath.Ext(name) == memtableExt && !memtables {
			continue
		}
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return damaged(path, "is missing")
		case err != nil:
			return err
		case info.Size() < size && !(filepath.Ext(name) == memtableExt && endsWhole(path)): // see CutLogs
			return damaged(path, "is shorter than it was: %d bytes, not %d", info.Size(), size)
		}
	}
	return nil
}
