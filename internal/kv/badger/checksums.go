package badger

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
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

	"github.com/tmshare/tmshare/internal/kv"
)

// Badger compares checksums of rows only on request, and then treats rows with wrong ones as missing. So they are
// compared here.

const (
	verifyPause = 5 * time.Millisecond // for each verifyPiece of a table, before it is read: others need the disk, too
	verifyPiece = 2 << 20              // bytes
	// bytes of tables that are compared without a pause: a short command compares all of them
	verifyFew = 64 << 20
)

// Verify implements [kv.Verifier]: it compares the checksums of all rows in tables, and of the values in value logs to
// which they lead (not of rows in the logs of memtables).
func (e *Engine) Verify(ctx context.Context) error {
	err := e.folder.place.Named(e.verify(ctx))
	e.damaged.Store(errors.Is(err, kv.ErrDamaged))
	return err
}

func (e *Engine) verify(ctx context.Context) error {
	if err := e.folder.checkFiles(); err != nil {
		return err
	}
	m, err := readManifestInUse(e.folder.path)
	if err != nil {
		return err
	}
	soon := e.VerifiesSoon()
	var buffer []byte
	for id, t := range m.Tables { // in another order each time: short commands compare others
		pause := time.Duration(0)
		if info, err := os.Stat(table.NewFilename(id, e.folder.path)); err == nil && !soon {
			pause = verifyPause * time.Duration(1+info.Size()/verifyPiece)
		}
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

// checkValueInUse is checkValue for a row of a table. A newer row may have replaced it, and its value may be removed.
func (e *Engine) checkValueInUse(key []byte, p pointer) error {
	damage := checkValue(valueLog(e.folder.path, p.file), p)
	if damage == nil {
		return nil
	}
	r := e.reader(e.stopped)
	defer r.Close()
	if _, err := r.Get(key); errors.Is(err, kv.ErrDamaged) {
		return damage
	}
	return nil
}

// VerifiesSoon reports whether Verify takes but a moment.
func (e *Engine) VerifiesSoon() bool {
	e.users.RLock()
	defer e.users.RUnlock()
	size := int64(0)
	for _, level := range e.badger.Levels() {
		size += level.Size
	}
	return size <= verifyFew
}

// checkRowsInUse is checkRows for a table that Badger may delete meanwhile. After MANIFEST no longer names it, Badger
// first truncates it, so only a part of it may have been read.
func (e *Engine) checkRowsInUse(id uint64, t badgerdb.TableManifest, buffer *[]byte) error {
	damage := checkRows(table.NewFilename(id, e.folder.path), id, t, buffer, e.checkValueInUse)
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

// checkRows compares the checksums of all rows of a table, block by block, because some tables are large. each, if not
// nil, receives the rows whose values are in value logs. The buffer grows if necessary.
func checkRows(path string, id uint64, t badgerdb.TableManifest, buffer *[]byte,
	each func(key []byte, p pointer) error) (err error) {
	// not mapped as by Badger: mapped files count as memory of this process
	f, size, err := openNamed(path, "is missing, which MANIFEST names")
	if err != nil {
		return err
	}
	defer f.Close()
	index, err := readIndex(path, f, size, buffer)
	if err != nil {
		return err
	}
	wrong := damaged(path, "has rows that their checksum does not fit")
	defer func() {
		if recover() != nil { // Badger does not validate its input
			err = wrong
		}
	}()
	if t.Compression != options.None {
		return checkPacked(f, id, t, wrong, each)
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
		if each != nil {
			if err := eachPointer(block, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachPointer calls each with the rows of a block whose values are in value logs. A block has the rows, their offsets
// in four bytes each, their number, and its checksum. A row begins with the length of the prefix that it shares with
// the first key, and the length of the rest.
func eachPointer(block []byte, each func(key []byte, p pointer) error) error {
	sum := int(binary.BigEndian.Uint32(block[len(block)-4:]))
	number := len(block) - 4 - sum - 4
	begins := number - 4*int(binary.BigEndian.Uint32(block[number:]))
	var first []byte
	for at := begins; at < number; at += 4 {
		row := block[binary.NativeEndian.Uint32(block[at:]):begins]
		shared, rest := binary.NativeEndian.Uint16(row), binary.NativeEndian.Uint16(row[2:])
		key := row[4 : 4+rest]
		if at == begins {
			first = key
		}
		if value := row[4+rest:]; value[0]&entryPointer != 0 {
			_, n := binary.Uvarint(value[2:]) // when it expires
			if err := each(y.ParseKey(slices.Concat(first[:shared], key)), readPointer(value[2+n:])); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointersIn calls each with the rows of all tables whose values are in value logs.
func (m *manifest) pointersIn(folder string, each func(key []byte, p pointer) error) error {
	var buffer []byte
	for id, t := range m.Tables {
		if err := checkRows(table.NewFilename(id, folder), id, t, &buffer, each); err != nil {
			return err
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
func checkPacked(f io.Reader, id uint64, t badgerdb.TableManifest, wrong error,
	each func(key []byte, p pointer) error) error {
	content, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	opened, err := table.OpenInMemoryTable(content, id, &table.Options{BlockSize: 4 << 10, Compression: t.Compression})
	if err != nil || opened.VerifyChecksum() != nil {
		return wrong
	}
	if each == nil {
		return nil
	}
	rows := opened.NewIterator(0)
	defer rows.Close()
	for rows.Rewind(); rows.Valid(); rows.Next() {
		if value := rows.Value(); value.Meta&entryPointer != 0 {
			if err := each(y.ParseKey(rows.Key()), readPointer(value.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}
