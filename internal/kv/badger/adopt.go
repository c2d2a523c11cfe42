package badger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/tmshare/tmshare/internal/durable"
)

// Badger imports tables only through its StreamWriter. That blocks all other writers from the first row to the last,
// then replaces the clock that protects open readers from compactions, and first deletes all rows, or else writes above
// them, where a large map is compacted at once. So tables are adopted in another way: the database is closed for a
// moment without readers and writers, and MANIFEST gets one entry that names all tables. This entry commits them:
// Badger removes tables that MANIFEST does not name.

// lastLevel is the number of the level with the oldest rows.
const lastLevel = 6

// quietTimeout is the time for which a load waits for a moment without readers and writers.
const quietTimeout = 2 * time.Second

// canAdopt reports whether tables that begin with a key may be adopted, as far as is known before they are made.
func (e *Engine) canAdopt(first []byte) bool {
	e.users.RLock()
	defer e.users.RUnlock()
	return !slices.ContainsFunc(e.badger.Tables(), func(t badgerdb.TableInfo) bool {
		return t.Level > 0 && (t.Level < lastLevel || rangeOf(&t).overlaps(keyRange{first, first}))
	})
}

// adopt adds tables to the database. It reports false if that is not possible now: there are always readers or writers,
// or other tables of the last level overlap with them.
func (e *Engine) adopt(t *tables) (adopted bool, err error) {
	if !e.alone() {
		return false, nil
	}
	defer e.view.Unlock()
	defer e.users.Unlock()
	if e.unusable != nil { // such as closed: after the folder is unlocked, no database must be open in it
		return false, e.unusable
	}
	there := e.badger.Tables()
	if t.overlap(there) {
		return false, nil
	}
	if err := e.move(); err != nil {
		return false, err
	}
	if err := e.badger.Close(); err != nil {
		e.unusable = fmt.Errorf("the database could not be closed in order to add what was loaded; open the store again: %w",
			err)
		return false, e.unusable
	}
	adopted, err = e.folder.nameTables(t, there)
	if failed := e.openAgain(); failed != nil {
		e.unusable = fmt.Errorf("the database could not be opened again after a load; open the store again: %w",
			errors.Join(err, failed))
		return false, e.unusable
	}
	if adopted {
		t.files = nil
		e.adopted.Add(1)
	}
	return adopted, err
}

// alone locks view and users, and reports true, if there is a moment soon without readers and writers. Only the caller
// waits for it: readers and writers that arrive meanwhile go first.
func (e *Engine) alone() bool {
	return soon(e.quietTimeout, func() bool {
		if !e.view.TryLock() {
			return false
		}
		if e.users.TryLock() {
			return true
		}
		e.view.Unlock()
		return false
	})
}

// soon calls try until it returns true or the timeout is over, and reports whether it did.
func soon(timeout time.Duration, try func() bool) bool {
	for since := time.Now(); time.Since(since) < timeout; time.Sleep(time.Millisecond) {
		if try() {
			return true
		}
	}
	return false
}

// overlap reports whether tables of the last level have keys in the ranges of the new tables.
func (t *tables) overlap(there []badgerdb.TableInfo) bool {
	return slices.ContainsFunc(there, func(there badgerdb.TableInfo) bool {
		return there.Level == lastLevel && slices.ContainsFunc(t.files, func(f loadedTable) bool {
			return rangeOf(&there).overlaps(f.keys)
		})
	})
}

func rangeOf(t *badgerdb.TableInfo) keyRange {
	return keyRange{y.ParseKey(t.Left), y.ParseKey(t.Right)}
}

// move checks the free space, and writes the record for the time in which Badger closes and opens the database, if one
// is kept.
func (e *Engine) move() error {
	if e.checkSpace != nil {
		if err := e.checkSpace(); err != nil {
			return err
		}
	}
	if e.node == uuid.Nil {
		return nil
	}
	if err := e.folder.CheckPlace(); err != nil {
		return err
	}
	return e.folder.recordMoving(e.node)
}

// openAgain opens the database if it is whole: Badger would ignore a damaged table, and truncate a damaged value log.
func (e *Engine) openAgain() error {
	if e.node == uuid.Nil {
		return e.openBadger()
	}
	if err := e.folder.inspect(); err != nil {
		return err
	}
	if err := e.openBadger(); err != nil {
		return err
	}
	return e.folder.recordOpen(e.node)
}

// nameTables gives tables names of Badger's form, and adds the entry to MANIFEST that names them. It reports false, and
// changes nothing, if a compaction has made a table in the last level since the check for overlaps.
func (f *Folder) nameTables(t *tables, there []badgerdb.TableInfo) (named bool, err error) {
	m, err := readManifest(f.path)
	if err != nil {
		return false, err
	}
	id := uint64(0)
	for each, in := range m.Tables {
		id = max(id, each)
		if in.Level == lastLevel && !slices.ContainsFunc(there, func(t badgerdb.TableInfo) bool { return t.ID == each }) {
			return false, nil
		}
	}
	var changes pb.ManifestChangeSet
	for _, file := range t.files {
		id++
		if err := os.Rename(file.path, table.NewFilename(id, f.path)); err != nil {
			return false, err
		}
		changes.Changes = append(changes.Changes, &pb.ManifestChange{
			Id: id, Op: pb.ManifestChange_CREATE, Level: lastLevel, EncryptionAlgo: pb.EncryptionAlgo_aes,
			Compression: uint32(options.None),
		})
	}
	if err := durable.SyncFolder(f.path); err != nil {
		return false, err
	}
	entry, err := proto.Marshal(&changes)
	if err != nil {
		return false, err
	}
	// Its length, its checksum, and the entry. It is not appended to the file, since Badger opens no database in which
	// a part of a long entry ends a short MANIFEST.
	content := binary.BigEndian.AppendUint32(m.content[:m.whole], uint32(len(entry)))
	content = binary.BigEndian.AppendUint32(content, crc32.Checksum(entry, y.CastagnoliCrcTable))
	err = durable.WriteFile(filepath.Join(f.path, manifestFile), append(content, entry...))
	return err == nil, err
}
