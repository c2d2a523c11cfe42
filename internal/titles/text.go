package titles

import "strings"

// Cut returns the beginning of a text that has more than so many characters.
func Cut(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}

// The control characters of the Unicode Bidirectional Algorithm (UAX #9, 2) that hold until others end them.
const (
	lre, rle, pdf, lro, rlo = '\u202a', '\u202b', '\u202c', '\u202d', '\u202e'
	lri, rli, fsi, pdi      = '\u2066', '\u2067', '\u2068', '\u2069'
)

// Closed returns a text whose bidirectional control characters have no effect on the text after it: it closes what they
// open, and omits those that would close something before.
func Closed(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return lre <= r && r <= rlo || lri <= r && r <= pdi }) {
		return text
	}
	var b strings.Builder
	var ends []rune // of open controls
	for _, r := range text {
		switch r {
		case lre, rle, lro, rlo:
			ends = append(ends, pdf)
		case lri, rli, fsi:
			ends = append(ends, pdi)
		case pdf: // closes no isolate, and nothing outside one
			if n := len(ends); n == 0 || ends[n-1] != pdf {
				continue
			}
			ends = ends[:len(ends)-1]
		case pdi: // also closes all opened within its isolate
			n := len(ends) - 1
			for n >= 0 && ends[n] != pdi {
				n--
			}
			if n < 0 {
				continue
			}
			ends = ends[:n]
		}
		b.WriteRune(r)
	}
	for i := len(ends) - 1; i >= 0; i-- {
		b.WriteRune(ends[i])
	}
	return b.String()
}
