package xtm

import "strings"

// listArena makes short lists, many at a time, where millions of them live as long as each other. The zero value is
// ready for use.
type listArena[T any] struct{ buf []T }

// Keep returns a copy of list.
func (a *listArena[T]) Keep(list ...T) []T {
	if len(list) == 0 {
		return nil
	}
	if cap(a.buf)-len(a.buf) < len(list) {
		a.buf = make([]T, 0, max(64, len(list)))
	}
	from := len(a.buf)
	a.buf = append(a.buf, list...)
	return a.buf[from:len(a.buf):len(a.buf)]
}

// Reuse frees all kept lists for reuse: their contents will be overwritten.
func (a *listArena[T]) Reuse() { a.buf = a.buf[:0] }

// textArena makes strings likewise. The zero value is ready for use.
type textArena struct{ chunk strings.Builder }

const (
	textChunk = 16 << 10
	longText  = 1 << 10 // longer texts are allocated separately
)

// String returns head and tail as one string.
func (t *textArena) String(head string, tail []byte) string {
	size := len(head) + len(tail)
	if size > longText {
		return head + string(tail)
	}
	if t.chunk.Cap()-t.chunk.Len() < size {
		t.chunk = strings.Builder{}
		t.chunk.Grow(textChunk)
	}
	from := t.chunk.Len()
	t.chunk.WriteString(head)
	t.chunk.Write(tail)
	return t.chunk.String()[from:]
}
