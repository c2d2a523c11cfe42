package words

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/records"
	terms "github.com/tmshare/tmshare/internal/words"
)

// listed is the rank of the entries by which topics are listed from A to Z. Their words are a language, which is "" for
// names without one, the byte 1, and the beginning of a name as the language sorts it.
const listed Rank = 'L'

const behindLanguage = "\x01"

// The limits of a listing.
const (
	listedRunes     = 24 // of a name: those with the same beginning are in the order of their TopicSIs
	listedLanguages = 64 // of a topic
)

// listings returns the entries by which a topic is listed: one for each language of its names.
func listings(t *fragment.Topic) (all []Entry) {
	form := literalForm(t)
	if len(t.Names) == 0 && form == nil {
		return nil
	}
	languages := make([]string, 0, 4)
	add := func(scope []fragment.Ref) {
		primary := languageOf(scope)
		if !slices.Contains(languages, primary) && len(languages) < listedLanguages {
			languages = append(languages, primary)
		}
	}
	for i := range t.Names {
		add(t.Names[i].Scope)
	}
	if form != nil {
		add(form.Scope)
	}
	for _, l := range languages {
		if name, ok := NameIn(t, l); ok {
			all = append(all, Entry{listed, l + behindLanguage + alphabetOf(l).key(name)})
		}
	}
	return all
}

// alphabet knows how a language sorts letters: by their primary weights (UTS #10 §1.1), in which case and accents do
// not count unless they make another letter. It is safe for concurrent use.
type alphabet struct {
	ascii [utf8.RuneSelf]string

	mu     sync.RWMutex
	others map[rune]string
	weigh  func(text string) string

	headings sync.Mutex
	compare  func(a, b string) int // with all differences, not only primary ones
}

var alphabets sync.Map // by the tags of languages

func alphabetOf(tag string) *alphabet {
	if a, ok := alphabets.Load(tag); ok {
		return a.(*alphabet)
	}
	c := collate.New(language.Make(tag), collate.Loose)
	a := &alphabet{others: map[rune]string{}, compare: terms.Collator(tag), weigh: func(text string) string {
		var b collate.Buffer
		return withoutZeros(primary(c.KeyFromString(&b, text)))
	}}
	for r := range a.ascii {
		a.ascii[r] = a.weigh(string(rune(r)))
	}
	kept, _ := alphabets.LoadOrStore(tag, a)
	return kept.(*alphabet)
}

// primary returns the primary weights of a collation key. They have two bytes, or three where the first one is greater
// than 127; a weight of zero ends them.
func primary(key []byte) []byte {
	n := 0
	for n+1 < len(key) && (key[n] != 0 || key[n+1] != 0) {
		n += 2
		if key[n-2] > 127 {
			n++
		}
	}
	return key[:min(n, len(key))]
}

// withoutZeros encodes bytes without zero bytes in an order-preserving way.
func withoutZeros(weights []byte) string {
	var b strings.Builder
	for _, c := range weights {
		if c <= 1 {
			b.WriteByte(1)
			c++
		}
		b.WriteByte(c)
	}
	return b.String()
}

func (a *alphabet) rune(r rune) string {
	if r < utf8.RuneSelf {
		return a.ascii[r]
	}
	a.mu.RLock()
	w, ok := a.others[r]
	a.mu.RUnlock()
	if !ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		w = a.weigh(string(r))
		a.others[r] = w
	}
	return w
}

// key returns the sort key of the beginning of a name.
func (a *alphabet) key(name string) string {
	var b strings.Builder
	b.Grow(3 * listedRunes)
	n := 0
	for _, r := range norm.NFC.String(name[:min(len(name), 8*listedRunes)]) {
		w := a.rune(r)
		if w == "" || n == 0 && unicode.IsSpace(r) {
			continue
		}
		b.WriteString(w)
		if n++; n == listedRunes {
			break
		}
	}
	return b.String()
}

// The headings of names that begin with no letter.
const (
	Symbols = "#"
	Digits  = "0–9"
)

// headingOf returns the heading for a sort key; "" if the letter is not in the English alphabet.
func (a *alphabet) headingOf(key string) string {
	switch {
	case key < a.ascii['0']:
		return Symbols
	case key <= a.ascii['9'] || strings.HasPrefix(key, a.ascii['9']):
		return Digits
	}
	for letter := 'a'; letter <= 'z'; letter++ {
		if strings.HasPrefix(key, a.ascii[letter]) { // without its accent, where that makes no other letter
			return string(unicode.ToUpper(letter))
		}
	}
	return ""
}

// heading returns the letter under which a name is listed.
func (a *alphabet) heading(name string) string {
	for _, r := range norm.NFC.String(name[:min(len(name), 8*listedRunes)]) {
		w := a.rune(r)
		if w == "" || unicode.IsSpace(r) {
			continue
		}
		if known := a.headingOf(w); known != "" {
			return known
		}
		base, _ := utf8.DecodeRuneInString(norm.NFKD.String(string(r)))
		if base != r && strings.HasPrefix(w, a.rune(base)) { // its accent makes no other letter
			return string(unicode.ToUpper(base))
		}
		first := unicode.ToLower(r)
		a.headings.Lock()
		defer a.headings.Unlock()
		for _, letter := range "åäæöøñ" { // of two that are one letter in the language, the one that it writes itself
			if w == a.rune(letter) && a.compare(string(letter), string(first)) < 0 {
				first = letter
			}
		}
		return string(unicode.ToUpper(first))
	}
	return Symbols
}

// span returns the first and the last key prefix of a heading. A key greater than the last one that does not begin with
// it belongs to another heading.
func (a *alphabet) span(heading string) (first, last string) {
	switch heading {
	case Symbols:
		return "", a.ascii['0']
	case Digits:
		return a.ascii['0'], a.ascii['9']
	}
	w := a.key(heading)
	return w, w
}

// Languages returns the languages in which topics of a source are listed, "" for names without one, in the order of
// their tags.
func Languages(s records.State) (all []string, err error) {
	if err := current(s.Tx()); err != nil {
		return nil, err
	}
	prefix := []byte{byte(listed)}
	for after, found := prefix, true; found; {
		found = false
		for entry, err := range entriesWith(s.Tx(), s.ID(), prefix, after) {
			if err != nil {
				return nil, err
			}
			tag, _, _ := bytes.Cut(entry[1:], []byte(behindLanguage))
			all = append(all, string(tag))
			after, found = append(listedIn(string(tag)), "\xFF\xFF\xFF\xFF"...), true
			break
		}
	}
	return all, nil
}

// listedIn returns the prefix of the entries of a language.
func listedIn(tag string) []byte { return append([]byte{byte(listed)}, tag+behindLanguage...) }

// mostLetters is the maximum number of letters of a listing: Chinese has one for each character.
const mostLetters = 100

// Letters returns the headings under which topics of a source are listed in a language, sorted. If there are very many,
// it leaves some out.
func Letters(s records.State, tag string) (all []string, err error) {
	a := alphabetOf(tag)
	prefix := listedIn(tag)
	after := prefix
	for range mostLetters {
		heading := ""
		for entry, err := range entriesWith(s.Tx(), s.ID(), prefix, after) {
			if err != nil {
				return nil, err
			}
			word, _, _ := split(entry)
			if heading = a.headingOf(string(word[len(prefix):])); heading != "" {
				break
			}
			t, err := s.Topic(topicOf(entry))
			if err != nil {
				return nil, err
			}
			name := ""
			if t != nil {
				name, _ = NameIn(t, tag)
			}
			heading = a.heading(name)
			break
		}
		if heading == "" {
			return all, nil
		}
		if !slices.Contains(all, heading) {
			all = append(all, heading)
		}
		_, last := a.span(heading)
		after = append(bytes.Clone(prefix), last...)
		if heading != Symbols { // names that begin with the end belong to this heading, too
			after = append(after, 0xFF, 0xFF)
		}
	}
	return all, nil
}

// Listed iterates over all topics of a source that are listed in a language, in its order.
func Listed(s records.State, tag string) iter.Seq2[fragment.Ref, error] {
	return func(yield func(fragment.Ref, error) bool) {
		for entry, err := range entriesWith(s.Tx(), s.ID(), listedIn(tag), nil) {
			if !yield(topicOf(entry), err) || err != nil {
				return
			}
		}
	}
}

// UnderLetter iterates over the topics of a source that are listed in a language under a heading, in the order of the
// language.
func UnderLetter(s records.State, tag, heading string) iter.Seq2[fragment.Ref, error] {
	return func(yield func(fragment.Ref, error) bool) {
		first, last := alphabetOf(tag).span(heading)
		prefix := listedIn(tag)
		for entry, err := range entriesWith(s.Tx(), s.ID(), prefix, append(bytes.Clone(prefix), first...)) {
			if err != nil {
				yield("", err)
				return
			}
			word, _, _ := split(entry)
			key := string(word[len(prefix):])
			begins := strings.HasPrefix(key, last)
			if key > last && !begins || heading == Symbols && begins || !yield(topicOf(entry), nil) {
				return
			}
		}
	}
}
