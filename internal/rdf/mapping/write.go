package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Graph returns the statements of a topic map, and counts what they do not carry. Each statement is there once.
func Graph(m *tmdm.TopicMap) ([]rdf.Quad, xtm.Losses) {
	w := &writing{said: map[rdf.Quad]bool{}, terms: map[*tmdm.Topic]rdf.Term{}, talks: map[*tmdm.Topic]bool{}, labels: map[string]bool{}}
	for t := range m.Topics() {
		w.topic(t)
	}
	for a := range m.Associations() {
		w.association(a)
	}
	for t := range m.Topics() {
		if !w.talks[t] && !w.servesMapping(t) {
			w.say(w.term(t), rdf.Type, rdf.NewIRI(termTopic))
		}
	}
	return w.quads, w.losses
}

type writing struct {
	quads  []rdf.Quad
	said   map[rdf.Quad]bool
	terms  map[*tmdm.Topic]rdf.Term
	talks  map[*tmdm.Topic]bool // topics that are in a statement
	labels map[string]bool      // of blank nodes that come from a graph
	nodes  int
	losses xtm.Losses
}

func (w *writing) say(s rdf.Term, property string, o rdf.Term) {
	if q := (rdf.Quad{Subject: s, Predicate: rdf.NewIRI(property), Object: o}); !w.said[q] {
		w.said[q] = true
		w.quads = append(w.quads, q)
	}
}

// term returns the resource that a topic is: the least of its subject identifiers, or a blank node.
func (w *writing) term(t *tmdm.Topic) rdf.Term {
	if known, ok := w.terms[t]; ok {
		return known
	}
	var term rdf.Term
	if all := t.SubjectIdentifiers(); len(all) > 0 {
		first := slices.Min(all)
		if label := genidLabel(string(first)); label != "" {
			term = rdf.NewBlank(w.unused(label))
		} else {
			term = rdf.NewIRI(iriOf(first))
		}
	} else {
		w.nodes++
		term = rdf.NewBlank("t" + strconv.Itoa(w.nodes))
	}
	w.terms[t] = term
	return term
}

// unused returns a label, changed if another node has it: that of another document.
func (w *writing) unused(label string) string {
	for n := 2; w.labels[label]; n++ {
		label = fmt.Sprintf("%s_%d", label, n)
	}
	w.labels[label] = true
	return label
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
	if all := t.SubjectIdentifiers(); len(all) > 0 {
		return string(slices.Min(all))
	}
	if all := t.SubjectLocators(); len(all) > 0 {
		return string(slices.Min(all))
	}
	if all := t.ItemIdentifiers(); len(all) > 0 {
		return string(slices.Min(all))
	}
	return NS + "unnamed/" + term.Value
}

func (w *writing) topic(t *tmdm.Topic) {
	identifiers := t.SubjectIdentifiers()
	if s := w.term(t); len(identifiers) != 1 || len(t.SubjectLocators()) > 0 {
		for _, l := range identifiers {
			if o := rdf.NewIRI(string(l)); len(identifiers) > 1 && l != slices.Min(identifiers) {
				w.talks[t] = true
				w.say(s, termSubjectIdentifier, o)
				w.say(s, sameAs, o)
			}
		}
		for _, l := range t.SubjectLocators() {
			w.talks[t] = true
			w.say(s, termSubjectLocator, rdf.NewIRI(string(l)))
		}
	}
	identified := len(identifiers)+len(t.SubjectLocators()) > 0
	for _, l := range t.ItemIdentifiers() {
		if identified && strings.HasPrefix(string(l), "file:") {
			continue // it says where a file was, and nothing of the subject
		}
		w.talks[t] = true
		w.say(w.term(t), termItemIdentifier, rdf.NewIRI(string(l)))
	}
	for _, n := range t.Names() {
		w.name(t, n)
	}
	for _, o := range t.Occurrences() {
		w.occurrence(t, o)
	}
}

func (w *writing) name(t *tmdm.Topic, n *tmdm.TopicName) {
	w.reified(n.Reifier())
	w.losses.ItemIdentifiers += len(n.ItemIdentifiers())
	w.losses.Variants += len(n.Variants())
	s, o := w.mention(t), w.text(n.Value(), n.Scope())
	switch typ := n.Type(); {
	case isDefault(typ):
		w.say(s, topicName, o)
		w.say(s, rdfsLabel, o)
	default:
		property := w.property(typ)
		if !labels[property] {
			w.say(rdf.NewIRI(property), rdf.Type, rdf.NewIRI(termNameType))
		}
		w.say(s, property, o)
	}
}

func isDefault(t *tmdm.Topic) bool {
	return slices.Contains(t.SubjectIdentifiers(), tmdm.PSIDefaultNameType)
}

func (w *writing) occurrence(t *tmdm.Topic, o *tmdm.Occurrence) {
	w.reified(o.Reifier())
	w.losses.ItemIdentifiers += len(o.ItemIdentifiers())
	literal := w.text(o.Value(), o.Scope())
	switch datatype := literalDatatype(o.Datatype()); {
	case datatype == rdf.LangStr && literal.Language != "":
	default:
		if literal.Language != "" { // RDF has a language or a datatype
			w.losses.Scopes++
		}
		literal = rdf.NewLiteral(o.Value(), datatype)
	}
	w.say(w.mention(t), w.property(o.Type()), literal)
}

// text returns a literal in the language that a scope is. Other scopes are not carried.
func (w *writing) text(value string, scope *tmdm.Scope) rdf.Term {
	themes := scope.Themes()
	if len(themes) == 1 {
		for _, l := range themes[0].SubjectIdentifiers() {
			if tag, ok := strings.CutPrefix(string(l), languageNS); ok && isTag(tag) {
				return rdf.NewText(value, tag)
			}
		}
	}
	if len(themes) > 0 {
		w.losses.Scopes++
	}
	return rdf.NewLiteral(value, "")
}

// isTag reports whether a string can be a language tag (RDF 1.1 Turtle §6.5, LANGTAG), in lower case.
func isTag(s string) bool {
	for i, part := range strings.Split(s, "-") {
		if part == "" {
			return false
		}
		for _, c := range part {
			if !('a' <= c && c <= 'z' || i > 0 && '0' <= c && c <= '9') {
				return false
			}
		}
	}
	return true
}

func (w *writing) reified(by *tmdm.Topic) {
	if by != nil {
		w.losses.Reifiers++
	}
}

func (w *writing) association(a *tmdm.Association) {
	w.reified(a.Reifier())
	w.losses.ItemIdentifiers += len(a.ItemIdentifiers())
	if len(a.Scope().Themes()) > 0 {
		w.losses.Scopes++
	}
	roles := a.Roles()
	for _, r := range roles {
		w.reified(r.Reifier())
		w.losses.ItemIdentifiers += len(r.ItemIdentifiers())
	}
	if class, instance, ok := a.TypeInstance(); ok {
		w.say(w.mention(instance), rdf.Type, w.mention(class))
		return
	}
	typ := a.Type()
	if len(roles) == 2 {
		for _, form := range [][3]tmdm.Locator{{"", roleSubject, roleObject}, {tmdm.PSISupertypeSubtype, tmdm.PSISubtype, tmdm.PSISupertype}} {
			first, second := roles[0], roles[1]
			if has(second.Type(), form[1]) {
				first, second = second, first
			}
			if !has(first.Type(), form[1]) || !has(second.Type(), form[2]) || form[0] != "" && !has(typ, form[0]) {
				continue
			}
			property := subClassOf
			if form[0] == "" {
				if property = w.property(typ); property == rdf.Type || property == subClassOf {
					break
				}
			}
			w.say(w.mention(first.Player()), property, w.mention(second.Player()))
			return
		}
	}
	if len(roles) == 0 {
		w.losses.Associations++
		return
	}
	w.nodes++
	node := rdf.NewBlank("a" + strconv.Itoa(w.nodes))
	w.say(node, rdf.Type, rdf.NewIRI(termAssociation))
	w.say(node, termAssociationType, w.mention(typ))
	for _, r := range roles {
		w.say(node, w.property(r.Type()), w.mention(r.Player()))
	}
}

func has(t *tmdm.Topic, l tmdm.Locator) bool { return slices.Contains(t.SubjectIdentifiers(), l) }

// servesMapping reports whether a topic is there only because the mapping needs it.
func (w *writing) servesMapping(t *tmdm.Topic) bool {
	for _, l := range t.SubjectIdentifiers() {
		switch l {
		case roleSubject, roleObject, tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance, tmdm.PSISupertypeSubtype, tmdm.PSISupertype, tmdm.PSISubtype, tmdm.PSIDefaultNameType:
			return true
		}
		if strings.HasPrefix(string(l), languageNS) {
			return true
		}
	}
	return false
}
