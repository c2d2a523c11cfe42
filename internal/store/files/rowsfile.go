package files

import (
	"context"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/internal/kv"
)

// rowsFile implements [File]. Each read uses its own state of the engine, so that slow readers hold none. Chunks do not
// change while they exist.
type rowsFile struct {
	*io.SectionReader // over ReadAt
	row
	store Rows
	ctx   context.Context
	name  string

	begin  int64  // offset in the file of the last chunk read
	read   []byte // that
	closed bool
}

// readAhead is the number of chunks per read of sequential readers.
const readAhead = 4

// ReadAt implements [io.ReaderAt].
func (f *rowsFile) ReadAt(p []byte, offset int64) (n int, err error) {
	if f.closed {
		return 0, fmt.Errorf("files: %s is closed", f.name)
	}
	if offset < 0 {
		return 0, fmt.Errorf("files: %s has nothing before its beginning", f.name)
	}
	for n < len(p) {
		at := offset + int64(n)
		if at >= f.row.Size {
			return n, io.EOF
		}
		if at < f.begin || at >= f.begin+int64(len(f.read)) {
			if err := f.load(at / f.Chunk); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], f.read[at-f.begin:])
	}
	return n, nil
}

// load reads a chunk, and some of the next ones if the previous chunk was read last.
func (f *rowsFile) load(chunk int64) error {
	most := int64(1)
	if len(f.read) > 0 && f.begin+int64(len(f.read)) == chunk*f.Chunk {
		most = readAhead
	}
	f.begin, f.read = chunk*f.Chunk, f.read[:0]
	end := min(f.begin+most*f.Chunk, f.row.Size)
	return f.store.view(f.ctx, func(r kv.Reader) error {
		for at := f.begin; at < end; at += f.Chunk {
			bytes, err := r.Get(chunkKey(f.ID, at/f.Chunk))
			if err != nil {
				return err
			}
			if want := min(f.Chunk, f.row.Size-at); int64(len(bytes)) != want {
				return fmt.Errorf("%s was removed while it was read, or is damaged: a chunk has %d bytes, not %d; ask again",
					f.name, len(bytes), want)
			}
			f.read = append(f.read, bytes...)
		}
		return nil
	})
}

// Size implements [File].
func (f *rowsFile) Size() int64 { return f.row.Size }

// Close implements [io.Closer].
func (f *rowsFile) Close() error {
	f.closed, f.read = true, nil
	return nil
}
