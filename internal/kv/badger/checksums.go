package badger

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

// Badger compares the checksums of rows only where it is asked to, and then takes rows that do
// not fit for rows that are not there. So they are compared here.

const (
	verifyPause = 5 * time.Millisecond // before each table, as others need the disk, too
	verifyFew   = 32                   // tables that are compared without a pause: a short command compares all of them
)

// Verify implements [kv.Verifier]: it compares the checksums of all rows in tables (not in logs).
func (e *Engine) Verify(ctx context.Context) error {
	m, err := readManifestInUse(e.folder.path)
	if err != nil {
		return err
	}
	pause := verifyPause
	if len(m.Tables) <= verifyFew {
		pause = 0
	}
	var buffer []byte
	for id, t := range m.Tables { // in another order each time: short commands compare others
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		if err := e.checkRowsInUse(id, t, &buffer); err != nil {
			return err
		}
	}
	return nil
}

// VerifiesSoon reports whether Verify takes but a moment.
func (e *Engine) VerifiesSoon() bool {
	tables := 0
	for _, level := range e.badger.Levels() {
		tables += level.NumTables
	}
	return tables <= verifyFew
}

// checkRowsInUse is checkRows for a table that Badger may delete meanwhile. Badger cuts it first,
// when MANIFEST no longer names it: so what was read may be a part of it.
func (e *Engine) checkRowsInUse(id uint64, t badgerdb.TableManifest, buffer *[]byte) error {
	damage := checkRows(table.NewFilename(id, e.folder.path), id, t, buffer)
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

// checkRows compares the checksums of all rows of a table, block by block: some tables are large. One that Badger has deleted
// meanwhile has none. The buffer grows as it must.
func checkRows(path string, id uint64, t badgerdb.TableManifest, buffer *[]byte) (err error) {
	f, err := os.Open(path) // not as Badger does, which maps it: this process would seem to need the memory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	index, err := readIndex(path, f, info.Size(), buffer)
	if err != nil {
		return err
	}
	wrong := damaged(path, "has rows that their checksum does not fit")
	defer func() {
		if recover() != nil { // Badger trusts what it reads
			err = wrong
		}
	}()
	if t.Compression != options.None {
		return checkPacked(f, id, t, wrong)
	}
	blocks := fb.GetRootAsTableIndex(index, 0)
	content := bufio.NewReaderSize(f, 128<<10)
	var block []byte
	var at fb.BlockOffset
	for i := range blocks.OffsetsLength() {
		blocks.Offsets(&at, i) // they follow each other
		block = slices.Grow(block[:0], int(at.Len()))[:at.Len()]
		if _, err := io.ReadFull(content, block); err != nil || !fits(block) {
			return wrong
		}
	}
	return nil
}

// fits reports whether a block has the checksum that stands at its end, before the length of that.
func fits(block []byte) bool {
	end := len(block) - 4
	begin := end - int(binary.BigEndian.Uint32(block[end:]))
	var expected pb.Checksum
	return proto.Unmarshal(block[begin:end], &expected) == nil && y.VerifyChecksum(block[:begin], &expected) == nil
}

// checkPacked is checkRows for a table that is compressed: the first release made such.
func checkPacked(f io.Reader, id uint64, t badgerdb.TableManifest, wrong error) error {
	content, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	opened, err := table.OpenInMemoryTable(content, id, &table.Options{BlockSize: 4 << 10, Compression: t.Compression})
	if err != nil || opened.VerifyChecksum() != nil {
		return wrong
	}
	return nil
}
