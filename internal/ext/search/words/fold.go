package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/collate"
	"golang.org/x/text/unicode/norm"
)

// Fold returns a text in the form for comparisons, without differences of case, accents, width and ligatures: it
// decomposes the text (Unicode Standard Annex 15, NFKD), removes accents, folds case (Unicode Standard 3.13,
// toCasefold), replaces letters with a stroke by those without, and composes the result (NFC). It is idempotent.
func Fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	decomposed := norm.NFKD.String(strings.ToValidUTF8(text, "\uFFFD"))
	folded := cases.Fold().String(strings.Map(bare, decomposed))
	// A fold may be decomposed further, and have accents.
	folded = strings.Map(bare, norm.NFKD.String(folded))
	var b strings.Builder
	for _, r := range folded {
		switch plain := withoutStroke[r]; {
		case plain != "":
			b.WriteString(plain)
		case unicode.Is(unicode.Cherokee, r): // folds to its capitals, which package cases does not do
			b.WriteRune(unicode.ToUpper(r))
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// bare returns -1 for characters to remove: accents, and invisible ones such as joiners and directions of writing.
// Marks that make other letters are kept: those of Indic scripts, of Thai, of kana.
func bare(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
	case unicode.Is(unicode.Cf, r):
		return -1
	case !unicode.Is(unicode.Mn, r), r == '\u3099', r == '\u309A':
	case unicode.In(r, unicode.Inherited, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Cyrillic):
		return -1
	}
	return r
}

// withoutStroke has letters that Unicode does not decompose, though collation takes them for others with an accent, or
// for two letters (CLDR, Latin-ASCII.xml), and the Turkish dotless i, which has no other counterpart where accents do
// not count.
var withoutStroke = map[rune]string{
	'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h", 'ŧ': "t", 'ı': "i", 'æ': "ae", 'œ': "oe", 'þ': "th",
	'ə': "e", 'ŋ': "n",
}

// rules names the rules by which text is folded, cut and listed, with the versions of Unicode and of its collation.
const rules = "4 Unicode " + norm.Version + " CLDR " + collate.CLDRVersion
