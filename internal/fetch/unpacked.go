package fetch

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// Open opens the content of a complete download, unpacked. It returns an error after limit bytes, and if checksums do
// not match.
func (d *Download) Open(limit int64) (io.ReadCloser, error) {
	f, err := os.Open(d.Path)
	if err != nil {
		return nil, err
	}
	from, err := withoutCoding(buffered{bufio.NewReaderSize(f, 64<<10), f}, d.known.Coding)
	if err != nil {
		f.Close()
		return nil, &Error{URL: d.URL(), Err: err}
	}
	return &unpacked{Download: d, from: from, left: limit, limit: limit}, nil
}

// Coded reports whether the file of a download has a content coding; otherwise it is the content.
func (d *Download) Coded() bool { return d.known.Coding != "" }

// buffered reads a file through a buffer.
type buffered struct {
	*bufio.Reader
	io.Closer
}

// unpacked reads the content of a download.
type unpacked struct {
	*Download
	from        io.ReadCloser
	left, limit int64
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.from.Read(p[:min(int64(len(p)), u.left+1)])
	if u.left -= int64(n); u.left < 0 {
		return 0, &Error{URL: u.URL(), Err: fmt.Errorf("%w of %d bytes", errTooLong, u.limit)}
	}
	if err != nil && err != io.EOF {
		err = &Error{URL: u.URL(), Err: err}
	}
	return n, err
}

func (u *unpacked) Close() error { return u.from.Close() }
