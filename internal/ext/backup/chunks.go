package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/tmshare/tmshare/internal/store"
)

// Sizes of chunks in bytes, before they are packed.
const (
	leastChunk = 128 << 10
	mostChunk  = 4 << 20   // but for a row that is larger
	maxPacked  = 512 << 20 // of a chunk that is read
	maxPlain   = 1 << 30
)

// cutAfter is the average number of rows after which a chunk ends, once it is large enough.
const cutAfter = 128

// chunker divides its input into chunks, and passes them to put, packed.
type chunker struct {
	plain  []byte
	packer *zstd.Encoder
	put    func(name string, packed []byte) error
	chunks []chunk
}

func newChunker(put func(string, []byte) error) (*chunker, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) // deterministic output
	return &chunker{packer: z, put: put}, err
}

// row adds a row. The key decides whether a chunk ends with it.
func (c *chunker) row(r store.Row) error {
	c.plain = binary.AppendUvarint(c.plain, uint64(len(r.Key)))
	c.plain = append(c.plain, r.Key...)
	c.plain = binary.AppendUvarint(c.plain, uint64(len(r.Value)))
	c.plain = append(c.plain, r.Value...)
	if len(c.plain) < leastChunk {
		return nil
	}
	h := fnv.New64a()
	h.Write(r.Key)
	if h.Sum64()%cutAfter == 0 || len(c.plain) >= mostChunk {
		return c.flush()
	}
	return nil
}

// file adds the content of a file, and returns its size in bytes.
func (c *chunker) file(r io.Reader) (size int64, err error) {
	piece := make([]byte, mostChunk)
	for {
		n, err := io.ReadFull(r, piece)
		size += int64(n)
		c.plain = append(c.plain, piece[:n]...)
		if flushed := c.flush(); flushed != nil {
			return size, flushed
		}
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

func (c *chunker) flush() error {
	if len(c.plain) == 0 {
		return nil
	}
	packed := c.packer.EncodeAll(c.plain, nil)
	c.plain = c.plain[:0]
	name := sum(packed)
	c.chunks = append(c.chunks, chunk{name, int64(len(packed))})
	return c.put(name, packed)
}

// take returns the chunks since the last call.
func (c *chunker) take() (chunks []chunk, err error) {
	err = c.flush()
	chunks, c.chunks = c.chunks, nil
	return chunks, err
}

// unpack is the inverse of packing.
func unpack(packed []byte) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlain))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(packed, nil)
}

var errNoRows = errors.New("a chunk has no rows of a database")

// rowsOf calls yield with each row of a chunk of rows. It reports whether all were wanted.
func rowsOf(plain []byte, yield func(store.Row, error) bool) bool {
	next := func() ([]byte, bool) {
		n, size := binary.Uvarint(plain)
		if size <= 0 || n > uint64(len(plain)-size) {
			return nil, false
		}
		b := plain[size : size+int(n)]
		plain = plain[size+int(n):]
		return b, true
	}
	for len(plain) > 0 {
		key, ok := next()
		value, also := next()
		if !ok || !also || len(key) == 0 {
			yield(store.Row{}, fmt.Errorf("%w: %w", ErrDamaged, errNoRows))
			return false
		}
		if !yield(store.Row{Key: key, Value: value}, nil) {
			return false
		}
	}
	return true
}
