package badger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
)

// recordFile describes Badger's files when they were last known to be whole. It is among them, so that a copied
// database brings its record.
const recordFile = "database.json"

// record is the content that Badger's files must still have. Badger cannot distinguish a truncated or older MANIFEST
// from a whole one: it would delete all tables that it does not name. The record is written when the database is opened
// and closed, and within a second after each change of MANIFEST.
type record struct {
	Node     uuid.UUID      `json:"node"`
	Closed   bool           `json:"closed"` // the database is closed, and was closed properly the last time
	Manifest manifestRecord `json:"manifest"`
	// Files must exist with at least these sizes in bytes: the value logs, and for an open database the newest memtable
	// until MANIFEST has grown. It is empty while Badger opens or closes the database, because that deletes empty
	// files.
	Files map[string]int64 `json:"files,omitempty"`
	// Sessions are those whose writes may be in logs. A new one is recorded before Badger opens the database.
	Sessions []uint64 `json:"sessions,omitempty"`
	// SHA256 is the digest of the record without it, as JSON. A folder of an earlier, refused format may have none.
	SHA256 string `json:"sha256,omitempty"`
}

// sum returns the correct SHA256.
func (r record) sum() string {
	r.SHA256 = ""
	b, _ := json.Marshal(r) // cannot fail for these types
	return hashOf(b)
}

// manifestRecord is the part of MANIFEST that is known to be whole. Badger appends to it.
type manifestRecord struct {
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	Deletions int    `json:"deletions"` // how many it has
}

// rewrittenFrom is the least number of deletions in the recorded MANIFEST after which Badger may have rewritten it: it
// does so after 10,000.
const rewrittenFrom = 5_000

func readRecord(folder string) (*record, error) {
	path := filepath.Join(folder, recordFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(path, "is missing")
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, damaged(path, "cannot be read (%v)", err)
	}
	if r.SHA256 != "" && r.SHA256 != r.sum() {
		return nil, damaged(path, "was changed: its checksum does not fit")
	}
	return &r, nil
}

// manifest is the content of MANIFEST.
type manifest struct {
	badgerdb.Manifest
	content []byte
	whole   int64 // size in bytes of its whole entries
}

// readManifestInUse reads a MANIFEST that Badger may be writing to.
func readManifestInUse(folder string) (m *manifest, err error) {
	for range 3 {
		if m, err = readManifest(folder); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return m, err
}

// readManifest reads the MANIFEST of a database.
func readManifest(folder string) (*manifest, error) {
	path := filepath.Join(folder, manifestFile)
	f, _, err := openNamed(path, "is missing")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &manifest{}
	if m.Manifest, m.whole, err = badgerdb.ReplayManifestFile(f, 0, badgerdb.Options{}); err != nil {
		return nil, damaged(path, "cannot be read (%v)", err)
	}
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		m.content, err = io.ReadAll(f)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *manifest) record() manifestRecord {
	return manifestRecord{Size: m.whole, SHA256: hashOf(m.content[:m.whole]), Deletions: m.Deletions}
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// recordClosed records Badger's files after the database was closed.
func (f *Folder) recordClosed(node uuid.UUID) error {
	if left, err := filepath.Glob(filepath.Join(f.path, "*"+memtableExt)); err != nil || len(left) > 0 {
		return err // it is recovered when it is opened
	}
	return f.write(node, true, func(_, values []string) []string { return values })
}

// recordOpen records them while it is open.
func (f *Folder) recordOpen(node uuid.UUID) error {
	return f.write(node, false, func(memtables, values []string) []string {
		if len(memtables) == 1 { // it is of this session
			f.sessions = nil
		}
		values = slices.DeleteFunc(values, func(name string) bool { return name < f.collected })
		return append(values, memtables[max(len(memtables)-1, 0):]...)
	})
}

// recordMoving records them before Badger opens or closes the database.
func (f *Folder) recordMoving(node uuid.UUID) error {
	return f.write(node, false, func(_, _ []string) []string { return nil })
}

// write records Badger's files. mustHave selects the logs that must exist from names in ascending order.
func (f *Folder) write(node uuid.UUID, closed bool, mustHave func(memtables, values []string) []string) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.readAgain(); err != nil { // before listing the logs: a memtable is removed after MANIFEST has grown
		return err
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	sizes, logs := map[string]int64{}, map[string][]string{}
	for _, e := range entries {
		ext := filepath.Ext(e.Name()) // names of tables are never reused
		if ext == tableExt && f.tight[e.Name()] {
			continue // a large database has hundreds
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Size() > emptyLog {
			sizes[e.Name()] = info.Size()
			logs[ext] = append(logs[ext], e.Name())
		}
		if info.Mode().Perm()&0o077 != 0 { // Badger makes them as the umask of the process allows
			_ = os.Chmod(filepath.Join(f.path, e.Name()), 0o600)
		}
		if ext == tableExt {
			f.tight[e.Name()] = true
		}
	}
	if n := len(logs[valueLogExt]); n > 0 && !closed { // Badger makes it longer at first
		sizes[logs[valueLogExt][n-1]] = emptyLog
	}
	r := record{Node: node, Closed: closed, Manifest: f.manifest, Files: map[string]int64{}}
	for _, name := range mustHave(logs[memtableExt], logs[valueLogExt]) {
		r.Files[name] = sizes[name]
	}
	if !closed {
		r.Sessions = append(slices.Clip(f.sessions), f.session)
	}
	if err := durable.SyncFolder(f.path); err != nil {
		return err
	}
	r.SHA256 = r.sum()
	err = durable.WriteJSON(filepath.Join(f.path, recordFile), &r)
	if err == nil {
		f.record = &r
	}
	return err
}

// checkFiles looks whether the logs are there that must be.
func (f *Folder) checkFiles() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.record == nil {
		return nil
	}
	return f.record.checkFiles(f.path, false)
}

// collect removes the value logs that are there now from the record, since collecting garbage removes some of them,
// perhaps when the last reader has ended.
func (f *Folder) collect() error {
	logs, err := filepath.Glob(filepath.Join(f.path, "*"+valueLogExt))
	if err != nil || len(logs) < 2 {
		return err
	}
	f.writing.Lock()
	f.collected = filepath.Base(logs[len(logs)-1]) // which is not collected
	r := f.record
	f.writing.Unlock()
	if r == nil {
		return nil // no record is kept yet
	}
	return f.recordOpen(r.Node)
}

// readAgain reads MANIFEST, unless it is as it was when it was read last.
func (f *Folder) readAgain() error {
	seen, err := os.Stat(filepath.Join(f.path, manifestFile))
	if err != nil || f.isRead(seen) {
		return err
	}
	m, err := readManifestInUse(f.path)
	if err == nil {
		f.read, f.manifest = seen, m.record()
	}
	return err
}

// isRead reports whether MANIFEST is the file read last. Badger appends to it, or replaces it.
func (f *Folder) isRead(now os.FileInfo) bool {
	return f.read != nil && os.SameFile(f.read, now) && f.read.Size() == now.Size() &&
		f.read.ModTime().Equal(now.ModTime())
}

// followManifest writes the record again after each change of MANIFEST.
func (e *Engine) followManifest() {
	f := e.folder
	path := filepath.Join(f.path, manifestFile)
	for {
		select {
		case <-e.stopped.Done():
			return
		case <-time.After(time.Second):
		}
		info, err := os.Stat(path)
		f.writing.Lock()
		known := err == nil && f.isRead(info)
		f.writing.Unlock()
		if known {
			continue
		}
		if err == nil {
			e.users.RLock() // not while Badger is closed
			err = f.recordOpen(e.node)
			e.users.RUnlock()
		}
		if err != nil { // the previous record is still correct, only less complete
			e.log.Warn("cannot write down what the files of the database are like; after a crash, a MANIFEST that is cut "+
				"might go unnoticed", "error", err)
		}
	}
}
