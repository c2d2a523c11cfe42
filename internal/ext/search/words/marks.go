package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Part is a part of a text.
type Part struct {
	Text   string
	Marked bool // it is the beginning of a word that is looked for, or all of it
}

// Marks splits a text into parts, and marks those with the words of the query.
func (q Query) Marks(text string) (all []Part) {
	plain := 0 // start of the unmarked part
	for start := 0; start < len(text); {
		length := wordAt(text[start:])
		if length == 0 {
			_, size := utf8.DecodeRuneInString(text[start:])
			start += size
			continue
		}
		word := text[start : start+length]
		n := q.marked(word)
		if n > 0 {
			if start > plain {
				all = append(all, Part{Text: text[plain:start]})
			}
			all = append(all, Part{word[:n], true})
			plain = start + n
		}
		if n == 0 && partsNoWords([]rune(word)[0]) {
			_, n = utf8.DecodeRuneInString(word)
		}
		if start += n; n == 0 || !partsNoWords([]rune(word)[0]) {
			start += length - n
		}
	}
	if plain < len(text) {
		all = append(all, Part{Text: text[plain:]})
	}
	return all
}

// marked returns the length in bytes of the longest prefix of a word that is a word of the query.
func (q Query) marked(word string) (n int) {
	for _, wanted := range q.Words {
		for end := range word + "." {
			if strings.HasPrefix(Fold(word[:end]), wanted) {
				n = max(n, end)
				break
			}
		}
	}
	for n > 0 && n < len(word) { // its last letter has all its accents
		r, size := utf8.DecodeRuneInString(word[n:])
		if !unicode.Is(unicode.M, r) {
			break
		}
		n += size
	}
	return n
}

// wordAt returns the length in bytes of the word at the start of a text.
func wordAt(text string) int {
	for i, r := range text {
		if !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Cf) {
			return i
		}
	}
	return len(text)
}
