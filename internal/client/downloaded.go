package client

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what unpacking may take (RFC 9659 §3, Window Size).
const maxWindow = 8 << 20

// open opens the content of a complete download, unpacked. It fails, rather than
// ends, behind limit bytes, and where checksums do not match.
func (d *download) open(limit int64) (io.ReadCloser, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, err
	}
	u := &unpacked{download: d, file: f, left: limit, limit: limit}
	packed := bufio.NewReaderSize(f, 64<<10)
	switch d.Coding {
	case "gzip":
		u.from, err = gzip.NewReader(packed)
	case "zstd":
		u.zstd, err = zstd.NewReader(packed, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		u.from = u.zstd
	default:
		u.from = packed
	}
	if err != nil {
		f.Close()
		return nil, &FetchError{URL: d.URL, Err: err}
	}
	return u, nil
}

// unpacked reads the content of a download.
type unpacked struct {
	*download
	file        *os.File
	from        io.Reader
	zstd        *zstd.Decoder // nil if there is none
	left, limit int64
}

func (u *unpacked) Read(p []byte) (int, error) {
	if u.left < 0 {
		return 0, &FetchError{URL: u.URL, Err: fmt.Errorf("%w of %d bytes", errTooLong, u.limit)}
	}
	n, err := u.from.Read(p[:min(int64(len(p)), u.left+1)])
	u.left -= int64(n)
	if err != nil && err != io.EOF {
		err = &FetchError{URL: u.URL, Err: err}
	}
	return n, err
}

func (u *unpacked) Close() error {
	if u.zstd != nil {
		u.zstd.Close()
	}
	return u.file.Close()
}
