package formats

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/tmshare/tmshare/internal/cli"
)

// DefaultMaxSize is the default limit of an unpacked document, in bytes: more than the map that most machines can hold,
// but reached soon.
const DefaultMaxSize = 4 << 30

// input is the common limit of the readers of a document, and of those that it merges.
type input struct {
	left, max int64
}

var gzipMagic = []byte{0x1F, 0x8B} // RFC 1952 §2.3.1, Member header and trailer

// IsGzipped reports whether a document that begins so is gzipped.
func IsGzipped(head []byte) bool { return bytes.HasPrefix(head, gzipMagic) }

// unpack returns the content of r, which may be gzipped (RFC 1952).
func (in *input) unpack(r io.Reader) (*limited, error) {
	packed := bufio.NewReaderSize(r, 64<<10)
	head, err := packed.Peek(len(gzipMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !IsGzipped(head) {
		return &limited{r: packed, in: in}, nil
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, broken(err)
	}
	content := bufio.NewReaderSize(&gunzip{z}, 64<<10)
	if head, _ := content.Peek(len(gzipMagic)); IsGzipped(head) {
		return nil, errors.New("it is gzipped twice: unpack it once")
	}
	return &limited{r: content, in: in}, nil
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
		return errors.New("it is gzipped, and ends early: fetch or pack it again")
	}
	return err
}

// limited reads up to the limit of the input.
type limited struct {
	r   io.Reader
	in  *input
	err error // that has ended it
}

func (l *limited) Read(p []byte) (int, error) {
	if l.in.left < 0 {
		return 0, &TooLargeError{l.in.max}
	}
	n, err := l.r.Read(p)
	l.in.left -= int64(n)
	if err != nil && err != io.EOF {
		l.err = err
	}
	return n, err
}

// InputError is the error for a document that could not be read to its end.
type InputError struct {
	Name string // of the document
	Err  error
}

func (e *InputError) Error() string { return e.Name + Unread + e.Err.Error() }

// Unread is the text of messages about a document that could not be read to its end.
const Unread = ": cannot be read to its end: "

func (e *InputError) Unwrap() error { return e.Err }

// TooLargeError is the error for a document that, unpacked and with merged ones, has more than Max bytes.
type TooLargeError struct{ Max int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf(
		"it has more than %d bytes, unpacked and with what it merges in: raise the limit with --max-size, or divide it",
		e.Max)
}

// Open opens a file for reading and returns its size, 0 if it has none, like a pipe. It calls looked with the file's
// data before. A folder, which could be opened but not read, is an error.
func Open(path string, looked func(string, fs.FileInfo)) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		info, _ := os.Stat(path)
		looked(path, info)
		return nil, 0, unreadable(path, err)
	}
	info, err := f.Stat()
	looked(path, info)
	switch {
	case err != nil:
		return nil, 0, errors.Join(unreadable(path, err), f.Close())
	case info.IsDir():
		return nil, 0, errors.Join(fmt.Errorf("%s is a folder: name a file in it", path), f.Close())
	case info.Mode().IsRegular():
		return f, info.Size(), nil
	}
	return f, 0, nil
}

// unreadable returns an error with the reason why a file cannot be read, and the remedy.
func unreadable(path string, err error) error {
	if strings.Contains(path, "://") && errors.Is(err, fs.ErrNotExist) {
		return cli.UsageError(fmt.Errorf("%s is an address: name a file", path))
	}
	return fmt.Errorf("%s: %w; name a file that is there and that you may read", path, causeOf(err))
}

// UntilDone returns a reader of r that fails with the error of ctx once that has ended.
func UntilDone(ctx context.Context, r io.Reader) io.Reader { return untilDone{ctx, r} }

type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
