package scan

import (
	"encoding/binary"
	"math/bits"
)

// Runs of plain bytes are searched eight bytes at a time: the bytes of a word are compared at once, and the high bit of
// each byte of the result is set if the byte stops the run.
//
// For a byte x below 0x80, x+0x7F has its high bit set unless x is 0, and x+(0x80-c) has it unless x is less than c. A
// byte of 0x80 or more may carry into the next byte and spoil that one, but it stops the run itself, and only the first
// such byte is used.
//
// No function checks for the end of the window, because the zero bytes after it stop every run.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load returns the eight bytes from p on, the first one lowest.
func load(b []byte, p int) uint64 { return binary.LittleEndian.Uint64(b[p : p+8]) }

// first returns the index of the first byte of a word whose high bit is set.
func first(m uint64) int { return bits.TrailingZeros64(m) >> 3 }

// textEnd returns the index of the first byte from p on that is '<', '&', ']',
// 0x80 or more, or a control character other than tab and line feed.
func textEnd(b []byte, p int) int {
	for {
		w := load(b, p)
		plain := (w ^ '<'*ones + 0x7F*ones) & (w ^ '&'*ones + 0x7F*ones) & (w ^ ']'*ones + 0x7F*ones)
		tabOrLine := (w + (0x80-'\t')*ones) &^ (w + (0x80-'\v')*ones)
		plain &= w + (0x80-' ')*ones | tabOrLine
		if m := (^plain | w) & highs; m != 0 {
			return p + first(m)
		}
		p += 8
	}
}

// valueEnd returns the index of the first byte from p on that is the quote, '<',
// '&', 0x80 or more, or a control character.
func valueEnd(b []byte, p int, quote byte) int {
	quotes := uint64(quote) * ones
	for {
		w := load(b, p)
		plain := (w ^ '<'*ones + 0x7F*ones) & (w ^ '&'*ones + 0x7F*ones) & (w ^ quotes + 0x7F*ones)
		plain &= w + (0x80-' ')*ones
		if m := (^plain | w) & highs; m != 0 {
			return p + first(m)
		}
		p += 8
	}
}

// runEnd returns the index of the first byte from p on that is stop, 0x80 or
// more, or a control character other than tab and line feed.
func runEnd(b []byte, p int, stop byte) int {
	stops := uint64(stop) * ones
	for {
		w := load(b, p)
		tabOrLine := (w + (0x80-'\t')*ones) &^ (w + (0x80-'\v')*ones)
		plain := (w ^ stops + 0x7F*ones) & (w + (0x80-' ')*ones | tabOrLine)
		if m := (^plain | w) & highs; m != 0 {
			return p + first(m)
		}
		p += 8
	}
}

// nameEnd returns the index of the first byte from p on that can follow the name of an element or attribute: '=', '/',
// '>', white space or another control character. The bytes before it need not be a name. Bytes of 0x80 or more do not
// stop it; hence the subtraction, whose borrows only reach bytes after a hit.
func nameEnd(b []byte, p int) int {
	for {
		w := load(b, p)
		eq, slash, gt := w^'='*ones, w^'/'*ones, w^'>'*ones
		m := (eq-ones)&^eq | (slash-ones)&^slash | (gt-ones)&^gt | (w-('!')*ones)&^w
		if m &= highs; m != 0 {
			return p + first(m)
		}
		p += 8
	}
}
