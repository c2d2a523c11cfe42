package titles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"

	"github.com/tmshare/tmshare/internal/words"
)

// Languages are language ranges (RFC 4647), in lower case: the best first.
type Languages []string

// A range fits a tag as its lookup says (RFC 4647 §3.4): the closer the better. Where no tag is so close, one does that
// is more special than the range, or has the same language.
const (
	same      = iota
	shorter   // the tag is the beginning of the range
	longer    // the range is the beginning of the tag
	related   // both are of one language
	closeness // how many there are
)

// place returns the place of a language in the order of the reader. None comes behind all that the reader understands,
// and before all others.
func (l Languages) place(tag *Tag) int {
	if tag.n > 0 {
		text := tag.text[:tag.n]
		for i, r := range l {
			if c := fits(r, text); c < closeness {
				return i*closeness + c
			}
		}
		return l.none() + 1
	}
	return l.none()
}

// none is the place of no language.
func (l Languages) none() int { return len(l) * closeness }

func fits(r string, tag []byte) int {
	switch {
	case r == string(tag):
		return same
	case len(r) > len(tag) && r[len(tag)] == '-' && r[:len(tag)] == string(tag):
		return shorter
	case len(tag) > len(r) && tag[len(r)] == '-' && string(tag[:len(r)]) == r:
		return longer
	}
	primary, _, _ := bytes.Cut(tag, []byte{'-'})
	if len(r) > len(primary) && r[len(primary)] == '-' && r[:len(primary)] == string(primary) {
		return related
	}
	return closeness
}

// Tag is a language tag (BCP 47) in lower case. The zero one is none.
type Tag struct {
	text [longestTag]byte
	n    uint8
}

// longestTag is the length of the longest tag that is understood: RFC 5646 §4.4.1 has 35 for those without extensions.
const longestTag = 35

func (t *Tag) String() string { return string(t.text[:t.n]) }

func (t *Tag) compare(other *Tag) int { return bytes.Compare(t.text[:t.n], other.text[:other.n]) }

// LanguageOf returns the language of which an IRI is an identifier.
func LanguageOf[T ~string | []byte](identifier T) (tag Tag, ok bool) {
	end := len(identifier) // of the namespace
	for end > 0 && identifier[end-1] != '/' && identifier[end-1] != '#' {
		end--
	}
	rest, known := identifier[end:], false
	for _, namespace := range namespaces[end%len(namespaces)] {
		known = known || string(identifier[:end]) == namespace
	}
	if !known || len(rest) < 2 || len(rest) > longestTag {
		return tag, false
	}
	for i := range len(rest) {
		c := rest[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', i > 0 && ('0' <= c && c <= '9' || c == '-'):
		default:
			return Tag{}, false
		}
		tag.text[i] = c
	}
	tag.n = uint8(len(rest))
	tag.shorten()
	return tag, true
}

// namespaces are those of languages, by their lengths.
var namespaces = func() (byLength [64][]string) {
	for _, namespace := range words.LanguageNamespaces {
		byLength[len(namespace)%64] = append(byLength[len(namespace)%64], namespace)
	}
	return byLength
}()

// shorten replaces a code of three letters where there is one of two: BCP 47 has that alone.
func (t *Tag) shorten() {
	if t.n < 3 || t.n > 3 && t.text[3] != '-' {
		return
	}
	if short, ok := shortCodes()[[3]byte(t.text[:3])]; ok {
		copy(t.text[2:], t.text[3:t.n])
		t.text[0], t.text[1] = short[0], short[1]
		t.n--
		t.text[t.n] = 0
	}
}

// shortCodes are the languages with codes of two letters, by those of three letters.
var shortCodes = sync.OnceValue(func() map[[3]byte]string {
	codes := map[[3]byte]string{}
	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			code := string([]rune{a, b})
			if base, err := language.ParseBase(code); err == nil && base.String() == code {
				codes[[3]byte([]byte(base.ISO3()))] = code
			}
		}
	}
	for _, bibliographic := range strings.Fields(
		"alb:sq arm:hy baq:eu bur:my chi:zh cze:cs dut:nl fre:fr geo:ka ger:de gre:el ice:is mac:mk mao:mi may:ms per:fa " +
			"rum:ro slo:sk tib:bo wel:cy",
	) { // ISO 639-2/B
		codes[[3]byte([]byte(bibliographic[:3]))] = bibliographic[4:]
	}
	return codes
})

// Identifiers returns the IRIs by which a language may be identified, of which a tag is given in lower case.
func Identifiers(tag string) (all []string) {
	primary, rest, _ := strings.Cut(tag, "-")
	for _, namespace := range words.LanguageNamespaces {
		all = append(all, namespace+tag)
		if base, err := language.ParseBase(primary); err == nil && rest == "" && base.ISO3() != tag {
			all = append(all, namespace+base.ISO3(), namespace+strings.ToUpper(base.ISO3()))
		}
	}
	return all
}

// ParseLanguage returns a language tag in the form of [Languages].
func ParseLanguage(tag string) (string, error) {
	_, err := language.Parse(tag)
	var unknown language.ValueError
	known, ok := LanguageOf(words.LanguageNamespace + tag)
	if !ok || err != nil && !errors.As(err, &unknown) {
		return "", fmt.Errorf("%q is no language tag: give one of BCP 47, such as en or pt-BR", tag)
	}
	return known.String(), nil
}

// mostAccepted is how many languages of a reader are looked at.
const mostAccepted = 10

// Accepted returns the languages of a field Accept-Language (RFC 9110 §12.5.4), or of a single tag. What it cannot read
// it leaves out.
func Accepted(field string) (all Languages) {
	tags, weights, err := language.ParseAcceptLanguage(field)
	if err != nil {
		return nil
	}
	for i, tag := range tags {
		text, err := ParseLanguage(tag.String())
		if err == nil && weights[i] > 0 && tag != language.Und && text != "mul" && len(all) < mostAccepted {
			all = append(all, text)
		}
	}
	return all
}

// Set implements pflag.Value: it takes tags with commas between them, the best first.
func (l *Languages) Set(tags string) error {
	*l = nil
	for tag := range strings.SplitSeq(tags, ",") {
		text, err := ParseLanguage(strings.TrimSpace(tag))
		if err != nil {
			return err
		}
		*l = append(*l, text)
	}
	return nil
}

// String implements pflag.Value.
func (l *Languages) String() string { return strings.Join(*l, ",") }

// Type implements pflag.Value.
func (l *Languages) Type() string { return "tags" }

// OfLocale returns the language of the locale in an environment (POSIX, Base Definitions 8.2), "" for none.
func OfLocale(getenv func(string) string) string {
	locale := cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG"))
	name, _, _ := strings.Cut(strings.NewReplacer("_", "-", "@", ".").Replace(locale), ".")
	tag, err := ParseLanguage(name)
	if err != nil || name == "POSIX" {
		return ""
	}
	return tag
}

// Count counts the preferred names of each language.
type Count map[Tag]int

// Name counts a name.
func (c Count) Name(typ string, themes iter.Seq[string]) {
	if kindOf(typ) > foaf {
		return
	}
	for theme := range themes {
		if tag, ok := LanguageOf(theme); ok {
			c[tag]++
		}
	}
}

// Most returns the language of most names, "" for none. Maps in many languages have all names in each of them: English
// is taken where it lacks a twentieth at most, and else the first tag of equal ones.
func (c Count) Most() string {
	tags := slices.SortedFunc(maps.Keys(c), func(a, b Tag) int { return cmp.Or(c[b]-c[a], a.compare(&b)) })
	if len(tags) == 0 {
		return ""
	}
	if english, _ := LanguageOf(words.LanguageNamespace + "en"); c[english]*20 >= c[tags[0]]*19 {
		return english.String()
	}
	return tags[0].String()
}
