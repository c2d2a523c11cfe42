package mapping

import (
	"encoding/hex"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
)

// Records makes statements of the records of a source, as [Graph] does of a map, one by one: so a whole map costs
// little memory. The resource that a topic is has the IRI of its TopicSI. What a graph does not carry is left out. It
// is not safe for concurrent use.
type Records struct {
	// Skolem gives IRIs to blank nodes (RDF 1.1 Concepts §3.5), and makes the statements of each record independent of
	// others: none states that a topic exists, or which properties make names.
	Skolem bool

	sp   string
	emit func(rdf.Quad) error
	err  error // the first one of emit

	nameTypes map[string]bool       // properties that were declared to make names
	bare      map[fragment.Ref]bool // topics without a statement so far
	mentioned map[fragment.Ref]bool // types, classes, and topics that a reader needs
}

// NewRecords hands the statements of records to emit, until that returns an error. sp is the source locator prefix,
// below which the blank nodes of the source are.
func NewRecords(sp string, emit func(rdf.Quad) error) *Records {
	return &Records{sp: sp, emit: emit, nameTypes: map[string]bool{}, bare: map[fragment.Ref]bool{},
		mentioned: map[fragment.Ref]bool{}}
}

// All makes the statements of all records of a source, in which topics come before their associations.
func (r *Records) All(records iter.Seq2[fragment.Record, error]) error {
	for record, err := range records {
		if err == nil {
			err = r.Record(&record)
		}
		if err != nil {
			return err
		}
	}
	if r.Skolem {
		return r.err
	}
	for _, ref := range slices.Sorted(maps.Keys(r.bare)) {
		if !r.mentioned[ref] {
			r.exists(ref)
		}
	}
	return r.err
}

// Record makes the statements of a record; none if it is empty.
func (r *Records) Record(record *fragment.Record) error {
	switch {
	case record.Topic != nil:
		return r.topic(record.Topic)
	case record.Association != nil:
		return r.association(record.Association)
	}
	return nil
}

func (r *Records) say(s rdf.Term, property string, o rdf.Term) {
	if r.err == nil {
		r.err = r.emit(rdf.Quad{Subject: s, Predicate: rdf.NewIRI(property), Object: o})
	}
}

// exists adds the statement that a topic exists.
func (r *Records) exists(ref fragment.Ref) { r.say(r.term(ref), rdf.Type, rdf.NewIRI(termTopic)) }

// term returns the resource of a topic.
func (r *Records) term(ref fragment.Ref) rdf.Term {
	label := iri.BlankLabel(string(ref))
	switch {
	case label == "":
		return resource(ref)
	case r.Skolem:
		return rdf.NewIRI(string(ref))
	case genid(tmdm.Locator(r.sp), label) != ref: // another source has made it
		label += "_" + sum([]byte(ref)).String()
	}
	return rdf.NewBlank(label)
}

// property returns the IRI of the type of a statement.
func (r *Records) property(typ fragment.Ref) string {
	r.mentioned[typ] = true
	if term := r.term(typ); term.Kind == rdf.IRI {
		return term.Value
	}
	return string(typ)
}

func (r *Records) topic(t *fragment.Topic) error {
	s := r.term(t.TopicSI())
	for _, l := range t.SubjectIdentifiers[1:] {
		r.say(s, termSubjectIdentifier, rdf.NewIRI(string(l)))
		r.say(s, sameAs, rdf.NewIRI(string(l)))
	}
	for _, l := range t.SubjectLocators {
		r.say(s, termSubjectLocator, rdf.NewIRI(string(l)))
	}
	for i := range t.Names {
		r.name(s, &t.Names[i])
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		r.say(s, r.property(o.Type), r.literal(o))
	}
	if !r.Skolem && len(t.SubjectIdentifiers)+len(t.SubjectLocators)+len(t.Names)+len(t.Occurrences) == 1 {
		r.bare[t.TopicSI()] = true
	}
	return r.err
}

// literal returns the literal that an occurrence is. Of a language and a datatype, RDF has one.
func (r *Records) literal(o *fragment.Occurrence) rdf.Term {
	language, datatype := r.language(o.Scope), literalDatatype(o.Datatype)
	switch {
	case o.Datatype == tmdm.XSDAnyType:
		return rdf.NewLiteral(o.Value, xmlLiteral)
	case language != "" && (datatype == rdf.LangStr || datatype == rdf.String):
		return rdf.NewText(o.Value, language)
	}
	return rdf.NewLiteral(o.Value, datatype)
}

func (r *Records) name(s rdf.Term, n *fragment.Name) {
	text := rdf.NewLiteral(n.Value, "")
	if language := r.language(n.Scope); language != "" {
		text = rdf.NewText(n.Value, language)
	}
	if n.Type == tmdm.PSIDefaultNameType {
		r.mentioned[n.Type] = true
		r.say(s, topicName, text)
		r.say(s, rdfsLabel, text)
		return
	}
	property := r.property(n.Type)
	if !r.Skolem && !labels[property] && !r.nameTypes[property] {
		r.nameTypes[property] = true
		r.say(rdf.NewIRI(property), rdf.Type, rdf.NewIRI(termNameType))
	}
	r.say(s, property, text)
}

// language returns the language that a scope is, or "".
func (r *Records) language(scope []fragment.Ref) string {
	for _, theme := range scope {
		r.mentioned[theme] = true
	}
	if len(scope) != 1 {
		return ""
	}
	return tagOf(scope[0])
}

func (r *Records) association(a *fragment.Association) error {
	s, property, o := r.statement(a)
	if property != "" {
		if property == rdf.Type {
			r.mentioned[o] = true // its type may follow later
		}
		r.plays(s, o)
		r.say(r.term(s), property, r.term(o))
		return r.err
	}
	key := a.Key()
	node := rdf.NewBlank("a" + hex.EncodeToString(key[:16]))
	if r.Skolem {
		node = rdf.NewIRI(string(genid(tmdm.Locator(r.sp), node.Value)))
	}
	r.mentioned[a.Type] = true
	r.say(node, rdf.Type, rdf.NewIRI(termAssociation))
	r.say(node, rdf.Type, r.term(a.Type))
	for _, role := range a.Roles {
		r.plays(role.Player)
		r.say(node, r.property(role.Type), r.term(role.Player))
	}
	return r.err
}

func (r *Records) plays(players ...fragment.Ref) {
	for _, p := range players {
		delete(r.bare, p)
	}
}

// statement returns the subject, the property and the object of an association that is a single statement, no property
// for one that is not.
func (r *Records) statement(a *fragment.Association) (s fragment.Ref, property string, o fragment.Ref) {
	if len(a.Roles) != 2 {
		return "", "", ""
	}
	for _, form := range forms {
		first, second := &a.Roles[0], &a.Roles[1]
		if first.Type != form.subject {
			first, second = second, first
		}
		if first.Type != form.subject || second.Type != form.object || form.typ != "" && a.Type != form.typ {
			continue
		}
		if property = form.property; property == "" {
			if property = r.property(a.Type); !isFree(property) {
				break
			}
		}
		for _, ref := range []fragment.Ref{a.Type, first.Type, second.Type} {
			r.mentioned[ref] = true
		}
		return first.Player, property, second.Player
	}
	return "", "", ""
}

// Subject returns the topic that an association is a statement about, "" if it is no statement of RDF.
func Subject(a *fragment.Association) fragment.Ref {
	s, _, _ := NewRecords("", nil).statement(a)
	return s
}

// IsBlank reports whether a topic is a blank node.
func IsBlank(ref fragment.Ref) bool { return iri.BlankLabel(string(ref)) != "" }

// Resource makes the statements that have a resource as subject, and those of the blank nodes that these refer to, each
// node once (SDShare 2012, fragments of RDF). A topic with ref as another identifier is another resource. An existing
// topic has at least one statement, because a document without any stands for a deletion.
func (r *Records) Resource(src fragment.Source, ref fragment.Ref) error {
	seen := map[fragment.Ref]bool{ref: true}
	for queue := []fragment.Ref{ref}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		t, err := src.Topic(at)
		if err != nil {
			return err
		}
		if t == nil || t.TopicSI() != at {
			continue
		}
		written, err := r.about(t, fragment.PlayedBy(src, at), func(o fragment.Ref) {
			if IsBlank(o) && !seen[o] {
				seen[o] = true
				queue = append(queue, o)
			}
		})
		if err != nil {
			return err
		}
		if !written && at == ref {
			r.exists(ref)
		}
	}
	return r.err
}

// about makes the statements about a topic, passes the objects that it refers to, and reports whether it made any.
func (r *Records) about(t *fragment.Topic, played iter.Seq2[*fragment.Association, error],
	object func(fragment.Ref)) (written bool, err error) {
	return r.only(t.TopicSI(), func() error {
		if err := r.topic(t); err != nil {
			return err
		}
		for a, err := range played {
			if err != nil {
				return err
			}
			o, err := r.stated(a, t.TopicSI())
			if err != nil {
				return err
			}
			if o != "" {
				object(o)
			}
		}
		return nil
	})
}

// stated makes the statement that an association is, if it is one about ref, and returns its object.
func (r *Records) stated(a *fragment.Association, ref fragment.Ref) (fragment.Ref, error) {
	s, property, o := r.statement(a)
	if property == "" || s != ref {
		return "", nil
	}
	r.say(r.term(s), property, r.term(o))
	return o, r.err
}

// only drops all statements not about a resource while f runs, and reports whether f made any.
func (r *Records) only(ref fragment.Ref, f func() error) (written bool, err error) {
	all, subject := r.emit, r.term(ref)
	defer func() { r.emit = all }()
	r.emit = func(q rdf.Quad) error {
		if q.Subject != subject {
			return nil
		}
		written = true
		return all(q)
	}
	err = f()
	return written, err
}

// RefOf returns the topic that a resource is, as [Records] with Skolem makes it.
func RefOf(t rdf.Term) fragment.Ref {
	if iri.BlankLabel(t.Value) != "" {
		return fragment.Ref(t.Value)
	}
	return locatorOf(t.Value)
}
