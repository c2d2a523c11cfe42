package titles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/text/language"

	"github.com/tmshare/tmshare/internal/words"
)

// Languages are language ranges (RFC 4647), in lower case: the best first.
type Languages []string

// A range matches a tag by lookup (RFC 4647 §3.4): the closer the better. If no tag is so close, one matches that is
// more specific than the range, or has the same language.
const (
	same       = iota
	equivalent // both have the same canonical form
	shorter    // the tag is the beginning of the range
	longer     // the range is the beginning of the tag
	related    // both are of one language
	closeness  // number of the degrees
)

// place returns the rank of a language for the reader. No language ranks after all that the reader understands, and
// before all others.
func (l Languages) place(tag *Tag) int {
	if tag.n > 0 {
		text := tag.text[:tag.n]
		form := ""
		for i, r := range l {
			if r == string(text) {
				return i * closeness
			}
			if form == "" {
				form = canonical(text)
			}
			if c := fits(canonical(r), form); c < closeness {
				return i*closeness + c
			}
		}
		return l.none() + 1
	}
	return l.none()
}

// none is the rank of no language.
func (l Languages) none() int { return len(l) * closeness }

// Best returns the tag that the reader understands best, if there is one.
func (l Languages) Best(tags []string) (best string, ok bool) {
	least := l.none()
	for _, t := range tags {
		if tag, is := LanguageOf(words.LanguageNamespace + t); is && l.place(&tag) < least {
			best, least, ok = t, l.place(&tag), true
		}
	}
	return best, ok
}

// fits compares the canonical forms of a range and of a tag.
func fits(r, tag string) int {
	switch {
	case r == tag:
		return equivalent
	case len(r) > len(tag) && r[len(tag)] == '-' && r[:len(tag)] == tag:
		return shorter
	case len(tag) > len(r) && tag[len(r)] == '-' && tag[:len(r)] == r:
		return longer
	}
	primary, _, _ := strings.Cut(tag, "-")
	if len(r) > len(primary) && r[len(primary)] == '-' && r[:len(primary)] == primary {
		return related
	}
	return closeness
}

// forms are the canonical forms of tags asked for: a map that is replaced, so that reading it takes no lock.
var forms atomic.Pointer[map[string]string]

// maxForms is the maximum number of kept forms.
const maxForms = 1000

// canonical returns the canonical form of a tag in lower case (RFC 5646 §4.5): the one in use of tags that mean the
// same. As in CLDR, a macrolanguage is one with the language that nearly all mean by it, such as zh and cmn.
func canonical[T string | []byte](tag T) string {
	known := forms.Load()
	if known != nil {
		if form, ok := (*known)[string(tag)]; ok {
			return form
		}
	}
	form := string(tag)
	if parsed, err := language.All.Parse(form); err == nil {
		form = strings.ToLower(parsed.String())
	}
	if known == nil || len(*known) < maxForms {
		next := map[string]string{string(tag): form}
		if known != nil {
			maps.Copy(next, *known)
		}
		forms.CompareAndSwap(known, &next) // if another goroutine was faster, the form is added the next time
	}
	return form
}

// Tag is a language tag (BCP 47) in lower case. The zero value is no tag.
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

// shorten replaces a code of three letters if there is one of two, because BCP 47 allows only that.
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
			"rum:ro scc:sr scr:hr slo:sk tib:bo wel:cy",
	) { // ISO 639-2/B, with two that it had before
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
	if known, ok := LanguageOf(words.LanguageNamespace + tag); ok {
		var unknown language.ValueError
		if _, err := language.Parse(tag); err == nil || errors.As(err, &unknown) {
			return known.String(), nil
		}
	}
	return "", fmt.Errorf("%q is no language tag: give one of BCP 47, such as en or pt-BR", tag)
}

// These limit the languages of a reader that are used, and those that are parsed to find the best.
const (
	mostAccepted = 10
	mostRead     = 100
)

// Accepted returns the languages of a field Accept-Language (RFC 9110 §12.5.4), or of a single tag. What it cannot read
// it leaves out.
func Accepted(field string) (all Languages) {
	weights := map[string]float64{}
	for _, each := range strings.SplitN(field, ",", mostRead) {
		tag, params, _ := strings.Cut(each, ";")
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			weight, _ = strconv.ParseFloat(strings.TrimSpace(q), 64)
		}
		text, err := ParseLanguage(strings.TrimSpace(tag))
		_, before := weights[text]
		if err == nil && !before && weight > 0 && weight <= 1 && text != "und" && text != "mul" {
			weights[text], all = weight, append(all, text)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
	return all[:min(len(all), mostAccepted)]
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
func (l Languages) String() string { return strings.Join(l, ",") }

// Type implements pflag.Value.
func (l *Languages) Type() string { return "tags" }

// OfLocale returns the language of the locale in an environment (POSIX, Base Definitions 8.2), or "".
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

// CountName counts a name by its type and themes.
func CountName[T ~string](c Count, typ T, themes []T) {
	if kindOf(typ) > foaf {
		return
	}
	for _, theme := range themes {
		if tag, ok := LanguageOf(theme); ok {
			c[tag]++
		}
	}
}

// Most returns the language of most names, or "". Maps in many languages have all names in each of them: English is
// chosen if it lacks at most a twentieth, and otherwise the first tag of equal ones.
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
