package badger

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strconv"

	"github.com/dgraph-io/badger/v4/y"
)

// Badger truncates a log at the first unreadable entry. That is right if a process was killed in writing, and a loss if
// something in the middle was changed. So logs are read here first.

// The bits of an entry in a log that count here.
const (
	entryPointer = 1 << 1 // its value is a pointer to one in a value log
	entryOfMany  = 1 << 6 // it belongs to a transaction
	entryEnd     = 1 << 7 // it ends a transaction
)

const (
	longestHeader = 22 // of an entry in a log, in bytes
	longestLogKey = 1 << 16
	sector        = 512 // bytes, which a disk writes together
)

// endMark is the key of the entry that ends a transaction, before the version.
var endMark = []byte("!badger!txn")

// entry is an entry of a log, with its offset. A long value is omitted.
type entry struct {
	offset, size int64
	meta         byte
	key, value   []byte
}

// shortValue is the maximum size in bytes of a value that readEntry returns: a pointer, or a version.
const shortValue = 32

func (e *entry) version() uint64 { return y.ParseTs(e.key) }

// pointer is the place of a value in a value log.
type pointer struct{ file, length, offset uint32 }

func readPointer(b []byte) pointer {
	number := binary.NativeEndian.Uint32 // as Badger writes it
	return pointer{number(b), number(b[4:]), number(b[8:])}
}

const pointerSize = 12

// logReader reads the entries of a log.
type logReader struct {
	content *bufio.Reader
	at, end int64
}

func newLogReader(f io.ReaderAt, from, size int64) *logReader {
	return &logReader{bufio.NewReaderSize(io.NewSectionReader(f, from, size-from), 256<<10), from, size}
}

// next returns the next entry, or nil if it is not whole.
func (l *logReader) next() (*entry, error) {
	head, err := l.content.Peek(longestHeader)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(head) < 5 {
		return nil, nil
	}
	keyLength, n := binary.Uvarint(head[2:])
	valueLength, m := binary.Uvarint(head[2+max(n, 0):])
	_, o := binary.Uvarint(head[2+max(n, 0)+max(m, 0):]) // when it expires
	if n <= 0 || m <= 0 || o <= 0 || keyLength < 8 || keyLength > longestLogKey || valueLength > uint64(l.end) {
		return nil, nil
	}
	header := 2 + n + m + o
	e := &entry{offset: l.at, size: int64(header) + int64(keyLength+valueLength) + crc32.Size, meta: head[0],
		key: make([]byte, keyLength)}
	if l.at+e.size > l.end {
		return nil, nil
	}
	sum := crc32.New(y.CastagnoliCrcTable)
	sum.Write(head[:header])
	_, _ = l.content.Discard(header) // they were read
	content := io.TeeReader(l.content, sum)
	if _, err = io.ReadFull(content, e.key); err == nil && valueLength <= shortValue {
		e.value = make([]byte, valueLength)
		_, err = io.ReadFull(content, e.value)
	} else if err == nil {
		_, err = io.CopyN(io.Discard, content, int64(valueLength))
	}
	var expected [crc32.Size]byte
	if err == nil {
		_, err = io.ReadFull(l.content, expected[:])
	}
	if err != nil {
		return nil, err
	}
	if sum.Sum32() != binary.BigEndian.Uint32(expected[:]) {
		return nil, nil
	}
	l.at += e.size
	return e, nil
}

// logFile is a log, and what is before its end.
type logFile struct {
	*os.File
	size, end int64 // end is where Badger stops reading it
	pointers  []pointer
	writes    []write
}

// write is a transaction in a log. Its ids are 0 if it is no commit, or of an earlier program.
type write struct {
	path            string // of the log
	session         uint64
	version, before uint64 // the ids of the versions after and before the commit
}

// openLog opens a log, and reads it.
func openLog(path string) (*logFile, error) {
	f, size, err := openNamed(path, "is missing")
	if err != nil {
		return nil, err
	}
	l := &logFile{File: f, size: size, end: emptyLog}
	if err := l.read(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// read reads the log as Badger does: until the end of the last whole transaction, or entry without one, after which
// something is not whole.
func (l *logFile) read(path string) error {
	r := newLogReader(l, emptyLog, l.size)
	var open uint64 // the version of the transaction that has begun
	var found []pointer
	w := write{path: path}
	for {
		e, err := r.next()
		if e == nil || err != nil {
			return err
		}
		if e.meta&entryPointer != 0 && len(e.value) == pointerSize {
			found = append(found, readPointer(e.value))
		}
		switch {
		case e.meta&entryOfMany != 0:
			if open != 0 && open != e.version() {
				return nil
			}
			open = e.version()
			if key := y.ParseKey(e.key); len(e.value) == 16 && bytes.Equal(key, sessionKey) {
				w.session, w.before = binary.BigEndian.Uint64(e.value), binary.BigEndian.Uint64(e.value[8:])
			} else if len(e.value) == 16 && bytes.Equal(key, versionKey) {
				w.version = binary.BigEndian.Uint64(e.value[8:])
			}
			continue
		case e.meta&entryEnd != 0:
			version, err := strconv.ParseUint(string(e.value), 10, 64)
			if err != nil || version != open {
				return nil
			}
			open = 0
			l.writes = append(l.writes, w)
		case open != 0:
			return nil
		}
		l.end, l.pointers, found, w = r.at, append(l.pointers, found...), nil, write{path: path}
	}
}

// checkMemtableLog checks whether the log of a killed process has a transaction after the place where Badger stops
// reading it. Each transaction is on disk before the next one is written. So if two end after that place, the log was
// damaged. If one does, there may have been a power failure while it was written: then a sector is unwritten.
func checkMemtableLog(path string) (*logFile, error) {
	l, err := openLog(path)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	rest := make([]byte, max(l.size-l.end, 0))
	if _, err := l.ReadAt(rest, l.end); err != nil && err != io.EOF {
		return nil, err
	}
	var ends []int
	for at := 0; len(ends) < 2; at++ {
		next := bytes.Index(rest[at:], endMark)
		if next < 0 {
			break
		}
		at += next
		if begin := at - 5; begin >= 0 {
			if e, err := newLogReader(bytes.NewReader(rest), int64(begin), int64(len(rest))).next(); err == nil && e != nil &&
				e.meta&entryEnd != 0 {
				ends = append(ends, begin)
			}
		}
	}
	if len(ends) == 2 || len(ends) == 1 && !hasUnwrittenSector(rest[:ends[0]], l.end) {
		return nil, damaged(path, "was changed at its byte %d, or soon after it: a commit that is behind that place is whole",
			l.end)
	}
	return l, nil
}

// endsWhole reports whether a log ends with a whole entry.
func endsWhole(path string) bool {
	end, size, err := endOfLog(path)
	return err == nil && end == size
}

// endOfLog returns the offset at which Badger stops reading a log, and its size.
func endOfLog(path string) (end, size int64, err error) {
	l, err := openLog(path)
	if err != nil {
		return 0, 0, err
	}
	return l.end, l.size, l.Close()
}

// CutLogs prepares the files of a killed process for reading only: it truncates the logs of memtables where Badger
// stops reading them, and removes unreadable ones. So no recovery is necessary, which needs space on the disk: the rows
// stay in the logs.
func (f *Folder) CutLogs() error {
	if err := f.dropKeys(); err != nil {
		return err
	}
	for _, path := range f.condition.emptied {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, path := range f.condition.logs {
		end, size, err := endOfLog(path)
		if err == nil && end < size {
			err = os.Truncate(path, end)
		}
		if err != nil {
			return f.place.Named(err)
		}
	}
	return nil
}

// hasUnwrittenSector reports whether a whole sector in a part of a file consists of zeros.
func hasUnwrittenSector(part []byte, offset int64) bool {
	zeros := make([]byte, sector)
	for at := int((sector - offset%sector) % sector); at+sector <= len(part); at += sector {
		if bytes.Equal(part[at:at+sector], zeros) {
			return true
		}
	}
	return false
}

// checkValue checks that a value log has a whole entry at a pointer.
func checkValue(path string, p pointer) error {
	f, size, err := openNamed(path, "is missing, to which rows lead")
	if err != nil {
		return err
	}
	defer f.Close()
	end := int64(p.offset) + int64(p.length)
	if end > size {
		return damaged(path, "is cut: %d bytes, not %d", size, end)
	}
	e, err := newLogReader(f, int64(p.offset), end).next()
	if err != nil {
		return err
	}
	if e == nil || e.size != int64(p.length) {
		return damaged(path, "has a value that its checksum does not fit, at its byte %d", p.offset)
	}
	return nil
}

// checkNewestValues looks whether Badger can read the newest value log to its end. Opening the database cuts it where
// that cannot be done. A process that was killed may have left a part of an entry there, to which no table leads.
func checkNewestValues(folder, path string, number uint32, closed bool, m *manifest) error {
	l, err := openLog(path)
	if err != nil {
		return err
	}
	defer l.Close()
	if l.end >= l.size {
		return nil
	}
	wrong := damaged(path, "has a value that its checksum does not fit, at its byte %d", l.end)
	if closed {
		return wrong
	}
	rest := bufio.NewReaderSize(io.NewSectionReader(l, l.end, l.size-l.end), 1<<20)
	for {
		b, err := rest.ReadByte()
		if err == io.EOF {
			return nil // unwritten
		}
		if err != nil {
			return err
		}
		if b != 0 {
			break
		}
	}
	return m.pointersIn(folder, func(_ []byte, p pointer) error {
		if p.file == number && int64(p.offset) >= l.end {
			return wrong
		}
		return nil
	})
}
