package turtle

import (
	"errors"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/internal/rdf"
)

// input reads the bytes of a document with look-ahead.
type input struct {
	r          io.Reader
	uri        string
	buf        []byte // buf[pos:] is read, but not used yet
	pos        int
	line       int
	lineStart  int64 // the offset of the first byte of the line
	before     int64 // number of bytes dropped before buf
	ended      bool
	emptyReads int
}

// The sizes of a read: small at first, as many documents are small.
const firstBuffer, bufferSize = 4 << 10, 64 << 10

// errBroken ends parsing from any depth: the error is in input.failed, or a SyntaxError.
type broken struct{ err error }

// fail ends parsing with an error at the present position.
func (in *input) fail(format string, args ...any) {
	panic(broken{&rdf.SyntaxError{URI: in.uri, Line: in.line, Column: in.column(), Reason: fmt.Sprintf(format, args...)}})
}

// column returns that of the present position.
func (in *input) column() int { return int(in.before+int64(in.pos)-in.lineStart) + 1 }

// more reads on, keeping unused bytes, and reports whether it read any.
func (in *input) more() bool {
	if in.ended {
		return false
	}
	size := cap(in.buf)
	grows := len(in.buf) == size && size < bufferSize
	if in.pos > 0 {
		in.before += int64(in.pos)
		in.buf = in.buf[:copy(in.buf, in.buf[in.pos:])]
		in.pos = 0
	}
	if grows || len(in.buf) == size {
		in.buf = append(make([]byte, 0, max(min(firstBuffer+16*size, bufferSize), 2*size)), in.buf...)
	}
	for {
		n, err := in.r.Read(in.buf[len(in.buf):cap(in.buf)])
		in.buf = in.buf[:len(in.buf)+n]
		if err != nil {
			in.ended = true
			if !errors.Is(err, io.EOF) {
				panic(broken{fmt.Errorf("%s: %w", in.uri, err)})
			}
		}
		if n > 0 || err != nil {
			in.emptyReads = 0
			return n > 0
		}
		if in.emptyReads++; in.emptyReads > 100 {
			panic(broken{fmt.Errorf("%s: %w", in.uri, io.ErrNoProgress)})
		}
	}
}

// at returns the byte n positions ahead; 0 after the end, which ends every token, because the grammar does not allow
// that byte.
func (in *input) at(n int) byte {
	for in.pos+n >= len(in.buf) {
		if !in.more() {
			return 0
		}
	}
	return in.buf[in.pos+n]
}

// end reports whether all is read.
func (in *input) end() bool { return in.pos >= len(in.buf) && !in.more() }

// newline counts a line after its last byte.
func (in *input) newline() {
	in.line++
	in.lineStart = in.before + int64(in.pos)
}

// space skips white space and comments, on this line only or over many.
func (in *input) space(lines bool) {
	for {
		switch in.at(0) {
		case ' ', '\t':
			in.pos++
		case '#':
			for !in.end() && in.buf[in.pos] != '\n' && in.buf[in.pos] != '\r' {
				in.pos++
			}
		case '\n', '\r':
			if !lines {
				return
			}
			in.lineEnd()
		default:
			return
		}
	}
}

// lineEnd uses the end of a line: LF, CR, or both.
func (in *input) lineEnd() {
	if in.at(0) == '\r' && in.at(1) == '\n' {
		in.pos++
	}
	in.pos++
	in.newline()
}

// take uses a byte if it is the next one.
func (in *input) take(c byte) bool {
	if in.at(0) != c {
		return false
	}
	in.pos++
	return true
}

// expect uses a byte that must be the next one.
func (in *input) expect(c byte, where string) {
	if !in.take(c) {
		in.fail("%q is missing %s; there is %s", string(c), where, in.next())
	}
}

// next returns a description of the next token, for messages.
func (in *input) next() string {
	if in.end() {
		return "the end of the document"
	}
	in.at(20)
	rest := in.buf[in.pos:min(len(in.buf), in.pos+20)]
	for i, c := range rest {
		if c == '\n' || c == '\r' {
			rest = rest[:max(i, 1)]
			break
		}
	}
	return fmt.Sprintf("%q", rest)
}
