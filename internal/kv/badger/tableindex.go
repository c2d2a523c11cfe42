package badger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

// checkTables checks that all tables in MANIFEST are whole. A large database has hundreds, and short commands wait for
// this, so several are checked concurrently.
func checkTables(folder string, m *manifest) error {
	ids := make(chan uint64)
	damage := make([]error, min(runtime.GOMAXPROCS(0), 4))
	var workers sync.WaitGroup
	for i := range damage {
		workers.Go(func() {
			var buffer []byte
			for id := range ids {
				if damage[i] == nil {
					damage[i] = checkTable(table.NewFilename(id, folder), &buffer)
				}
			}
		})
	}
	for id := range m.Tables {
		ids <- id
	}
	close(ids)
	workers.Wait()
	return cmp.Or(damage...)
}

// checkTable looks whether a table of Badger that MANIFEST names is whole. It does not read the
// rows.
func checkTable(path string, buffer *[]byte) error {
	f, size, err := openNamed(path, "is missing, which MANIFEST names")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = readIndex(path, f, size, buffer)
	return err
}

// openNamed opens a file that another file names, and returns its size. If it does not exist, the error is damage with
// the text missing.
func openNamed(path, missing string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, damaged(path, "%s", missing)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// readIndex returns the index of a table, if it has the checksum that stands there. A table
// ends with the index, the length of that in four bytes, the checksum, and the length of that.
// The index is in the buffer, which grows as it must.
func readIndex(path string, content io.ReaderAt, size int64, buffer *[]byte) (index []byte, err error) {
	cut := damaged(path, "is cut: %d bytes", size)
	var tail []byte
	end := func(n int64) error { // has the last n bytes read
		if n > size {
			return cut
		}
		if n <= int64(len(tail)) {
			return nil
		}
		*buffer = slices.Grow((*buffer)[:0], int(n))[:n]
		tail = *buffer
		_, err := content.ReadAt(tail, size-n)
		if err == io.EOF { // it was cut just now
			return cut
		}
		return err
	}
	// that ends so many bytes before the end, with its length
	part := func(after int64) (b []byte, before int64, err error) {
		if err := end(after + 4); err != nil {
			return nil, 0, err
		}
		length := int64(binary.BigEndian.Uint32(tail[int64(len(tail))-after-4:]))
		if length == 0 {
			return nil, 0, cut
		}
		before = after + 4 + length
		if err := end(before); err != nil {
			return nil, 0, err
		}
		return tail[int64(len(tail))-before : int64(len(tail))-after-4], before, nil
	}
	if err := end(min(size, max(size/16, 4<<10))); err != nil { // most likely all that is needed
		return nil, err
	}
	sum, after, err := part(0)
	if err != nil {
		return nil, err
	}
	var expected pb.Checksum
	if err := proto.Unmarshal(sum, &expected); err != nil {
		return nil, damaged(path, "has no checksum (%v)", err)
	}
	if index, _, err = part(after); err != nil {
		return nil, err
	}
	if err := y.VerifyChecksum(index, &expected); err != nil {
		return nil, damaged(path, "has an index that its checksum does not fit")
	}
	return index, nil
}
