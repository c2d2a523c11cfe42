package words

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// Kind is the kind of a text of a topic.
type Kind byte

// The kinds, the best first.
const (
	Name Kind = iota
	Notation
	Variant
	Identifier
	Definition // this kind and later ones are searched last
	Note
)

func (k Kind) String() string {
	return [...]string{"name", "notation", "variant", "identifier", "definition", "note"}[k]
}

// Text is a text by which a topic is found.
type Text struct {
	Kind  Kind
	Value string
	Type  fragment.Ref // of a name, of the name of a variant, or of an occurrence
	Scope []fragment.Ref
}

// Label is the kind of a name (SKOS reference, section 5).
type Label byte

// The labels, the best first.
const (
	Preferred Label = iota
	Alternative
	Hidden
)

func (l Label) String() string { return [...]string{"preferred", "alternative", "hidden"}[l] }

// Label returns the kind of a name: preferred if its type is, and its scope has languages only.
func (t *Text) Label() Label {
	typ := string(t.Type)
	switch {
	case typ == titles.HiddenLabel:
		return Hidden
	case typ == titles.AltLabel:
		return Alternative
	case typ != "" && typ != titles.Default && typ != titles.LiteralForm && !slices.Contains(titles.Labels, typ):
		return Alternative
	}
	for _, theme := range t.Scope {
		if _, ok := titles.LanguageOf(theme); !ok {
			return Alternative
		}
	}
	return Preferred
}

// Language returns the language of a text without its region, as in listings; "" if it has none.
func (t *Text) Language() string { return languageOf(t.Scope) }

func languageOf(scope []fragment.Ref) string {
	for _, theme := range scope {
		if tag, ok := titles.LanguageOf(theme); ok {
			primary, _, _ := strings.Cut(tag.String(), "-")
			return primary
		}
	}
	return ""
}

// Rank is the rank of a word in the texts of a topic; lower is better. It is a printable character, and stored.
type Rank byte

// The ranks of words.
const (
	Whole        Rank = '0' + iota // a preferred name is this word
	WholeOther                     // another name is
	Begins                         // a name begins with it
	Has                            // a name has it
	OfNotation                     // a notation has it
	OfVariant                      // a variant has it
	OfIdentifier                   // the last part of an identifier has it
)

// The ranks of other entries.
const (
	ofCode  Rank = 'C' // of whole notations, as returned by [codeOf]
	ofTexts Rank = 'T' // of definitions and notes: the words are [hashesOf] their topics
)

// Entry is an entry of a topic in an index of words. A topic has one for each of its words, with the best rank.
type Entry struct {
	Rank Rank
	Word string
}

// Entries returns the entries by which a topic is found: for the words of its names, variants, notations and
// identifiers, in this order.
func Entries(t *fragment.Topic) []Entry {
	all := make([]Entry, 0, 8)
	topicTexts(t, func(text Text) bool {
		if text.Kind >= Definition {
			return false
		}
		words := cut(searched(text))
		for _, w := range words {
			all = append(all, Entry{rankOf(&text, w, words), w.text})
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

// allEntries returns all entries of a topic: those of its words, of its notations, and of its definitions and notes,
// and those by which it is listed.
func allEntries(t *fragment.Topic) []Entry {
	all := Entries(t)
	hashes := hashesOf(t, all)
	for i := range t.Occurrences {
		if o := &t.Occurrences[i]; kindOf(o) == Notation {
			if e := (Entry{ofCode, codeOf(o.Value)}); e.Word != "" && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	if hashes != "" {
		all = append(all, Entry{ofTexts, hashes})
	}
	return append(all, listings(t)...)
}

// codeOf returns the comparison form of a whole notation: folded and trimmed.
func codeOf(notation string) string {
	if len(notation) > longestText {
		return "" // it is no notation that anybody writes
	}
	return clip(strings.Trim(Fold(notation), " \x00"))
}

// best returns the entries by their words, each word once, with its best rank.
func best(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Word, b.Word), cmp.Compare(a.Rank, b.Rank))
	})
	return slices.CompactFunc(all, func(a, b Entry) bool { return a.Word == b.Word })
}

// rankOf returns the rank of one of the words of a text.
func rankOf(text *Text, w word, words []word) Rank {
	switch {
	case text.Kind == Notation:
		return OfNotation
	case text.Kind == Variant:
		return OfVariant
	case text.Kind == Identifier:
		return OfIdentifier
	case w.start > words[0].start:
		return Has
	case w.end < words[len(words)-1].end:
		return Begins
	case text.Label() != Preferred:
		return WholeOther
	}
	return Whole
}

// kindOf returns the kind of text of an occurrence; 0 if it is not indexed.
func kindOf(o *fragment.Occurrence) Kind {
	if rest, ok := strings.CutPrefix(string(o.Type), "http://www.w3.org/2004/02/skos/core#"); ok {
		switch rest {
		case "notation":
			return Notation
		case "definition":
			return Definition
		case "note", "scopeNote", "example", "historyNote", "editorialNote", "changeNote":
			return Note
		}
		return 0
	}
	switch o.Type {
	case "http://purl.org/dc/terms/description", "http://purl.org/dc/elements/1.1/description",
		"http://www.w3.org/2000/01/rdf-schema#comment", "https://schema.org/description", "http://schema.org/description":
		return Definition
	}
	return 0
}

// topicTexts calls yield with the texts of a topic until it returns false: names, variants, notations, identifiers, and
// then definitions and notes.
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
	occurrences := func(first, last Kind) bool {
		for i := range t.Occurrences {
			o := &t.Occurrences[i]
			if k := kindOf(o); first <= k && k <= last && o.Datatype != tmdm.XSDAnyURI &&
				!give(Text{k, o.Value, o.Type, o.Scope}) {
				return false
			}
		}
		return true
	}
	if !occurrences(Notation, Notation) {
		return
	}
	for _, list := range [][]tmdm.Locator{t.SubjectIdentifiers, t.SubjectLocators} {
		for _, l := range list {
			if !give(Text{Kind: Identifier, Value: string(l)}) {
				return
			}
		}
	}
	if occurrences(Definition, Definition) {
		occurrences(Note, Note)
	}
}

// searched returns that part of a text which is cut into words.
func searched(text Text) string {
	if text.Kind == Identifier {
		return lastPart(iri.Shown(text.Value))
	}
	return text.Value
}

// lastPart returns the part of an identifier after the last slash or hash that is not at its end.
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
