package words

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// Kind is what of a topic a text is.
type Kind byte

// The kinds, the best first.
const (
	Name Kind = iota
	Variant
	Identifier
)

func (k Kind) String() string { return [...]string{"name", "variant", "identifier"}[k] }

// Text is a text by which a topic is found.
type Text struct {
	Kind  Kind
	Value string
	Type  fragment.Ref // of a name, or of the name of a variant
	Scope []fragment.Ref
}

// Rank says how a word stands in the texts of a topic. A lower one is better. It is a printable character, and stored.
type Rank byte

// The ranks.
const (
	Whole        Rank = '0' + iota // a name is this word
	Begins                         // a name begins with it
	Has                            // a name has it
	OfVariant                      // a variant has it
	OfIdentifier                   // the last part of an identifier has it
)

// Entry is an entry of a topic in an index of words. A topic has one for each of its words, with the best rank.
type Entry struct {
	Rank Rank
	Word string
}

// Entries returns the entries of a topic by which it is found, by their words.
func Entries(t *fragment.Topic) []Entry {
	all := make([]Entry, 0, 8)
	topicTexts(t, func(text Text) bool {
		words := cut(searched(text))
		for _, w := range words {
			all = append(all, Entry{rankOf(text.Kind, w, words), w.text})
		}
		if len(all) < 2*wordsOfTopic {
			return true
		}
		all = best(all)
		return len(all) < wordsOfTopic
	})
	if all = best(all); len(all) > wordsOfTopic { // the worst ones go
		slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(a.Rank, b.Rank) })
		all = best(all[:wordsOfTopic])
	}
	return all
}

// allEntries returns all entries of a topic: those of its words, and those by which it is listed.
func allEntries(t *fragment.Topic) []Entry { return append(Entries(t), listings(t)...) }

// best returns the entries by their words, each word once, with its best rank.
func best(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Word, b.Word), cmp.Compare(a.Rank, b.Rank))
	})
	return slices.CompactFunc(all, func(a, b Entry) bool { return a.Word == b.Word })
}

// rankOf returns the rank of one of the words of a text.
func rankOf(kind Kind, w word, words []word) Rank {
	switch {
	case kind == Variant:
		return OfVariant
	case kind == Identifier:
		return OfIdentifier
	case w.start > words[0].start:
		return Has
	case w.end < words[len(words)-1].end:
		return Begins
	}
	return Whole
}

// topicTexts calls yield with the texts of a topic until it returns false: names, variants, identifiers.
func topicTexts(t *fragment.Topic, yield func(Text) bool) {
	budget := textOfTopic
	give := func(text Text) bool {
		budget -= min(len(text.Value), longestText)
		return budget >= 0 && yield(text)
	}
	for i := range t.Names {
		n := &t.Names[i]
		if !give(Text{Name, n.Value, n.Type, n.Scope}) {
			return
		}
	}
	if form := literalForm(t); form != nil && !give(Text{Name, form.Value, form.Type, form.Scope}) {
		return
	}
	for i := range t.Names {
		n := &t.Names[i]
		for j := range n.Variants {
			v := &n.Variants[j]
			if v.Datatype != tmdm.XSDAnyURI && !give(Text{Variant, v.Value, n.Type, v.Scope}) {
				return
			}
		}
	}
	for _, list := range [][]tmdm.Locator{t.SubjectIdentifiers, t.SubjectLocators} {
		for _, l := range list {
			if !give(Text{Kind: Identifier, Value: string(l)}) {
				return
			}
		}
	}
}

// searched returns that part of a text which is cut into words.
func searched(text Text) string {
	if text.Kind == Identifier {
		return lastPart(iri.Shown(text.Value))
	}
	return text.Value
}

// lastPart returns the last part of an identifier, behind the last slash or hash that something follows.
func lastPart(locator string) string {
	rest := strings.TrimRight(locator, "/#")
	rest = rest[strings.LastIndexAny(rest, "/#:")+1:]
	if !strings.Contains(rest, "%") {
		return rest
	}
	if plain, err := url.PathUnescape(rest); err == nil && utf8.ValidString(plain) {
		return plain
	}
	return rest
}
