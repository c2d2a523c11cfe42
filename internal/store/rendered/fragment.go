package rendered

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// MaxSize is the size in bytes above which a fragment is not stored
// with its entry but rendered when it is asked for.
const MaxSize = 256 << 10

// Fragment is the data of an entry as it is stored: as XTM 2.1, gzipped.
type Fragment struct {
	Gzipped []byte   // nil: the fragment is too large to store
	Record  []byte   // the record form; nil: it has the same bytes
	Digests []Digest // of what is in the record form, in each of Forms; nil: nobody wants them
}

// record returns the record form, gzipped.
func (f *Fragment) record() []byte {
	if f.Record != nil {
		return f.Record
	}
	return f.Gzipped
}

// Pack puts all that there is into one value: the fragment, of no bytes where it is too large, and
// the record form behind it, where it has other bytes.
func (f *Fragment) Pack() []byte {
	b := make([]byte, 0, 2*binary.MaxVarintLen32+len(f.Gzipped)+len(f.Record))
	b = append(binary.AppendUvarint(b, uint64(len(f.Gzipped))), f.Gzipped...)
	if f.Record != nil {
		b = append(binary.AppendUvarint(b, uint64(len(f.Record))), f.Record...)
	}
	return b
}

// unpack returns the n-th of what [Fragment.Pack] has put into one value.
func unpack(b []byte, n int) ([]byte, error) {
	for ; ; n-- {
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return nil, fmt.Errorf("%w: a fragment has no length. %s", kv.ErrDamaged, txn.DamageRemedy)
		}
		if n == 0 {
			return b[size : size+int(length)], nil
		}
		b = b[size+int(length):]
	}
}

type limitedBuffer struct{ bytes.Buffer }

// plains are buffers for reuse.
var plains = sync.Pool{New: func() any { return new(limitedBuffer) }}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxSize {
		return 0, records.ErrNotStorable
	}
	return b.Buffer.Write(p)
}

// packs are buffers for reuse.
var packs = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// compressors are kept for reuse: each has hundreds of kilobytes of tables. They
// are the fast ones: packing is much of the work of a publication, and what is small
// becomes only a tenth larger.
var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is no such level
	}
	return z
}}

func compress(plain []byte) ([]byte, error) {
	b := packs.Get().(*bytes.Buffer)
	defer packs.Put(b)
	b.Reset()
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(b)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil // of just its length: there may be many
}

// decompressors are kept for reuse.
var decompressors = sync.Pool{New: func() any { return new(gzip.Reader) }}

func gunzip(gzipped []byte) ([]byte, error) {
	z := decompressors.Get().(*gzip.Reader)
	defer decompressors.Put(z)
	if err := z.Reset(bytes.NewReader(gzipped)); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, 6*len(gzipped)))
	_, err := b.ReadFrom(z)
	return b.Bytes(), err
}
