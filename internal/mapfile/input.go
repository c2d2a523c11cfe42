package mapfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// DefaultMaxSize is the largest size in bytes of what is read, unpacked: more
// than most machines can hold as a map, and little enough to meet soon.
const DefaultMaxSize = 4 << 30

// input is what the readers of one document, and of those that it merges in,
// have in common: how much may be read in all.
type input struct {
	left, max int64
}

var gzipMagic = []byte{0x1F, 0x8B} // RFC 1952 §2.3.1, Member header and trailer

// unpack returns the content of r, which may be gzipped (RFC 1952).
func (in *input) unpack(r io.Reader) (io.Reader, error) {
	packed := bufio.NewReaderSize(r, 64<<10)
	head, err := packed.Peek(len(gzipMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(head, gzipMagic) {
		return &limited{packed, in}, nil
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, broken(err)
	}
	content := bufio.NewReaderSize(&gunzip{z}, 64<<10)
	if head, _ := content.Peek(len(gzipMagic)); bytes.Equal(head, gzipMagic) {
		return nil, errors.New("it is gzipped twice: unpack it once")
	}
	return &limited{content, in}, nil
}

// gunzip makes the errors of a gzip reader speak of gzip.
type gunzip struct{ r io.Reader }

func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if err != nil && err != io.EOF {
		err = broken(err)
	}
	return n, err
}

func broken(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("gzip: the file ends early")
	}
	return err
}

// limited reads as long as the input may go on.
type limited struct {
	r  io.Reader
	in *input
}

func (l *limited) Read(p []byte) (int, error) {
	if l.in.left < 0 {
		return 0, &TooLargeError{l.in.max}
	}
	n, err := l.r.Read(p)
	l.in.left -= int64(n)
	return n, err
}

// TooLargeError says that a document, unpacked and with what it merges in, has
// more than Max bytes.
type TooLargeError struct{ Max int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it has more than %d bytes, unpacked and with what it merges in", e.Max)
}

// openFile opens a file for reading and returns its size, 0 where it has none.
// Folders can be opened, but not read.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("mapfile: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, errors.Join(fmt.Errorf("mapfile: %w", err), f.Close())
	case info.IsDir():
		return nil, 0, errors.Join(fmt.Errorf("mapfile: %s is a folder, not a file", path), f.Close())
	case info.Mode().IsRegular():
		return f, info.Size(), nil
	}
	return f, 0, nil
}
