package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// showProgress is the size in bytes of an upload from which on its progress is
// shown.
const showProgress = 8 << 20

// progress reads a file, and shows on a terminal how much of it has been read.
type progress struct {
	r    io.Reader
	to   io.Writer
	name string
	size int64
	now  func() time.Time

	read  int64
	shown time.Time
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.read += int64(n)
	switch now := p.now(); {
	case err == io.EOF: // reading XML goes on at the server, and publishing comes after
		fmt.Fprintf(p.to, "\r\x1b[K%s: %d MB sent, the server is working on it\n", p.name, p.read>>20)
	case now.Sub(p.shown) >= 200*time.Millisecond:
		p.shown = now
		fmt.Fprintf(p.to, "\r\x1b[K%s: %d of %d MB", p.name, p.read>>20, p.size>>20)
	}
	return n, err
}

// isTerminal reports whether somebody can read and answer there.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device as well
	return err != nil || !os.SameFile(info, null)
}
