package resourcesync

import (
	"archive/zip"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// PackFast makes the package compress further items in a third of the time, with a larger result.
func (p *PackageWriter) PackFast() {
	p.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		z := fastPackers.Get().(*flate.Writer)
		z.Reset(w)
		return &fastPacker{z}, nil
	})
}

// fastPackers are kept for reuse: each has large tables.
var fastPackers = sync.Pool{New: func() any {
	z, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return z
}}

type fastPacker struct{ *flate.Writer }

func (f *fastPacker) Close() error {
	err := f.Writer.Close()
	fastPackers.Put(f.Writer)
	return err
}
