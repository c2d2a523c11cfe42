package badger

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// Badger compares the checksums of rows only where it is asked to, and then takes rows that do
// not fit for rows that are not there. So they are compared here.

const (
	verifyPause = 5 * time.Millisecond // after each table but the first ones: others need the disk, too
	verifyFirst = 32
)

// Verify implements [kv.Verifier]: it compares the checksums of all rows in tables (not in logs).
func (e *Engine) Verify(ctx context.Context) error {
	m, err := readManifestInUse(e.folder.path)
	if err != nil {
		return err
	}
	n := 0
	for id, t := range m.Tables {
		n++
		pause := time.Duration(0)
		if n > verifyFirst {
			pause = verifyPause
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		if err := e.checkRowsInUse(id, t); err != nil {
			return err
		}
	}
	return nil
}

// checkRowsInUse is checkRows for a table that Badger may delete meanwhile. Badger cuts it first,
// when MANIFEST no longer names it: so what was read may be a part of it.
func (e *Engine) checkRowsInUse(id uint64, t badgerdb.TableManifest) error {
	damage := checkRows(table.NewFilename(id, e.folder.path), id, t)
	if damage == nil {
		return nil
	}
	now, err := readManifestInUse(e.folder.path)
	if err != nil {
		return err
	}
	if _, named := now.Tables[id]; !named {
		return nil
	}
	return damage
}

// checkRows compares the checksums of all rows of a table. One that Badger has deleted
// meanwhile has none.
func checkRows(path string, id uint64, t badgerdb.TableManifest) (err error) {
	content, err := os.ReadFile(path) // not as Badger does, which maps it: this process would seem to need the memory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkIndex(path, bytes.NewReader(content), int64(len(content))); err != nil {
		return err
	}
	wrong := damaged(path, "has rows that their checksum does not fit")
	defer func() {
		if recover() != nil { // Badger trusts what it reads
			err = wrong
		}
	}()
	opened, err := table.OpenInMemoryTable(content, id, &table.Options{BlockSize: 4 << 10, Compression: t.Compression})
	if err != nil || opened.VerifyChecksum() != nil {
		return wrong
	}
	return nil
}
