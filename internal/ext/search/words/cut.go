package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of the words of one text and of one topic, because the content may come from others.
const (
	LongestWord  = 48        // bytes of a word; the rest of a longer one does not count
	longestText  = 4 << 10   // bytes of a text
	wordsOfText  = 64        // of a text
	wordsOfTopic = 256       // different ones, of all texts of a topic
	hashesOfText = 128       // different words, of a topic with definitions and notes, by which it is found
	textOfTopic  = 256 << 10 // bytes of all texts of a topic
)

// word is a word of a text, folded, and where it stands among the characters of the text that belong to words.
type word struct {
	text       string
	start, end int
}

// cut returns the words of a text: runs of letters, digits and their marks. In scripts without spaces between words, a
// word is each pair of adjacent characters, or the last character of a run alone, so that a search finds characters
// inside a run.
func cut(text string) []word {
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "")
	}
	folded := Fold(text)
	if isASCII(folded) {
		return cutASCII(folded)
	}
	c := cutter{}
	for i, r := range folded {
		c.take(folded, i, r)
		if len(c.words) >= wordsOfText {
			return c.words[:wordsOfText]
		}
	}
	c.end(folded, len(folded))
	return c.words
}

// cutASCII is cut for folded texts of ASCII alone, which most are.
func cutASCII(folded string) []word {
	words := make([]word, 0, 4)
	for i := 0; i < len(folded) && len(words) < wordsOfText; i++ {
		start := i
		for i < len(folded) && isPlainLetter(folded[i]) {
			i++
		}
		if i > start {
			words = append(words, word{clip(folded[start:i]), start, i})
		}
	}
	return words
}

func isPlainLetter(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// cutter cuts a text into words.
type cutter struct {
	words []word
	begun int  // start of the present word, plus 1; 0: none
	pairs bool // it is of a script that does not part words
	marks []int
}

func (c *cutter) take(text string, i int, r rune) {
	mark := r >= 0x300 && unicode.Is(unicode.M, r)
	belongs := isLetter(r) || mark && c.begun > 0
	pairs := mark && c.pairs || !mark && partsNoWords(r)
	if c.begun > 0 && (!belongs || pairs != c.pairs && !mark) {
		c.end(text, i)
	}
	if !belongs {
		return
	}
	if c.begun == 0 {
		c.begun, c.pairs, c.marks = i+1, pairs, c.marks[:0]
	}
	if c.pairs && !mark {
		c.marks = append(c.marks, i)
	}
}

// end ends a word before a place.
func (c *cutter) end(text string, at int) {
	switch {
	case c.begun == 0:
		return
	case !c.pairs:
		c.add(text, c.begun-1, at)
	default:
		for k, start := range c.marks {
			end := at
			if k+2 < len(c.marks) {
				end = c.marks[k+2]
			}
			c.add(text, start, end)
		}
	}
	c.begun, c.pairs = 0, false
}

// apart returns the words of a text that are not within the one before, as the end of a run in a script that does not
// part words is.
func apart(words []word) (all []word) {
	end := -1
	for _, w := range words {
		if w.end > end {
			all, end = append(all, w), w.end
		}
	}
	return all
}

func (c *cutter) add(text string, start, end int) {
	c.words = append(c.words, word{clip(text[start:end]), start, end})
}

// clip shortens a word to [LongestWord] at a character boundary.
func clip(word string) string {
	if len(word) <= LongestWord {
		return word
	}
	n := LongestWord
	for n > 0 && !utf8.RuneStart(word[n]) {
		n--
	}
	return word[:n]
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return isPlainLetter(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// partsNoWords reports whether a letter is of a script that writes words without anything between them.
func partsNoWords(r rune) bool {
	return r >= 0xE00 &&
		(r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
			unicode.Myanmar))
}
