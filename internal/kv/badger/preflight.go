package badger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	unnamed := false // MANIFEST does not name a table
	var memtables []string
	values, newest := "", uint64(0) // the newest value log
	for _, e := range entries {
		switch name := e.Name(); filepath.Ext(name) {
		case tableExt:
			if id, ok := table.ParseFileID(name); ok {
				if _, named := m.Tables[id]; !named {
					unnamed = true
				}
			}
		case memtableExt, valueLogExt:
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			if r.Closed && info.Size() > max(emptyLog, r.Files[name]) {
				return nil, damaged(filepath.Join(folder, name),
					"was written after the other files: empty a folder before you put a copy into it")
			}
			if info.Size() == 0 {
				c.emptied = append(c.emptied, filepath.Join(folder, name))
			} else if err := checkLogHeader(filepath.Join(folder, name)); err != nil {
				return nil, err
			}
			if filepath.Ext(name) == memtableExt {
				memtables = append(memtables, filepath.Join(folder, name))
			} else if n, err := strconv.ParseUint(strings.TrimSuffix(name, valueLogExt), 10, 32); err == nil && n >= newest &&
				info.Size() > 0 {
				values, newest = filepath.Join(folder, name), n
			}
		}
	}
	if unnamed || len(c.emptied) > 0 || len(memtables) > 0 {
		c.recover = true
	}
	if err := checkTables(folder, m); err != nil {
		return nil, err
	}
	if values != "" {
		if err := checkNewestValues(folder, values, uint32(newest), !c.recover, m); err != nil {
			return nil, err
		}
	}
	for _, path := range memtables {
		if slices.Contains(c.emptied, path) {
			continue
		}
		c.logs = append(c.logs, path)
		pointers, err := checkMemtableLog(path)
		if err != nil {
			return nil, err
		}
		for _, p := range pointers {
			if err := checkValue(valueLog(folder, p.file), p); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// valueLog returns the path of a value log.
func valueLog(folder string, number uint32) string {
	return filepath.Join(folder, fmt.Sprintf("%06d%s", number, valueLogExt))
}

// checkLogHeader checks that a log begins as Badger's do: the first 8 bytes name the encryption key, which is none.
func checkLogHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	header := make([]byte, emptyLog)
	switch _, err := io.ReadFull(f, header); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil // a process was killed in creating it, or it was cut, which is found out otherwise
	case err != nil:
		return err
	case binary.BigEndian.Uint64(header) != 0:
		return damaged(path, "is no log of this database: its first bytes were changed")
	}
	return nil
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
