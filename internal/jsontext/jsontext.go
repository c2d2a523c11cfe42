// Package jsontext finds in JSON the texts that encoding/json changes without a word.
package jsontext

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Changed returns the reason why encoding/json would replace a part of JSON by U+FFFD, and the offset of the first one:
// bytes that are not UTF-8, or the escape of a surrogate without a pair (RFC 8259 §8). "" means none.
func Changed(text []byte) (offset int, reason string) {
	if !utf8.Valid(text) {
		for {
			r, n := utf8.DecodeRune(text[offset:])
			if r == utf8.RuneError && n == 1 {
				return offset, "the bytes are not UTF-8; save the file in that encoding"
			}
			offset += n
		}
	}
	if offset = loneSurrogate(text); offset < 0 {
		return 0, ""
	}
	const half = "%s is half of a surrogate pair, which is no character; write the character, or both halves"
	return offset, fmt.Sprintf(half, text[offset:offset+sizeOfEscape])
}

// loneSurrogate returns where the first escape of a surrogate stands that is not part of a pair, or -1.
func loneSurrogate(text []byte) (offset int) {
	for i := 0; ; {
		at := bytes.IndexByte(text[i:], '\\')
		if at < 0 {
			return -1
		}
		i += at
		switch unit := escaped(text[i:]); {
		case !utf16.IsSurrogate(unit):
			i = min(i+2, len(text))
		case utf16.DecodeRune(unit, escaped(text[i+sizeOfEscape:])) == utf8.RuneError:
			return i
		default:
			i += 2 * sizeOfEscape
		}
	}
}

const sizeOfEscape = len(`\u0000`)

// escaped returns the UTF-16 code unit of the escape with which a text begins, 0 for none.
func escaped(text []byte) rune {
	if len(text) < sizeOfEscape || string(text[:2]) != `\u` {
		return 0
	}
	unit, _ := strconv.ParseUint(string(text[2:sizeOfEscape]), 16, 16) // 0 where it is none
	return rune(unit)
}
