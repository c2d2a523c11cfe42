package words

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// Query is what somebody looks for.
type Query struct {
	Text     string         // as it was given, without spaces around it
	Words    []string       // folded; a topic must have each, or a word that begins with it
	Locators []tmdm.Locator // it may be one of these identifiers, or the beginning of one

	cut []word
}

// The limits of queries.
const (
	LongestQuery = 1000 // bytes; what is behind them does not count
	mostWords    = 8    // words; what is behind them does not count
)

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:\S+$`)

// Parse reads what somebody has written into a search field.
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
	q.cut = apart(cut(q.Text))
	q.cut = q.cut[:min(len(q.cut), mostWords)]
	for _, w := range q.cut {
		if !slices.Contains(q.Words, w.text) {
			q.Words = append(q.Words, w.text)
		}
	}
	return q
}

// Match says how a topic fits a query. The lower, the better.
type Match struct {
	Text  Text // the text of the topic that fits best
	fit   fit
	began int // how many words of the query are only beginnings of words of the text
}

// fit says how the words of a query stand in a text.
type fit byte

const (
	fitWhole   fit = iota // it is those words
	fitBegins             // it begins with them
	fitHas                // it has them
	fitSeveral            // several texts have them together
)

// Compare orders matches: by their ranks, then by their texts, the shortest first.
func (m Match) Compare(other Match) int {
	return cmp.Or(m.Rank(other), cmp.Compare(len(m.Text.Value), len(other.Text.Value)),
		strings.Compare(m.Text.Value, other.Text.Value))
}

// Rank orders matches by how they fit, the best first: names before variants before identifiers, whole words before
// beginnings, a text that is what somebody looks for before one that begins with it, and that before one that has it.
func (m Match) Rank(other Match) int {
	return cmp.Or(
		cmp.Compare(m.fit/fitSeveral, other.fit/fitSeveral),
		cmp.Compare(m.Text.Kind, other.Text.Kind),
		cmp.Compare(min(m.began, 1), min(other.began, 1)),
		cmp.Compare(m.fit, other.fit),
		cmp.Compare(m.began, other.began),
	)
}

// Begins reports whether an identifier begins with what somebody looks for.
func (q Query) Begins(l tmdm.Locator) bool {
	return slices.ContainsFunc(q.Locators, func(p tmdm.Locator) bool { return strings.HasPrefix(string(l), string(p)) })
}

// ByIdentifier returns how a topic fits of which an identifier is what somebody looks for, or begins with it.
func ByIdentifier(l tmdm.Locator) Match { return Match{Text: Text{Kind: Identifier, Value: string(l)}} }

// Match reports whether a topic has all words of a query, and how.
func (q Query) Match(t *fragment.Topic) (found Match, ok bool) {
	if len(q.Words) == 0 {
		return Match{}, false
	}
	var several Match
	missing := len(q.Words)
	has := make([]bool, len(q.Words))
	most := 0
	topicTexts(t, func(text Text) bool {
		m, matched := q.text(text)
		n := 0
		for i, how := range matched {
			if how != none {
				n++
				if !has[i] {
					has[i] = true
					missing--
				}
			}
		}
		if n > most {
			most, several = n, m
		}
		if n == len(q.Words) && (!ok || m.Compare(found) < 0) {
			found, ok = m, true
		}
		return true
	})
	if !ok && missing == 0 {
		several.fit = fitSeveral
		return several, true
	}
	return found, ok
}

// matched says how a text has a word of a query.
type matched byte

const (
	none matched = iota
	beginning
	exact
)

// text says how a text has each word of a query.
func (q Query) text(text Text) (m Match, has []matched) {
	words := cut(searched(text))
	m = Match{Text: text, fit: fitHas}
	has = make([]matched, len(q.Words))
	for i, wanted := range q.Words {
		for _, w := range words {
			if w.text == wanted {
				has[i] = exact
				break
			}
			if strings.HasPrefix(w.text, wanted) {
				has[i] = beginning
			}
		}
		if has[i] == beginning {
			m.began++
		}
	}
	if parts := apart(words); begins(parts, q.cut) {
		m.fit = fitBegins
		if len(parts) == len(q.cut) && m.began == 0 {
			m.fit = fitWhole
		}
	}
	return m, has
}

// begins reports whether the words of a text begin with those of a query, one for one.
func begins(words, wanted []word) bool {
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
