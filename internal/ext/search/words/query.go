package words

import (
	"cmp"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// Query is a parsed search.
type Query struct {
	Text     string         // as it was given, without spaces around it
	Words    []string       // folded; a topic must have each, or a word that begins with it
	Locators []tmdm.Locator // identifiers, or prefixes of identifiers, that the text may stand for

	Type     fragment.Ref // the topics are instances of it; "": of anything
	Language *string      // of the text that fits, as [Text.Language] returns it; nil: any

	cut  []word
	code string // as a whole notation
}

// The limits of queries.
const (
	LongestQuery = 1000 // bytes; the rest is ignored
	mostWords    = 8    // words; the rest is ignored
)

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:\S+$`)

// Parse parses the text of a search field.
func Parse(text string) Query {
	if len(text) > LongestQuery {
		text = text[:LongestQuery]
	}
	q := Query{Text: strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))}
	if identifier.MatchString(q.Text) {
		normal, err := tmdm.ParseLocator(q.Text)
		if err != nil {
			normal = tmdm.Locator(q.Text)
		}
		q.Locators = []tmdm.Locator{tmdm.Locator(iri.KeepApart(q.Text)), normal}
	}
	q.code = codeOf(q.Text)
	q.cut = apart(cut(q.Text))
	q.cut = q.cut[:min(len(q.cut), mostWords)]
	for _, w := range q.cut {
		if !slices.Contains(q.Words, w.text) {
			q.Words = append(q.Words, w.text)
		}
	}
	return q
}

// Match is the quality of a topic's match of a query. Lower values are better.
type Match struct {
	Text  Text // the text of the topic that fits best
	tier  tier
	fit   fit
	began int // number of query words that are only prefixes of words of the text
}

// tier is the kind of text that has the words of a query.
type tier byte

const (
	ofNotation      tier = iota // a notation equals or begins with the query
	ofLabel                     // a name, a variant or an identifier has all words
	ofLabels                    // several of these have the words together
	ofText                      // a definition or a note has them
	ofLabelsAndText             // all texts have them together
)

// fit is the position of the words of a query in a text.
type fit byte

const (
	fitWhole  fit = iota // it is those words
	fitBegins            // it begins with them
	fitHas               // it has them, or some of them
)

// Compare orders matches: by their ranks, then by their texts, the shortest first.
func (m Match) Compare(other Match) int {
	return cmp.Or(m.Rank(other), cmp.Compare(len(m.Text.Value), len(other.Text.Value)),
		strings.Compare(m.Text.Value, other.Text.Value))
}

// Rank compares matches, the best first: notations, then names before variants before identifiers, then definitions and
// notes; whole words before prefixes; a text that equals the query before one that begins with it, and that before one
// that contains it.
func (m Match) Rank(other Match) int {
	return cmp.Or(
		cmp.Compare(m.tier, other.tier),
		cmp.Compare(min(m.Text.Kind, Definition), min(other.Text.Kind, Definition)),
		cmp.Compare(min(m.began, 1), min(other.began, 1)),
		cmp.Compare(m.fit, other.fit),
		cmp.Compare(m.Text.Label(), other.Text.Label()),
		cmp.Compare(m.began, other.began),
	)
}

// Begins reports whether an identifier begins with the text of the query.
func (q Query) Begins(l tmdm.Locator) bool {
	return slices.ContainsFunc(q.Locators, func(p tmdm.Locator) bool { return strings.HasPrefix(string(l), string(p)) })
}

// Exact reports whether the words of the query are whole words in one name, notation or identifier of the topic.
func (m Match) Exact() bool { return m.tier <= ofLabel && m.began == 0 }

// ByIdentifier returns the match of a topic by an identifier that equals or begins with the query.
func ByIdentifier(l tmdm.Locator) Match {
	return Match{Text: Text{Kind: Identifier, Value: string(l)}, tier: ofLabel}
}

// speaks reports whether a text is in the language of the query.
func (q Query) speaks(text *Text) bool { return q.Language == nil || text.Language() == *q.Language }

// byNotation reports whether a notation of a topic equals or begins with the query, and returns its entry.
func (q Query) byNotation(t *fragment.Topic) (found Match, code string, ok bool) {
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		if kindOf(o) != Notation {
			continue
		}
		text := Text{Notation, o.Value, o.Type, o.Scope}
		c := codeOf(o.Value)
		if q.fitsCode(c) && (!ok || c < code) && q.speaks(&text) {
			found, code, ok = Match{Text: text, tier: ofNotation, fit: fitBegins}, c, true
			if c == q.code {
				found.fit = fitWhole
			}
		}
	}
	return found, code, ok
}

// fitsCode reports whether a notation equals or begins with the query.
func (q Query) fitsCode(code string) bool {
	return q.code != "" && strings.HasPrefix(code, q.code) && (q.longer() || code == q.code)
}

// longer reports whether longer notations come first, too, which is not so for one letter, because it begins too many.
func (q Query) longer() bool { return len(q.code) > 1 || q.code >= "0" && q.code <= "9" }

// Match reports whether a topic has all words of a query, in texts of its language, or a notation, and how.
func (q Query) Match(t *fragment.Topic) (found Match, ok bool) {
	if found, _, ok = q.byNotation(t); ok {
		return found, true
	}
	return q.match(t, allTexts, nil)
}

// The parts of a match that decide which texts count.
const (
	onlyNames = false // also variants, notations and identifiers
	allTexts  = true
)

// match is Match without notations as a whole. It notes for each language which of the words its texts have, unless
// that is nil.
func (q Query) match(t *fragment.Topic, texts bool, languages map[string]uint8) (found Match, ok bool) {
	if len(q.Words) == 0 {
		return Match{}, false
	}
	all, has, whole, most := uint8(1<<len(q.Words)-1), uint8(0), uint8(0), 0
	var several Match
	topicTexts(t, func(text Text) bool {
		late := text.Kind >= Definition
		if late && (!texts || has == all && languages == nil || !slices.ContainsFunc(q.Words, isHashed)) {
			return false
		}
		if !q.speaks(&text) {
			return true
		}
		m, in, enough := q.text(text)
		if late {
			in = enough
		}
		if languages != nil {
			languages[text.Language()] |= in
		}
		if late && has == all { // names have all words, which is better
			return true
		}
		if n := bits.OnesCount8(in); n > most {
			most, several = n, m
		}
		if m.tier = ofLabel; late {
			m.tier = ofText
		} else {
			has |= in
		}
		whole |= enough
		if in == all && (!ok || m.Compare(found) < 0) {
			found, ok = m, true
		}
		return true
	})
	several.fit = fitHas
	switch {
	case ok:
		return found, true
	case has == all:
		several.tier = ofLabels
		return several, true
	case texts && whole == all:
		several.tier = ofLabelsAndText
		return several, true
	}
	return Match{}, false
}

// text returns the match of a text, and bits for the words of the query that it has: those that its words begin with,
// and those that a definition or a note may contribute.
func (q Query) text(text Text) (m Match, has, enough uint8) {
	words := cut(searched(text))
	m = Match{Text: text, fit: fitHas}
	for i, wanted := range q.Words {
		whole, began := false, false
		for _, w := range words {
			whole = whole || w.text == wanted
			began = began || strings.HasPrefix(w.text, wanted)
		}
		if began {
			has |= 1 << i
		}
		if whole || began && len(wanted) >= begins {
			enough |= 1 << i
		}
		if began && !whole {
			m.began++
		}
	}
	if parts := apart(words); begin(parts, q.cut) {
		m.fit = fitBegins
		if len(parts) == len(q.cut) && m.began == 0 {
			m.fit = fitWhole
		}
	}
	return m, has, enough
}

// begin reports whether the words of a text begin with those of a query, one for one.
func begin(words, wanted []word) bool {
	if len(words) < len(wanted) {
		return false
	}
	for i := range wanted {
		if !strings.HasPrefix(words[i].text, wanted[i].text) {
			return false
		}
	}
	return true
}
