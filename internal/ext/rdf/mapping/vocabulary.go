package mapping

import (
	"slices"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
)

// vocabulary holds the complete statements in TMShare's vocabulary. Incomplete ones are ordinary statements.
type vocabulary struct {
	spent        map[int]bool // statements, by number, that are not converted otherwise
	identities   []rdf.Quad
	identified   map[rdf.Quad]bool       // the same
	unnamed      map[rdf.Term]bool       // resources that are not identified as their IRIs or labels are
	echoed       map[rdf.Quad]bool       // names of the default type, which rdfs:label repeats
	described    map[rdf.Quad][]*details // statements with their descriptions by nodes
	associations []*association
	nameTypes    map[string]bool // properties whose texts are names
	lone         []rdf.Term      // topics without other statements
	self         *details        // of the map
}

// details are the properties that a node gives to an item.
type details struct {
	occurrence bool // it is no name
	datatype   string
	scope      []rdf.Term // without the language of its literal
	reifier    rdf.Term
	items      []tmdm.Locator
	variants   []*variant
}

func (d *details) empty() bool {
	return !d.occurrence && d.datatype == "" && len(d.scope) == 0 && d.reifier.Kind == rdf.None && len(d.items) == 0 &&
		len(d.variants) == 0
}

// datatypeOf returns the datatype of an item with a literal. d may be nil.
func (d *details) datatypeOf(l rdf.Term) string {
	if d != nil && d.datatype != "" {
		return d.datatype
	}
	return datatypeOf(l)
}

type variant struct {
	value rdf.Term
	details
}

type association struct {
	typ   rdf.Term
	roles []*role
	details
}

type role struct {
	typ, player rdf.Term
	details
}

// readVocabulary returns the complete ones of the statements with the numbers own.
func readVocabulary(all *statements, own []int) *vocabulary {
	v := &vocabulary{}
	if len(own) == 0 {
		return v
	}
	*v = vocabulary{
		spent: map[int]bool{}, identified: map[rdf.Quad]bool{}, unnamed: map[rdf.Term]bool{}, echoed: map[rdf.Quad]bool{},
		described: map[rdf.Quad][]*details{}, nameTypes: map[string]bool{},
	}
	nodes := nodesOf(all, own)
	there := map[rdf.Quad]int{} // statements that others are about, and where each is: -1 for nowhere
	for _, i := range own {
		if echo, ok := echoOf(all.at(i)); ok {
			there[all.at(i)], there[echo] = -1, -1
		}
	}
	statements := v.statements(nodes, there)
	for i, q := range all.each() {
		if _, wanted := there[q]; wanted {
			there[q] = i
		}
	}
	v.describe(nodes, statements, there)
	for _, i := range own {
		if !v.spent[i] {
			v.single(i, all.at(i), there)
		}
	}
	for i, q := range all.each() {
		if _, wanted := there[q]; wanted && v.isEcho(q) && v.described[q] == nil {
			v.spent[i] = true
		}
	}
	return v
}

// echoOf returns the statement that repeats one of our vocabulary for other readers of RDF.
func echoOf(q rdf.Quad) (echo rdf.Quad, ok bool) {
	echo = q
	switch {
	case q.Predicate.Value == topicName && isText(q.Object):
		echo.Predicate.Value = rdfsLabel
	case q.Predicate.Value == termSubjectIdentifier && q.Subject != q.Object:
		echo.Predicate.Value = sameAs
	default:
		return echo, false
	}
	return echo, true
}

// isEcho reports whether a statement repeats another one.
func (v *vocabulary) isEcho(q rdf.Quad) bool {
	echo := q
	switch q.Predicate.Value {
	case rdfsLabel:
		echo.Predicate.Value = topicName
		return v.echoed[echo]
	case sameAs:
		echo.Predicate.Value = termSubjectIdentifier
		return v.identified[echo]
	}
	return false
}

// single reads a statement of our vocabulary that is no part of a node.
func (v *vocabulary) single(i int, q rdf.Quad, there map[rdf.Quad]int) {
	switch p := q.Predicate.Value; {
	case p == topicName:
		if echo, ok := echoOf(q); ok && there[echo] >= 0 {
			v.echoed[q] = true
		}
		return
	case p == sameAs:
		if q.Object.Kind == rdf.Literal {
			return
		}
	case p == termSubjectIdentifier, p == termSubjectLocator, p == termItemIdentifier:
		if q.Object.Kind != rdf.IRI {
			return
		}
		if p != termSubjectIdentifier && (q.Subject == q.Object || q.Subject.Kind == rdf.Blank) {
			v.unnamed[q.Subject] = true
		}
	case p == rdf.Type && q.Object == rdf.NewIRI(termNameType) && q.Subject.Kind == rdf.IRI:
		v.nameTypes[q.Subject.Value], v.spent[i] = true, true
		return
	case p == rdf.Type && q.Object == rdf.NewIRI(termTopic):
		v.lone = append(v.lone, q.Subject)
		v.spent[i] = true
		return
	default:
		return
	}
	v.identities = append(v.identities, q)
	v.identified[q], v.spent[i] = true, true
}

// described is a node that describes a statement.
type described struct {
	subject rdf.Quad
	*details
	spent []int
}

// statements reads the nodes that describe statements, and records these statements.
func (v *vocabulary) statements(nodes map[string]*node, there map[rdf.Quad]int) (all []described) {
	for _, n := range sortedNodes(nodes) {
		if !slices.Contains(n.values[rdf.Type], rdf.NewIRI(termStatement)) {
			continue
		}
		others, _ := n.types(termStatement)
		d, ok := n.details()
		if slices.Equal(others, []rdf.Term{rdf.NewIRI(termOccurrence)}) {
			d.occurrence, others = true, nil
		}
		s, hasSubject := n.resourceOf(subject)
		p, hasProperty := n.resourceOf(predicate)
		o, hasObject := n.take(object)
		variants, spent, complete := parts(nodes, n.values[termVariant], (*node).variantNode)
		delete(n.values, termVariant)
		if !ok || !hasSubject || !hasProperty || !hasObject || !complete || p.Kind != rdf.IRI || len(others) > 0 ||
			n.uses > 0 || len(n.values) > 0 {
			continue
		}
		d.variants = variants
		q := rdf.Quad{Subject: s, Predicate: p, Object: o}
		there[q] = -1
		if echo, ok := echoOf(q); ok {
			there[echo] = -1
		}
		all = append(all, described{q, &d, append(spent, n.statements...)})
	}
	return all
}

// sortedNodes returns the nodes in the order of their first statements.
func sortedNodes(nodes map[string]*node) []*node {
	all := make([]*node, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *node) int { return a.statements[0] - b.statements[0] })
	return all
}

// describe reads the nodes that describe items: existing statements, associations and the map.
func (v *vocabulary) describe(nodes map[string]*node, statements []described, there map[rdf.Quad]int) {
	count := map[rdf.Quad]int{}
	for _, d := range statements {
		count[d.subject]++
	}
	for _, d := range statements {
		quad := d.subject
		quad.Predicate.Value = topicName
		at, known := there[quad]
		echo := d.subject.Predicate.Value == rdfsLabel && known && at >= 0
		if there[d.subject] >= 0 && (!d.empty() || count[d.subject] > 1 || echo) {
			v.described[d.subject] = append(v.described[d.subject], d.details)
			v.spend(d.spent)
		}
	}
	for _, n := range sortedNodes(nodes) {
		types := n.values[rdf.Type]
		switch {
		case slices.Contains(types, rdf.NewIRI(termAssociation)):
			if a, spent, ok := n.association(nodes); ok {
				v.associations = append(v.associations, a)
				v.spend(spent)
			}
		case slices.Contains(types, rdf.NewIRI(termTopicMap)) && v.self == nil:
			others, _ := n.types(termTopicMap)
			if d, ok := n.details(); ok && !d.empty() && n.uses == 0 && len(others) == 0 && len(n.values) == 0 {
				v.self = &d
				v.spend(n.statements)
			}
		}
	}
}

func (v *vocabulary) spend(numbers []int) {
	for _, i := range numbers {
		v.spent[i] = true
	}
}
