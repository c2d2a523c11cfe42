package scan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// transcoder reads UTF-8 out of blocks in another encoding.
type transcoder struct {
	r        io.Reader
	t        transform.Transformer
	block    []byte
	from, to int // the part of the block that is not decoded yet
	err      error
}

const blockSize = 16 << 10

func newTranscoder(r io.Reader, rest []byte, t transform.Transformer) *transcoder {
	d := &transcoder{r: r, t: t, block: make([]byte, max(blockSize, len(rest)))}
	d.to = copy(d.block, rest)
	return d
}

// decodingError is the reason why bytes cannot be decoded. Its position is the end of the window, because the bytes
// before it have been read.
type decodingError struct{ reason string }

func (e *decodingError) Error() string { return e.reason }

// Read decodes at least one character, or returns an error: every turn of the
// loop takes bytes from the block, reads bytes into it, or is the last.
func (d *transcoder) Read(p []byte) (int, error) {
	for empty := 0; empty < emptyReads; {
		atEOF := d.err == io.EOF
		if d.from < d.to || atEOF {
			n, used, err := d.t.Transform(p, d.block[d.from:d.to], atEOF)
			d.from += used
			switch {
			case n > 0 && (err == transform.ErrShortDst || err == transform.ErrShortSrc):
				return n, nil
			case n > 0:
				return n, err
			case err == transform.ErrShortDst && used == 0:
				return 0, io.ErrShortBuffer
			case err == transform.ErrShortDst:
				continue
			case err == transform.ErrShortSrc && (atEOF || d.from == 0 && d.to == len(d.block)):
				return 0, &decodingError{"the document ends inside a character"}
			case err != nil && err != transform.ErrShortSrc:
				return 0, err
			case used > 0:
				continue
			case atEOF:
				return 0, io.EOF
			}
		}
		if d.err != nil {
			return 0, d.err
		}
		d.to = copy(d.block, d.block[d.from:d.to])
		d.from = 0
		n, err := d.r.Read(d.block[d.to:])
		if n < 0 || n > len(d.block)-d.to {
			n, err = 0, io.ErrNoProgress
		}
		d.to += n
		d.err = err
		if empty++; n > 0 || err != nil {
			empty = 0
		}
	}
	return 0, io.ErrNoProgress
}

// latin1 decodes ISO-8859-1.
type latin1 struct{ transform.NopResetter }

func (latin1) Transform(dst, src []byte, _ bool) (n, used int, err error) {
	for used < len(src) {
		for used+8 <= len(src) && n+8 <= len(dst) {
			w := load(src, used)
			if w&highs != 0 {
				break
			}
			binary.LittleEndian.PutUint64(dst[n:], w)
			n += 8
			used += 8
		}
		// then the rest of the word, or of the block, byte by byte
		for last := min(used+8, len(src)); used < last; used++ {
			if n+2 > len(dst) {
				return n, used, transform.ErrShortDst
			}
			if c := src[used]; c < utf8.RuneSelf {
				dst[n] = c
				n++
			} else {
				dst[n], dst[n+1] = 0xC0|c>>6, 0x80|c&0x3F
				n += 2
			}
		}
	}
	return n, used, nil
}

// utf16 decodes UTF-16. Unlike the decoder of x/text, it refuses unpaired surrogates.
type utf16 struct {
	transform.NopResetter
	big bool
}

func (d *utf16) Transform(dst, src []byte, atEOF bool) (n, used int, err error) {
	order := binary.ByteOrder(binary.LittleEndian)
	highBytes := uint64(0xFF80_FF80_FF80_FF80)
	if d.big {
		order = binary.BigEndian
		highBytes = 0x80FF_80FF_80FF_80FF
	}
	for used+2 <= len(src) {
		for used+8 <= len(src) && n+4 <= len(dst) {
			w := load(src, used)
			if w&highBytes != 0 {
				break
			}
			if d.big {
				w >>= 8
			}
			dst[n], dst[n+1], dst[n+2], dst[n+3] = byte(w), byte(w>>16), byte(w>>32), byte(w>>48)
			n += 4
			used += 8
		}
		if used+2 > len(src) {
			break
		}
		if n+utf8.UTFMax > len(dst) {
			return n, used, transform.ErrShortDst
		}
		r, size := rune(order.Uint16(src[used:])), 2
		switch {
		case r >= 0xDC00 && r <= 0xDFFF:
			return n, used, unpaired(r)
		case r >= 0xD800 && r <= 0xDBFF:
			if used+4 > len(src) {
				if !atEOF {
					return n, used, transform.ErrShortSrc
				}
				return n, used, unpaired(r)
			}
			low := rune(order.Uint16(src[used+2:]))
			if low < 0xDC00 || low > 0xDFFF {
				return n, used, unpaired(r)
			}
			r, size = (r-0xD800)<<10|(low-0xDC00)+0x10000, 4
		}
		n += utf8.EncodeRune(dst[n:], r)
		used += size
	}
	if used < len(src) {
		return n, used, transform.ErrShortSrc
	}
	return n, used, nil
}

func unpaired(r rune) error {
	return &decodingError{fmt.Sprintf("the surrogate %04X is not part of a pair", r)}
}

// strict makes a decoder of x/text refuse bytes that it would replace, because bytes that are not legal in an encoding
// are an error (XML 1.0 §4.3.3). It also refuses U+FFFD itself, which few encodings have.
type strict struct {
	transform.Transformer
	label string
}

var replacement = []byte("\uFFFD")

func (t strict) Transform(dst, src []byte, atEOF bool) (n, used int, err error) {
	n, used, err = t.Transformer.Transform(dst, src, atEOF)
	if i := bytes.Index(dst[:n], replacement); i >= 0 {
		return i, used, &decodingError{fmt.Sprintf("bytes that are not legal in %s", excerpt(t.label))}
	}
	return n, used, err
}
