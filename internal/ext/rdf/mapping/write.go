package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Graph returns the statements of a topic map, sorted and without duplicates, and counts the items that they cannot
// represent.
func Graph(m *tmdm.TopicMap, o Options) ([]rdf.Quad, xtm.Losses) {
	w := &writing{
		m: m, plain: o.Plain, isLabel: o.labels(), isNameType: map[*tmdm.Topic]bool{}, terms: map[*tmdm.Topic]rdf.Term{},
		talks: map[*tmdm.Topic]bool{}, taken: map[string]bool{}, echoes: map[rdf.Quad]bool{},
	}
	most := 0
	for t := range m.Topics() {
		for _, n := range t.Names() {
			w.isNameType[n.Type()] = true
			w.echoed = w.echoed || has(n.Type(), rdfsLabel)
		}
		most += len(t.Names()) + len(t.Occurrences())
	}
	for range m.Associations() {
		most++
	}
	w.quads = make([]rdf.Quad, 0, most) // most items are one statement
	for t := range m.Topics() {
		w.topic(t)
	}
	for a := range m.Associations() {
		w.association(a)
	}
	w.itself(m)
	w.describe()
	for t := range m.Topics() {
		switch {
		case w.talks[t]:
		case w.plain:
			w.say(w.term(t), rdf.Type, rdf.NewIRI(anyResource))
		default:
			w.say(w.term(t), rdf.Type, rdf.NewIRI(termTopic))
		}
	}
	all := rdf.Sorted(w.quads)
	for i, q := range all {
		known := i > 0 && all[i-1].Subject == q.Subject
		if w.plain && !known && q.Subject.Kind == rdf.IRI && isFile(tmdm.Locator(q.Subject.Value)) {
			w.losses.FileSubjects++
		}
	}
	return all, w.losses
}

type writing struct {
	m          *tmdm.TopicMap
	plain      bool
	isLabel    map[string]bool // properties whose texts are names by default
	isNameType map[*tmdm.Topic]bool
	quads      []rdf.Quad
	terms      map[*tmdm.Topic]rdf.Term
	talks      map[*tmdm.Topic]bool // topics that are in a statement, or that a reader needs for one
	taken      map[string]bool      // labels of blank nodes from a graph
	nodes      int
	losses     xtm.Losses
	special    []itemOf          // statements that need a description
	echoed     bool              // names of the type rdfs:label exist
	echoes     map[rdf.Quad]bool // statements that repeat names of the default type; noted where echoed
}

func (w *writing) say(s rdf.Term, property string, o rdf.Term) rdf.Quad {
	q := rdf.Quad{Subject: s, Predicate: rdf.NewIRI(property), Object: o}
	w.quads = append(w.quads, q)
	return q
}

// node returns a new blank node of one of our types.
func (w *writing) node(label, typ string) rdf.Term {
	w.nodes++
	n := rdf.NewBlank(label + strconv.Itoa(w.nodes))
	if typ != "" {
		w.say(n, rdf.Type, rdf.NewIRI(typ))
	}
	return n
}

// term returns the resource of a topic: the least of its subject identifiers, or else of its subject locators, or else
// of its item identifiers, unless it belongs to another topic. A topic made from a blank node is a blank node.
func (w *writing) term(t *tmdm.Topic) rdf.Term {
	term, ok := w.terms[t]
	if ok {
		return term
	}
	var label string
	identifiers := slices.DeleteFunc(slices.Clone(t.SubjectIdentifiers()), func(l tmdm.Locator) bool {
		shown := iri.BlankLabel(string(l))
		label = max(label, shown)
		return shown != ""
	})
	switch {
	case len(identifiers) > 0:
		term = resource(slices.Min(identifiers))
	case label != "":
		term = rdf.NewBlank(w.unused(label))
	default:
		term = w.located(t)
	}
	w.terms[t] = term
	return term
}

// located returns the resource of a topic without subject identifiers.
func (w *writing) located(t *tmdm.Topic) rdf.Term {
	for _, l := range slices.Sorted(slices.Values(t.SubjectLocators())) {
		if other := w.m.TopicByIdentifier(l); other == nil || other == t {
			return resource(l)
		}
	}
	if all := t.ItemIdentifiers(); len(all) > 0 {
		return resource(slices.Min(all))
	}
	w.nodes++
	return rdf.NewIRI(unnamedNS + strconv.Itoa(w.nodes))
}

// unused returns a label, changed if another node has it: that of another document.
func (w *writing) unused(label string) string {
	unique := label
	for n := 2; w.taken[unique]; n++ {
		unique = fmt.Sprintf("%s_%d", label, n)
	}
	w.taken[unique] = true
	return unique
}

// mention is term of a topic of a statement.
func (w *writing) mention(t *tmdm.Topic) rdf.Term {
	w.talks[t] = true
	return w.term(t)
}

// property returns the IRI of a topic that is the type of a statement, or of a role. RDF needs one.
func (w *writing) property(t *tmdm.Topic) string {
	term := w.mention(t)
	if term.Kind == rdf.IRI {
		return term.Value
	}
	return string(slices.Min(t.SubjectIdentifiers())) // that of a blank node
}

func (w *writing) topic(t *tmdm.Topic) {
	w.identify(t)
	for _, n := range t.Names() {
		w.name(t, n)
	}
	for _, o := range t.Occurrences() {
		w.occurrence(t, o)
	}
}

// identify adds statements for the other identifiers of a topic.
func (w *writing) identify(t *tmdm.Topic) {
	identifiers, locators := t.SubjectIdentifiers(), t.SubjectLocators()
	term := w.term(t)
	if len(identifiers) == 1 && len(locators) == 0 && len(t.ItemIdentifiers()) == 0 {
		return
	}
	for _, l := range identifiers {
		if o := resource(l); o != term && iri.BlankLabel(string(l)) == "" {
			w.talks[t] = true
			w.say(term, sameAs, o)
			w.own(term, termSubjectIdentifier, o)
		}
	}
	itself := false // the resource is named for a locator
	for _, l := range locators {
		switch o := resource(l); {
		case !w.plain:
			itself = itself || o == term
			w.talks[t] = true
			w.own(term, termSubjectLocator, o)
		case o != term || len(identifiers) > 0:
			w.losses.SubjectLocators++
		}
	}
	for _, l := range t.ItemIdentifiers() {
		o := resource(l)
		switch {
		case len(identifiers)+len(locators) > 0 && isFile(l): // it names a former file, not the subject
		case !w.plain:
			itself = itself || o == term
			w.talks[t] = true
			w.own(term, termItemIdentifier, o)
		case o != term || len(identifiers) > 0 || slices.Contains(locators, l):
			w.losses.ItemIdentifiers++
		}
	}
	if itself && slices.ContainsFunc(identifiers, func(l tmdm.Locator) bool { return resource(l) == term }) {
		w.own(term, termSubjectIdentifier, term)
	}
}

func isFile(l tmdm.Locator) bool { return strings.HasPrefix(string(l), "file:") }

// own adds a statement in TMShare's vocabulary, unless Plain excludes it.
func (w *writing) own(s rdf.Term, property string, o rdf.Term) {
	if !w.plain {
		w.say(s, property, o)
	}
}

func (w *writing) name(t *tmdm.Topic, n *tmdm.TopicName) {
	s := w.mention(t)
	o, rest := w.text(n.Value(), n.Scope())
	typ := n.Type()
	w.talks[typ] = true
	var q rdf.Quad
	switch {
	case has(typ, tmdm.PSIDefaultNameType) && w.plain:
		q = w.say(s, rdfsLabel, o)
	case has(typ, tmdm.PSIDefaultNameType):
		echo := w.say(s, rdfsLabel, o)
		if q = w.say(s, topicName, o); w.echoed {
			w.echoes[echo] = true
		}
	default:
		property := w.property(typ)
		if !w.isLabel[property] {
			if w.plain {
				w.losses.NameTypes++
			}
			w.own(rdf.NewIRI(property), rdf.Type, rdf.NewIRI(termNameType))
		}
		q = w.say(s, property, o)
	}
	w.more(itemOf{statement: q, item: n, scope: rest, variants: n.Variants()})
}

func (w *writing) occurrence(t *tmdm.Topic, o *tmdm.Occurrence) {
	s, property := w.mention(t), w.property(o.Type())
	literal, rest := w.text(o.Value(), o.Scope())
	more := itemOf{item: o}
	switch datatype := literalDatatype(o.Datatype()); {
	case o.Datatype() == tmdm.XSDAnyType:
		more.datatype = tmdm.XSDAnyType
		literal, rest = rdf.NewLiteral(o.Value(), xmlLiteral), o.Scope().Themes()
	case literal.Language == "":
		literal = rdf.NewLiteral(o.Value(), datatype)
		if datatype == rdf.LangStr { // no literal has it without a language
			more.datatype = rdf.LangStr
		}
	case datatype == rdf.LangStr:
	case datatype == rdf.String: // RDF has a language or a datatype; readers miss the language more
		more.datatype = rdf.String
	default:
		literal, rest = rdf.NewLiteral(o.Value(), datatype), o.Scope().Themes()
	}
	more.occurrence = isText(literal) && (w.isLabel[property] || w.isNameType[o.Type()])
	more.scope, more.statement = rest, w.say(s, property, literal)
	w.more(more)
}

// text returns a literal in the language that a theme of a scope is, if it is one only, and the other themes.
func (w *writing) text(value string, scope *tmdm.Scope) (literal rdf.Term, rest []*tmdm.Topic) {
	language := ""
	for _, theme := range scope.Themes() {
		if tag := languageOf(theme); tag != "" && language == "" {
			language, w.talks[theme] = tag, true
			continue
		}
		rest = append(rest, theme)
	}
	if language == "" {
		return rdf.NewLiteral(value, ""), rest
	}
	return rdf.NewText(value, language), rest
}

// languageOf returns the language tag of a theme; "" if it is no language.
func languageOf(theme *tmdm.Topic) string {
	for _, l := range theme.SubjectIdentifiers() {
		if tag := tagOf(l); tag != "" {
			return tag
		}
	}
	return ""
}

// tagOf returns the language tag of the theme with a subject identifier; "" if it is no language.
func tagOf(l tmdm.Locator) string {
	tag, ok := strings.CutPrefix(string(l), languageNS)
	if normal, err := rdf.Language(tag); !ok || err != nil || normal != tag || strings.ToLower(tag) != tag {
		return ""
	}
	return tag
}

func has(t *tmdm.Topic, l tmdm.Locator) bool { return slices.Contains(t.SubjectIdentifiers(), l) }

// servesMapping reports whether a topic is there only because the mapping needs it, if no statement mentions it.
func servesMapping(t *tmdm.Topic) bool { return slices.ContainsFunc(t.SubjectIdentifiers(), serves) }

func serves(l tmdm.Locator) bool {
	switch l {
	case subject, object, tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance, tmdm.PSISupertypeSubtype,
		tmdm.PSISupertype, tmdm.PSISubtype, tmdm.PSIDefaultNameType:
		return true
	}
	return strings.HasPrefix(string(l), languageNS)
}
