package mapdiff

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
)

// Difference holds the differing statements of the two maps about one topic.
type Difference struct {
	Topic string      `json:"topic,omitempty"` // an identifier; "": the topic map itself
	Title string      `json:"title,omitempty"` // what people would call it
	In    Where       `json:"in"`
	A     []Statement `json:"a,omitempty"` // only in the first map
	B     []Statement `json:"b,omitempty"` // only the second one does
}

// A Where is the map, or maps, with a topic.
type Where string

// The values of Where.
const (
	Both  Where = "both"
	OnlyA Where = "a"
	OnlyB Where = "b"
)

// Compare returns the differences between two maps with the same base, first those of the map itself, then topic by
// topic: in the order of a, then topics of b only. It compares an association with each of its players. Both maps must
// be normalised. Titles are in the first available of some languages.
func Compare(a, b *tmdm.TopicMap, base tmdm.Locator, languages ...string) ([]Difference, error) {
	c := newComparison(pairTopics(a, b), base)
	c.title = func(t *tmdm.Topic) string { return Title(t, languages...) }
	list := c.differences()
	if len(list) == 0 || c.sure {
		return list, nil
	}
	// Topics without identifiers may have been paired with the wrong ones.
	if ra, rb := a.Reifier(), b.Reifier(); ra != nil || rb != nil { // the canonical form omits them
		if c.a.pair[ra] == 0 || c.a.pair[ra] != c.b.pair[rb] {
			return list, nil
		}
	}
	inA, err := canonical(a, base)
	if err != nil {
		return nil, err
	}
	inB, err := canonical(b, base)
	if err != nil || bytes.Equal(inA, inB) {
		return nil, err
	}
	return list, nil
}

func canonical(tm *tmdm.TopicMap, base tmdm.Locator) ([]byte, error) {
	var b bytes.Buffer
	err := cxtm.Write(&b, tm, cxtm.Options{Base: base, OmitItemIdentifiers: true})
	return b.Bytes(), err
}

type comparison struct {
	*pairing
	base  tmdm.Locator
	title func(*tmdm.Topic) string

	keysA, keysB   writer // to compare: topics are called by the numbers of their pairs
	wordsA, wordsB writer // for people
}

func newComparison(p *pairing, base tmdm.Locator) *comparison {
	c := &comparison{pairing: p, base: base}
	c.keysA = writer{call: func(t *tmdm.Topic) string {
		return number(c.a, t, "a")
	}, large: map[*tmdm.Association]string{}}
	c.keysB = writer{call: func(t *tmdm.Topic) string {
		return number(c.b, t, "b")
	}, large: map[*tmdm.Association]string{}}
	c.wordsA = writer{call: func(t *tmdm.Topic) string { return marked(Topic, c.labelA(t)) }, base: base}
	c.wordsB = writer{call: func(t *tmdm.Topic) string { return marked(Topic, c.labelB(t)) }, base: base}
	return c
}

func (c *comparison) differences() []Difference {
	var list []Difference
	a, b := c.subtract(func(w writer) []part {
		return w.topicMap(c.a.tm)
	}, func(w writer) []part { return w.topicMap(c.b.tm) })
	if len(a)+len(b) > 0 {
		list = append(list, Difference{In: Both, A: a, B: b})
	}
	for t := range c.a.tm.Topics() {
		n := c.a.pair[t]
		if n == 0 {
			list = append(list,
				Difference{Topic: c.label(t), Title: c.title(t), In: OnlyA, A: c.wordsA.statements(c.wordsA.topic(t))})
			continue
		}
		other := c.pairs[n-1][1]
		a, b := c.subtract(func(w writer) []part { return w.topic(t) }, func(w writer) []part { return w.topic(other) })
		if len(a)+len(b) > 0 {
			list = append(list, Difference{Topic: c.labelA(t), Title: c.title(t), In: Both, A: a, B: b})
		}
	}
	for _, t := range c.b.free {
		list = append(list,
			Difference{Topic: c.label(t), Title: c.title(t), In: OnlyB, B: c.wordsB.statements(c.wordsB.topic(t))})
	}
	return list
}

// subtract returns the statements of only one of two descriptions, in words for people.
func (c *comparison) subtract(sayA, sayB func(writer) []part) (onlyA, onlyB []Statement) {
	a, b := sayA(c.keysA), sayB(c.keysB)
	left := make(map[part]int, len(b))
	for _, s := range b {
		left[s]++
	}
	differs := false
	for _, s := range a {
		left[s]--
		differs = differs || left[s] < 0
	}
	if !differs && len(a) == len(b) {
		return nil, nil
	}
	return c.wordsA.statements(without(sayA(c.wordsA), a, b)), c.wordsB.statements(without(sayB(c.wordsB), b, a))
}

// without returns the elements of words whose keys are not in others.
func without(words, keys, others []part) []part {
	count := make(map[part]int, len(others))
	for _, s := range others {
		count[s]++
	}
	var left []part
	for i, s := range keys {
		if count[s]--; count[s] < 0 {
			left = append(left, words[i])
		}
	}
	return left
}

// number calls t by its pair, or by a name that the other side does not use.
func number(s *side, t *tmdm.Topic, name string) string {
	if n := s.pair[t]; n > 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s%p", name, t)
}

// labelA and labelB call a topic the same on both sides, if it has a pair.
func (c *comparison) labelA(t *tmdm.Topic) string {
	if n := c.a.pair[t]; n > 0 {
		return c.label(t, c.pairs[n-1][1])
	}
	return c.label(t)
}

func (c *comparison) labelB(t *tmdm.Topic) string {
	if n := c.b.pair[t]; n > 0 {
		return c.label(c.pairs[n-1][0], t)
	}
	return c.label(t)
}

// label returns a name for the topics of a pair, or for a single topic.
func (c *comparison) label(topics ...*tmdm.Topic) string { return Label(c.base, topics...) }

// unidentified is the name of a topic without identifiers.
const unidentified = "a topic without identifiers"

// Label returns an identifier of topics that are one, rather one that all of
// them have. Item identifiers in the document with the given base are shortened
// to "#id".
func Label(base tmdm.Locator, topics ...*tmdm.Topic) string {
	sets := []func(*tmdm.Topic) []tmdm.Locator{
		(*tmdm.Topic).SubjectIdentifiers, (*tmdm.Topic).SubjectLocators, (*tmdm.Topic).ItemIdentifiers,
	}
	last := topics[len(topics)-1]
	finders := []func(*tmdm.TopicMap, tmdm.Locator) *tmdm.Topic{
		(*tmdm.TopicMap).TopicBySubjectIdentifier, (*tmdm.TopicMap).TopicBySubjectLocator, byItem,
	}
	for i, set := range sets {
		for _, l := range set(topics[0]) {
			if finders[i](last.TopicMap(), l) == last {
				return short(base, l)
			}
		}
	}
	for _, set := range sets {
		for _, t := range topics {
			if l := set(t); len(l) > 0 {
				return short(base, l[0])
			}
		}
	}
	return unidentified
}

func short(base, l tmdm.Locator) string {
	if id, ok := strings.CutPrefix(string(l), string(base)); ok && strings.HasPrefix(id, "#") {
		return id
	}
	return string(l)
}

// Title returns the name of t in the first available of some languages; "" if it has none.
func Title(t *tmdm.Topic, languages ...string) string {
	if n := t.DisplayName(languages...); n != nil {
		return n.Value()
	}
	return ""
}

// Languages returns a reader's languages, the best first, then that of most names in some maps, if any.
func Languages(reader titles.Languages, maps ...*tmdm.TopicMap) titles.Languages {
	count := titles.Count{}
	for _, tm := range maps {
		for t := range tm.Topics() {
			t.CountLanguages(count)
		}
	}
	if most := count.Most(); most != "" {
		return append(slices.Clone(reader), most)
	}
	return reader
}
