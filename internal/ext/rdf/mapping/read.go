package mapping

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
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
	options Options
	labels  map[string]bool
	graphs  *Graphs
	waiting statements // statements that are understood only when all are there
	own     []int      // those with our own vocabulary
}

// NewBuilder returns a builder of a map. Blank nodes become topics below base. limit is the maximum memory of the
// statements, as an estimate in bytes; 0: none.
func NewBuilder(base tmdm.Locator, limit int64, o Options) *Builder {
	return &Builder{m: tmdm.New(), base: base, limit: limit, options: o, labels: o.labels(), graphs: NewGraphs(o.Graph)}
}

// perStatement is the approximate memory of a statement in a map, in bytes without its text.
const perStatement = 700

// Add takes a statement, if it is in the graph that is read.
func (b *Builder) Add(q rdf.Quad) error {
	if !b.graphs.Take(q.Graph) {
		return nil
	}
	if b.size += perStatement + int64(len(q.Object.Value)); b.limit > 0 && b.size > b.limit {
		return fmt.Errorf("%w: the statements take more than %d bytes", xtm.ErrMemory, b.limit)
	}
	if b.isOwn(q) {
		b.own = append(b.own, len(b.waiting.all))
	}
	b.waiting.add(q)
	return nil
}

// isOwn reports whether a statement may be about another statement or about identity.
func (b *Builder) isOwn(q rdf.Quad) bool {
	switch p := q.Predicate.Value; p {
	case rdf.Type:
		return strings.HasPrefix(q.Object.Value, NS)
	case topicName:
		return true
	case sameAs:
		return b.options.MergeSameAs
	default:
		return strings.HasPrefix(p, NS)
	}
}

// Map returns the map of the added statements. The builder cannot be used after that. The error is a *[GraphsError] if
// a document has several graphs and none was chosen.
func (b *Builder) Map(ctx context.Context) (*tmdm.TopicMap, error) {
	if err := b.graphs.Check(); err != nil {
		return nil, err
	}
	r := &reading{
		Builder: b, vocabulary: readVocabulary(&b.waiting, b.own), recent: map[string]*tmdm.Topic{},
		unnamedIRIs: map[string]*tmdm.Topic{}, blanks: map[string]*tmdm.Topic{},
		nodes: labelsOf(&b.waiting), themes: map[string]*tmdm.Topic{}, isNameType: map[string]bool{},
		mentioned: map[rdf.Term]bool{},
	}
	for _, t := range r.lone {
		r.mentioned[t] = false
	}
	r.identify()
	for i, q := range b.waiting.each() {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !r.spent[i] {
			r.statement(q)
		}
	}
	r.associate()
	if err := r.settle(); err != nil {
		return nil, err
	}
	b.waiting, r.nodes = statements{}, nil
	return b.m, b.m.Normalize(ctx)
}

// GraphName is [Graphs.Name] of the document.
func (b *Builder) GraphName() string { return b.graphs.Name() }

// reading is the second look at the statements.
type reading struct {
	*Builder
	*vocabulary
	recent      map[string]*tmdm.Topic // those of IRIs that were looked for last; the map finds them all
	unnamedIRIs map[string]*tmdm.Topic // those of IRIs that do not identify them
	blanks      map[string]*tmdm.Topic
	nodes       map[string]string      // the labels of blank nodes that stay
	themes      map[string]*tmdm.Topic // by language
	isNameType  map[string]bool        // properties declared as types of names in TMShare's vocabulary
	mentioned   map[rdf.Term]bool      // topics without statements that a statement mentions
	open        []detailed
}

// detailed is an item with further properties to be set when all topics exist.
type detailed struct {
	item tmdm.Reifiable
	*details
}

func (r *reading) iri(s string) *tmdm.Topic { return r.topic(rdf.NewIRI(s)) }

// property returns the topic of a property. No property is a blank node, but one may be named for the topic of one.
func (r *reading) property(s string) *tmdm.Topic {
	if iri.BlankLabel(s) != "" {
		return r.m.CreateTopicBySubjectIdentifier(tmdm.Locator(s))
	}
	return r.iri(s)
}

// maxRecent is the number of topics in a cache by IRI.
const maxRecent = 4096

// topic returns the topic of a resource. Those of IRIs are not kept here: the map finds them by their subject
// identifiers.
func (r *reading) topic(t rdf.Term) *tmdm.Topic {
	known, named := r.recent, false
	switch {
	case t.Kind == rdf.Blank:
		known = r.blanks
	case r.unnamed[t], strings.HasPrefix(t.Value, unnamedNS):
		known = r.unnamedIRIs
	default:
		named = true
	}
	topic, ok := known[t.Value]
	if ok {
		return topic
	}
	if _, lone := r.mentioned[t]; lone {
		r.mentioned[t] = true
	}
	switch {
	case named:
		topic = r.m.CreateTopicBySubjectIdentifier(locatorOf(t.Value))
	case t.Kind == rdf.IRI || r.unnamed[t]:
		topic = r.m.CreateTopic()
	default:
		topic = r.m.CreateTopicBySubjectIdentifier(genid(r.base, r.nodes[t.Value]))
	}
	if named && len(known) == maxRecent {
		clear(known)
	}
	known[t.Value] = topic
	return topic
}

// identify gives topics their further identifiers. That merges topics.
func (r *reading) identify() {
	for _, q := range r.identities {
		topic := r.topic(q.Subject)
		if q.Predicate.Value == sameAs {
			_ = topic.Merge(r.topic(q.Object)) // cannot fail: nothing is reified yet
			dropGenids(topic)
			continue
		}
		l := locatorOf(q.Object.Value)
		err := addIdentifier(topic, q.Predicate.Value, l)
		if taken := (*tmdm.IdentityError)(nil); errors.As(err, &taken) {
			_ = topic.Merge(taken.Existing.(*tmdm.Topic)) // cannot fail: there are only topics yet
			_ = addIdentifier(topic, q.Predicate.Value, l)
		}
		dropGenids(topic)
	}
}

// addIdentifier adds an identifier to a topic, by a property of TMShare's vocabulary.
func addIdentifier(t *tmdm.Topic, property string, l tmdm.Locator) error {
	switch property {
	case termSubjectIdentifier:
		return t.AddSubjectIdentifier(l)
	case termSubjectLocator:
		return t.AddSubjectLocator(l)
	}
	return tmdm.AddItemIdentifier(t, l)
}

// dropGenids removes the subject identifiers of blank nodes from a topic that has others.
func dropGenids(t *tmdm.Topic) {
	all := slices.DeleteFunc(slices.Clone(t.SubjectIdentifiers()), func(l tmdm.Locator) bool {
		return iri.BlankLabel(string(l)) == ""
	})
	if len(all) < len(t.SubjectIdentifiers()) {
		t.RemoveSubjectIdentifier(all...)
	}
}

// statement makes the items of a statement: one, or one for each node that describes it.
func (r *reading) statement(q rdf.Quad) {
	described, ok := r.described[q]
	if !ok {
		r.item(q, nil)
		return
	}
	r.described[q] = nil // the statement may be there twice
	for _, d := range described {
		item := r.item(q, d)
		r.open = append(r.open, detailed{item, d})
		name, ok := item.(*tmdm.TopicName)
		if !ok {
			continue
		}
		for _, v := range d.variants {
			variant := name.AddVariant(v.value.Value, v.datatypeOf(v.value), r.topics(v.scope)...)
			r.open = append(r.open, detailed{variant, &v.details})
		}
	}
}

// item makes an item of a statement. d holds the description by a node; nil if there is none.
func (r *reading) item(q rdf.Quad, d *details) tmdm.Reifiable {
	p, o, topic := q.Predicate.Value, q.Object, r.topic(q.Subject)
	if o.Kind == rdf.Literal {
		themes := r.language(o)
		if d != nil {
			themes = append(themes, r.topics(d.scope)...)
		}
		if (d == nil || !d.occurrence) && r.isName(q) {
			return topic.AddName(o.Value, r.nameType(p), themes...)
		}
		return topic.AddOccurrence(o.Value, d.datatypeOf(o), r.property(p), themes...)
	}
	var a *tmdm.Association
	switch p {
	case rdf.Type:
		a = topic.AddType(r.topic(o))
	case subClassOf:
		a = topic.AddSupertype(r.topic(o))
	default:
		a = r.m.CreateAssociation(r.property(p))
		a.AddRole(r.iri(subject), topic)
		a.AddRole(r.iri(object), r.topic(o))
	}
	if d != nil {
		a.SetScope(r.topics(d.scope)...)
	}
	return a
}

// isName reports whether a literal is a name: a text without a datatype of a property that names things.
func (r *reading) isName(q rdf.Quad) bool {
	p := q.Predicate.Value
	switch {
	case !isText(q.Object):
		return false
	case p == topicName:
		return r.echoed[q]
	case r.labels[p]:
		return true
	case r.nameTypes[p]:
		r.isNameType[p] = true
		return true
	}
	return false
}

// nameType returns the type of a name, nil for the default one.
func (r *reading) nameType(property string) *tmdm.Topic {
	if property == topicName {
		return nil
	}
	return r.property(property)
}

// language returns the theme that is the language of a literal.
func (r *reading) language(o rdf.Term) []*tmdm.Topic {
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

func (r *reading) topics(all []rdf.Term) []*tmdm.Topic {
	var topics []*tmdm.Topic
	for _, t := range all {
		topics = append(topics, r.topic(t))
	}
	return topics
}

// associate makes the associations that are nodes.
func (r *reading) associate() {
	for _, n := range r.associations {
		a := r.m.CreateAssociation(r.topic(n.typ), r.topics(n.scope)...)
		r.open = append(r.open, detailed{a, &n.details})
		for _, role := range n.roles {
			r.open = append(r.open, detailed{a.AddRole(r.topic(role.typ), r.topic(role.player)), &role.details})
		}
	}
}

// settle completes the map: reifiers and identifiers of items, and topics without statements.
func (r *reading) settle() error {
	if r.self != nil {
		r.open = append(r.open, detailed{r.m, r.self})
	}
	for _, d := range r.open {
		if d.reifier.Kind != rdf.None {
			if err := tmdm.SetReifier(d.item, r.topic(d.reifier)); err != nil {
				return fmt.Errorf("what %s says: %w; let it be the reifier of one statement only", d.reifier.Value, err)
			}
		}
		for _, l := range d.items {
			if err := tmdm.AddItemIdentifier(d.item, l); err != nil {
				return fmt.Errorf("what has %s: %w; let it be the item identifier of one thing only", l, err)
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(r.nameTypes)) {
		if !r.isNameType[p] {
			r.iri(p).AddType(r.iri(termNameType))
		}
	}
	r.settleLone()
	return nil
}

// settleLone reads the statements that topics exist. If other statements make the topic, such a statement becomes an
// item, and also if the mapping of those requires it.
func (r *reading) settleLone() {
	var bare []rdf.Term
	for _, t := range r.lone {
		if !r.mentioned[t] {
			bare = append(bare, t)
			continue
		}
		r.topic(t).AddType(r.iri(termTopic))
	}
	for before := -1; before != len(bare) && !r.options.Fragment; { // a type needs topics too
		before = len(bare)
		bare = slices.DeleteFunc(bare, func(t rdf.Term) bool {
			known := r.m.TopicBySubjectIdentifier(locatorOf(t.Value))
			needed := t.Kind == rdf.IRI && known != nil && servesMapping(known)
			if needed {
				known.AddType(r.iri(termTopic))
			}
			return needed
		})
	}
	for _, t := range bare {
		r.topic(t)
	}
}
