package scan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// pad is the number of zero bytes after every window. The inner loops load eight bytes at its end, and look a few bytes
// ahead.
const pad = 16

// The number of bytes per read, and the length of a token from which on it must grow by half before it is scanned
// again, because a token that comes byte by byte would otherwise take quadratic time.
const (
	leastRead   = 16
	longToken   = 4 << 10
	emptyReads  = 100
	tokenMargin = 32 // bytes that may be read after a token
)

// window is a buffer of UTF-8 with its unread part. The bytes after end are zero.
type window struct {
	buf      []byte
	pos, end int
}

// fill reads more of the document, or sets inErr. The bytes before pos are given up.
func (s *Scanner) fill() {
	s.makeRoom()
	want := 1
	if held := s.end - s.pos; held >= longToken {
		want = held / 2
	}
	space := s.buf[:len(s.buf)-pad]
	for empty := 0; want > 0 && s.inErr == nil; {
		n, err := s.in.Read(space[s.end:])
		if n < 0 || n > len(space)-s.end {
			n, err = 0, errors.New("the reader claims to have read more than it was given space for")
		}
		s.end += n
		want -= n
		if empty++; n > 0 {
			empty = 0
		}
		if err == nil && empty == emptyReads {
			err = io.ErrNoProgress
		}
		s.inErr = err
	}
	clear(s.buf[s.end : s.end+pad])
}

// makeRoom moves the unread part to the front of the buffer, and enlarges the buffer if a token fills half of it, or if
// the document is long.
func (s *Scanner) makeRoom() {
	size, held := len(s.buf)-pad, s.end-s.pos
	grown := size
	if s.end == size && size < s.bufferSize {
		grown = min(4*size, s.bufferSize)
	}
	for grown-held < max(leastRead, grown/2) {
		grown *= 2
	}
	s.discard()
	s.keepTo(s.base + int64(s.pos))
	to := s.buf
	if grown > size {
		to = make([]byte, grown+pad)
	}
	copy(to, s.buf[s.pos:s.end])
	s.base += int64(s.pos)
	s.buf, s.pos, s.end = to, 0, held
}

// more reads on after a token that the window cuts. Its error is final.
func (s *Scanner) more() error {
	held := s.end - s.pos
	if err := s.fits(s.end - tokenMargin); err != nil {
		return err
	}
	if s.inErr == nil {
		if s.fill(); s.end-s.pos > held {
			return nil
		}
	}
	return s.inputError()
}

// inputError returns the error of the readers in terms of this package.
func (s *Scanner) inputError() error {
	var decoding *decodingError
	switch {
	case s.inErr == io.EOF:
		return s.ended()
	case errors.Is(s.inErr, errTooLong):
		return s.limitError(s.end, "Bytes", s.limits.Bytes)
	case errors.As(s.inErr, &decoding):
		return s.errorf(s.end, "%s", decoding.reason)
	}
	return fmt.Errorf("reading %s: %w", cmp.Or(s.uri, "the document"), s.inErr)
}

// fits returns an error where a token that reaches from s.pos to end is too long.
func (s *Scanner) fits(end int) error {
	if end-s.pos <= s.limits.Token && s.state != inSubset { // small enough to be inlined
		return nil
	}
	return s.tooLong(end)
}

func (s *Scanner) tooLong(end int) error {
	switch size := end - s.pos; {
	case size > s.limits.Token:
		return s.limitError(s.pos, "Token", int64(s.limits.Token))
	case s.state == inSubset && size > s.limits.DTD:
		return s.limitError(s.pos, "DTD", int64(s.limits.DTD))
	}
	return nil
}

// ended returns the error for the end of the input: io.EOF for a complete document.
func (s *Scanner) ended() error {
	atEnd := s.pos == s.end
	switch {
	case atEnd && s.state == inEpilog:
		return io.EOF
	case atEnd && s.state == atStart:
		return s.errorf(s.end, "the document is empty")
	case atEnd && s.state == inProlog, s.state == atStart && s.buf[s.pos] != '<':
		return s.errorf(s.end, "the document ends before its root element")
	case atEnd && s.state == inSubset:
		return s.errorf(s.end, "the document ends inside the document type declaration")
	case len(s.open) == 0 || !atEnd && s.buf[s.pos] == '<':
		return s.errorf(s.end, "the document ends inside %s", s.unfinished())
	}
	return s.errorf(s.end, "the document ends inside <%s>", excerpt(s.open[len(s.open)-1].name.raw))
}

// meter counts the bytes read of a document and stops at a limit. Its error is final.
type meter struct {
	r           io.Reader
	read, limit int64 // no limit: 0
	err         error
}

var errTooLong = errors.New("more bytes than the limit allows")

func (m *meter) Read(p []byte) (n int, err error) {
	if m.err != nil {
		return 0, m.err
	}
	if left := m.limit - m.read; m.limit > 0 && left < int64(len(p)) {
		if left == 0 {
			// one more byte distinguishes "full" from "too long"
			var probe [1]byte
			if n, err = m.r.Read(probe[:]); n > 0 {
				n, err = 0, errTooLong
			}
			m.err = err
			return n, err
		}
		p = p[:left]
	}
	n, m.err = m.r.Read(p)
	m.read += int64(max(n, 0))
	return n, m.err
}

// place is a position in a document as line and column. It advances on request, and before bytes leave the window.
type place struct {
	offset       int64
	line, column int  // of offset
	cr           bool // the last byte was a carriage return
}

// A line ends with CR LF, CR or LF (XML 1.0 §2.11, End-of-Line Handling).
func (l *place) advance(b []byte) {
	l.offset += int64(len(b))
	if len(b) > 32 {
		l.advanceFar(b)
		return
	}
	for _, c := range b {
		switch {
		case c == '\n' && l.cr:
			l.cr = false
		case c == '\n', c == '\r':
			l.line++
			l.column = 1
			l.cr = c == '\r'
		default:
			l.column++
			l.cr = false
		}
	}
}

// advanceFar does the same a line at a time.
func (l *place) advanceFar(b []byte) {
	l.line += bytes.Count(b, []byte{'\n'})
	if l.cr && b[0] == '\n' { // it has been counted
		l.line--
	}
	last := bytes.LastIndexByte(b, '\n')
	for i, n := 0, 0; ; i += n + 1 {
		if n = bytes.IndexByte(b[i:], '\r'); n < 0 {
			break
		}
		if cr := i + n; cr+1 == len(b) || b[cr+1] != '\n' {
			l.line++
			last = max(last, cr)
		}
	}
	l.cr = b[len(b)-1] == '\r'
	if last >= 0 {
		l.column = len(b) - last
	} else {
		l.column += len(b)
	}
}

// document returns the window of the document, which is not the current one
// inside of an entity.
func (s *Scanner) document() *window {
	if len(s.frames) > 0 {
		return &s.frames[0].window
	}
	return &s.window
}

// Unread returns the buffered part of the document from the event on at which reading failed, for messages. It is valid
// until [Scanner.Reset].
func (s *Scanner) Unread() []byte {
	w := s.document()
	return w.buf[w.pos:w.end]
}

// countTo moves the place to index p of the document's window.
func (s *Scanner) countTo(p int) {
	if from := int(s.place.offset - s.base); p > from {
		s.place.advance(s.document().buf[from:p])
	}
}

// lineAt returns the line and column of index p of the window, for an error.
func (s *Scanner) lineAt(p int) (line, column int) {
	if len(s.frames) > 0 {
		return s.refLine, s.refColumn
	}
	there := s.place
	there.advance(s.buf[min(int(there.offset-s.base), p):p])
	return there.line, there.column
}

// Position returns the line and the column at which the event begins, from 1. A
// column counts bytes of UTF-8. Inside of an entity it is the position of the
// reference in the document.
func (s *Scanner) Position() (line, column int) {
	if !s.eventPlaced {
		s.countTo(int(s.eventAt - s.base))
		s.eventLine, s.eventColumn, s.eventPlaced = s.place.line, s.place.column, true
	}
	return s.eventLine, s.eventColumn
}

// discard counts the lines before pos, which are about to be given up.
func (s *Scanner) discard() {
	s.Position()
	s.countTo(s.pos)
}
