package mapping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Builder makes a topic map of the statements of a graph. It is not safe for concurrent use.
type Builder struct {
	m       *tmdm.TopicMap
	base    tmdm.Locator
	limit   int64
	size    int64
	graphs  map[rdf.Term]bool
	waiting []rdf.Quad // statements that are understood only when all are there
	special special
}

// special are statements of our vocabulary, which say what others mean.
type special struct {
	nameTypes    map[string]bool // properties whose texts are names
	associations map[string]bool // blank nodes that are associations
	identified   map[string]bool // blank nodes with a subject locator or an item identifier
	lone         []rdf.Term
}

// NewBuilder returns a builder of a map. Blank nodes become topics below base. The memory of the statements has a
// limit in bytes, by estimate; 0: none.
func NewBuilder(base tmdm.Locator, limit int64) *Builder {
	return &Builder{m: tmdm.New(), base: base, limit: limit, graphs: map[rdf.Term]bool{}, special: special{
		nameTypes: map[string]bool{}, associations: map[string]bool{}, identified: map[string]bool{},
	}}
}

// perStatement is about what a statement takes in memory as part of a map, besides its text.
const perStatement = 700

// GraphsError says that a document has several graphs.
type GraphsError struct{ Names []string }

func (e *GraphsError) Error() string {
	return fmt.Sprintf("the document has several graphs, and a topic map is one: %s. Keep one of them in a file of its own", strings.Join(e.Names, ", "))
}

// Add takes a statement.
func (b *Builder) Add(q rdf.Quad) error {
	b.graphs[q.Graph] = true
	if b.size += perStatement + int64(len(q.Object.Value)); b.limit > 0 && b.size > b.limit {
		return fmt.Errorf("%w: the statements take more than %d bytes", xtm.ErrMemory, b.limit)
	}
	q.Graph = rdf.Term{}
	object := q.Object.Value
	switch p := q.Predicate.Value; {
	case p == rdf.Type && object == termNameType && q.Subject.Kind == rdf.IRI:
		b.special.nameTypes[q.Subject.Value] = true
	case p == rdf.Type && object == termAssociation && q.Subject.Kind == rdf.Blank:
		b.special.associations[q.Subject.Value] = true
	case p == rdf.Type && object == termTopic:
		b.special.lone = append(b.special.lone, q.Subject)
		return nil
	case (p == termSubjectLocator || p == termItemIdentifier) && q.Subject.Kind == rdf.Blank:
		b.special.identified[q.Subject.Value] = true
	}
	b.waiting = append(b.waiting, q)
	return nil
}

// Map returns the map of the statements that were added. The builder is of no use after that.
func (b *Builder) Map(ctx context.Context) (*tmdm.TopicMap, error) {
	if len(b.graphs) > 1 {
		var names []string
		for g := range b.graphs {
			names = append(names, nameOf(g))
		}
		slices.Sort(names)
		return nil, &GraphsError{names}
	}
	r := &reading{Builder: b, topics: map[rdf.Term]*tmdm.Topic{}, labels: labelsOf(b.waiting)}
	r.settle()
	for i, q := range b.waiting {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := r.say(q); err != nil {
			return nil, err
		}
	}
	r.associate()
	for _, t := range b.special.lone {
		_, known := r.topics[t]
		if topic := r.topic(t); known {
			topic.AddType(r.iri(termTopic))
		}
	}
	return b.m, b.m.Normalize(ctx)
}

func nameOf(g rdf.Term) string {
	switch g.Kind {
	case rdf.None:
		return "the default graph"
	case rdf.IRI:
		return "<" + g.Value + ">"
	}
	return "_:" + g.Value
}

// reading is the second look at the statements.
type reading struct {
	*Builder
	topics map[rdf.Term]*tmdm.Topic
	labels map[string]string
	echoes map[rdf.Quad]bool      // statements that repeat others
	nodes  map[string][]rdf.Quad  // the statements about nodes that are associations
	themes map[string]*tmdm.Topic // by language
}

// settle finds out which statements of our vocabulary mean what they say: others stay statements.
func (r *reading) settle() {
	r.echoes, r.nodes, r.themes = map[rdf.Quad]bool{}, map[string][]rdf.Quad{}, map[string]*tmdm.Topic{}
	all := make(map[rdf.Quad]bool, len(r.waiting))
	for _, q := range r.waiting {
		all[q] = true
		if q.Object.Kind == rdf.Blank {
			delete(r.special.associations, q.Object.Value) // an association is nobody's object
		}
	}
	for q := range all {
		echo, ok := echoOf(q)
		if ok && all[echo] {
			r.echoes[echo] = true
		}
	}
	for _, q := range r.waiting {
		if q.Subject.Kind == rdf.Blank && r.special.associations[q.Subject.Value] {
			r.nodes[q.Subject.Value] = append(r.nodes[q.Subject.Value], q)
		}
	}
	for node, said := range r.nodes {
		if !isAssociation(said) {
			delete(r.nodes, node)
		}
	}
}

// echoOf returns the statement that repeats one of our vocabulary for other readers of RDF.
func echoOf(q rdf.Quad) (echo rdf.Quad, ok bool) {
	echo = q
	switch q.Predicate.Value {
	case topicName:
		echo.Predicate.Value = rdfsLabel
	case termSubjectIdentifier:
		echo.Predicate.Value = sameAs
	default:
		return echo, false
	}
	return echo, true
}

// isAssociation reports whether the statements about a node are those of an association.
func isAssociation(said []rdf.Quad) bool {
	types, roles := 0, 0
	for _, q := range said {
		switch {
		case q.Object.Kind == rdf.Literal:
			return false
		case q.Predicate.Value == rdf.Type:
			if q.Object.Value != termAssociation {
				return false
			}
		case q.Predicate.Value == termAssociationType:
			types++
		default:
			roles++
		}
	}
	return types == 1 && roles > 0
}

func (r *reading) iri(s string) *tmdm.Topic { return r.topic(rdf.NewIRI(s)) }

// topic returns the topic of a resource.
func (r *reading) topic(t rdf.Term) *tmdm.Topic {
	if known, ok := r.topics[t]; ok {
		return known
	}
	var topic *tmdm.Topic
	switch {
	case t.Kind == rdf.IRI:
		topic = r.m.CreateTopicBySubjectIdentifier(locatorOf(t.Value))
	case r.special.identified[t.Value]:
		topic = r.m.CreateTopic()
	default:
		topic = r.m.CreateTopicBySubjectIdentifier(genid(r.base, r.labels[t.Value]))
	}
	r.topics[t] = topic
	return topic
}

// say makes a statement of the map. Associations that are nodes come later.
func (r *reading) say(q rdf.Quad) error {
	if r.echoes[q] || r.nodes[q.Subject.Value] != nil && q.Subject.Kind == rdf.Blank {
		return nil
	}
	p, o := q.Predicate.Value, q.Object
	subject := r.topic(q.Subject)
	switch {
	case o.Kind == rdf.Literal && r.isName(q):
		subject.AddName(o.Value, r.nameType(p), r.scope(o)...)
	case o.Kind == rdf.Literal:
		subject.AddOccurrence(o.Value, datatypeOf(o.Value, o.Datatype), r.iri(p), r.scope(o)...)
	case p == rdf.Type && o.Value == termNameType && q.Subject.Kind == rdf.IRI: // what it says is known
	case p == rdf.Type:
		subject.AddType(r.topic(o))
	case p == subClassOf:
		subject.AddSupertype(r.topic(o))
	case o.Kind == rdf.IRI && r.identifies(subject, p, o.Value):
	default:
		a := r.m.CreateAssociation(r.iri(p))
		a.AddRole(r.iri(roleSubject), subject)
		a.AddRole(r.iri(roleObject), r.topic(o))
	}
	return nil
}

// isName reports whether a literal is a name: a text without a datatype of a property that names things.
func (r *reading) isName(q rdf.Quad) bool {
	if q.Object.Datatype != rdf.String && q.Object.Language == "" {
		return false
	}
	if q.Predicate.Value == topicName {
		echo, _ := echoOf(q)
		return r.echoes[echo]
	}
	return labels[q.Predicate.Value] || r.special.nameTypes[q.Predicate.Value]
}

// nameType returns the type of a name, nil for the default one.
func (r *reading) nameType(property string) *tmdm.Topic {
	if property == topicName {
		return nil
	}
	return r.iri(property)
}

func (r *reading) scope(o rdf.Term) []*tmdm.Topic {
	if o.Language == "" {
		return nil
	}
	tag := strings.ToLower(o.Language)
	theme, ok := r.themes[tag]
	if !ok {
		theme = r.m.CreateTopicBySubjectIdentifier(languageNS + tmdm.Locator(tag))
		r.themes[tag] = theme
	}
	return []*tmdm.Topic{theme}
}

// identifies gives a topic an identifier, if that is what a statement says and nothing else has it.
func (r *reading) identifies(topic *tmdm.Topic, property, value string) bool {
	l := tmdm.Locator(value)
	if normal, err := tmdm.ParseLocator(value); err != nil || normal != l {
		return false
	}
	var err error
	switch property {
	case termSubjectIdentifier:
		err = topic.AddSubjectIdentifier(l)
	case termSubjectLocator:
		err = topic.AddSubjectLocator(l)
	case termItemIdentifier:
		err = tmdm.AddItemIdentifier(topic, l)
	default:
		return false
	}
	var taken *tmdm.IdentityError
	if errors.As(err, &taken) {
		if other, ok := taken.Existing.(*tmdm.Topic); ok {
			err = topic.Merge(other)
		}
	}
	return err == nil
}

// associate makes the associations that are nodes.
func (r *reading) associate() {
	for _, q := range r.waiting {
		said, ok := r.nodes[q.Subject.Value]
		if !ok || q.Subject.Kind != rdf.Blank {
			continue
		}
		delete(r.nodes, q.Subject.Value)
		at := slices.IndexFunc(said, func(q rdf.Quad) bool { return q.Predicate.Value == termAssociationType })
		a := r.m.CreateAssociation(r.topic(said[at].Object))
		for _, q := range said {
			if q.Predicate.Value != rdf.Type && q.Predicate.Value != termAssociationType {
				a.AddRole(r.iri(q.Predicate.Value), r.topic(q.Object))
			}
		}
	}
}
