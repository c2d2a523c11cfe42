package web

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Coding is a content coding (RFC 9110 §8.4.1, Content Codings).
type Coding string

// The offered codings. Identity is the absence of one.
const (
	Identity Coding = "identity"
	Gzipped  Coding = "gzip"
	zstd1    Coding = "zstd" // RFC 8878
)

// packers packs answers. The writers are used again and again, as each takes
// hundreds of kilobytes.
type packers struct {
	gzip, zstd sync.Pool
}

// resettable are the packing writers of both libraries.
type resettable interface {
	io.WriteCloser
	Reset(io.Writer)
}

func (p *packers) init() {
	p.gzip.New = func() any { return gzip.NewWriter(nil) }
	p.zstd.New = func() any {
		// One goroutine and a window of 1 MB for each answer: many run at once.
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20),
			zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are wrong
		}
		return z
	}
}

// pack lets write write to w in a coding.
func (p *packers) pack(w io.Writer, c Coding, write func(io.Writer) error) error {
	pool := &p.gzip
	switch c {
	case Identity:
		return write(w)
	case zstd1:
		pool = &p.zstd
	}
	z := pool.Get().(resettable)
	defer pool.Put(z)
	z.Reset(w)
	defer z.Reset(nil) // do not hold on to w
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

// packed returns the output of encode in a coding.
func (p *packers) packed(encode func() ([]byte, error), c Coding) ([]byte, error) {
	b, err := encode()
	if c == Identity || err != nil {
		return b, err
	}
	var out bytes.Buffer
	err = p.pack(&out, c, func(w io.Writer) error { _, err := w.Write(b); return err })
	return out.Bytes(), err
}
