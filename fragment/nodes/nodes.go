// Package nodes describes topics without a name or a readable identifier, such as blank nodes of RDF, by their
// statements. It shows lists by their members, labels of SKOS-XL and values by their texts, and class expressions of
// OWL in Manchester syntax. Other nodes are shown with their statements, one within another.
package nodes

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/words"
)

// Node is the description of a topic without a name.
type Node struct {
	Parts    []Value        // members of a list; else values and the words between them
	List     bool           // the parts are members
	Types    []fragment.Ref // types that the parts do not imply; so below
	Rows     []Row
	compound bool // it stands in brackets within another one
}

// Row holds the values of one property of a topic.
type Row struct {
	Property fragment.Ref
	Values   []Value
}

// Value is one of three things.
type Value struct {
	Text string
	Ref  fragment.Ref // a topic that has a name, or an identifier that can be read
	Node *Node
}

// Statements are the statements of a map about a topic. The values of its rows are texts and references.
type Statements struct {
	Title string // "": it has no name; else the rest may be missing
	Types []fragment.Ref
	Rows  []Row // by property, ascending
}

// Source reads the statements of a map.
type Source interface {
	// Statements returns the statements about the topic with the subject identifier; nil if there is no such topic.
	Statements(si fragment.Ref) (*Statements, error)
}

// The limits of reading one node.
const (
	deepest     = 8   // nodes within nodes
	mostNodes   = 200 // all together
	mostMembers = 100 // of a list
	mostRead    = 100 // associations of a node
)

// More replaces parts that are left out because of their number or a cycle.
const More = "…"

// Reader reads nodes of a map, and caches the titles of its topics. It is not safe for concurrent use.
type Reader struct {
	source Source
	known  map[fragment.Ref]*Statements
	left   int // number of nodes that may still be read for the requested one
}

// NewReader returns a reader of a source.
func NewReader(source Source) *Reader {
	return &Reader{source: source, known: map[fragment.Ref]*Statements{}}
}

func (r *Reader) about(ref fragment.Ref) (*Statements, error) {
	found, known := r.known[ref]
	if known {
		return found, nil
	}
	found, err := r.source.Statements(ref)
	if err == nil {
		r.known[ref] = found
	}
	return found, err
}

// Node returns the description of a topic; nil if it has a name or a readable identifier, or does not exist.
func (r *Reader) Node(ref fragment.Ref) (*Node, error) {
	r.left = mostNodes
	v, err := r.value(ref, nil)
	return v.Node, err
}

// Title returns the title of a topic: its name, its description, or its identifier.
func (r *Reader) Title(ref fragment.Ref) (string, error) {
	n, err := r.Node(ref)
	if err != nil {
		return "", err
	}
	if n != nil {
		return r.Text(n)
	}
	about, err := r.about(ref)
	if err == nil && about != nil && about.Title != "" {
		return about.Title, nil
	}
	return words.Short(string(ref)), err
}

// value returns the value of a reference. path has the nodes above it.
func (r *Reader) value(ref fragment.Ref, path []fragment.Ref) (Value, error) {
	if !words.IsOpaque(string(ref)) {
		return Value{Ref: ref}, nil
	}
	if r.left == 0 || len(path) == deepest || slices.Contains(path, ref) {
		return Value{Text: More}, nil
	}
	r.left--
	about, err := r.about(ref)
	switch {
	case err != nil:
		return Value{}, err
	case about == nil:
		return Value{Text: words.Unnamed}, nil
	case about.Title != "":
		return Value{Ref: ref}, nil
	}
	n, err := r.node(about, append(path[:len(path):len(path)], ref))
	return Value{Node: n}, err
}

// node makes a node of the statements about it.
func (r *Reader) node(about *Statements, path []fragment.Ref) (*Node, error) {
	rows := slices.Clone(about.Rows)
	n := &Node{Types: about.Types}
	var err error
	switch {
	case has(rows, rdf+"first"):
		n.List = true
		rows, err = r.list(n, rows, path)
	case has(rows, owl+"onProperty"):
		rows, err = r.restriction(n, rows, path)
	default:
		rows, err = r.form(n, rows, path)
	}
	if err != nil {
		return nil, err
	}
	if len(n.Parts) > 0 {
		n.Types = slices.DeleteFunc(slices.Clone(n.Types), func(typ fragment.Ref) bool { return obvious[typ] })
	}
	for _, row := range rows {
		values := make([]Value, len(row.Values))
		for i, v := range row.Values {
			if values[i], err = r.inner(v, path); err != nil {
				return nil, err
			}
		}
		n.Rows = append(n.Rows, Row{row.Property, values})
	}
	return n, nil
}

// inner reads a value of a row.
func (r *Reader) inner(v Value, path []fragment.Ref) (Value, error) {
	if v.Ref == "" {
		return v, nil
	}
	return r.value(v.Ref, path)
}

func has(rows []Row, property fragment.Ref) bool {
	return slices.ContainsFunc(rows, func(row Row) bool { return row.Property == property })
}

// take takes the only value of a property from rows.
func take(rows []Row, property fragment.Ref) (v Value, rest []Row, ok bool) {
	at := slices.IndexFunc(rows, func(row Row) bool { return row.Property == property && len(row.Values) == 1 })
	if at < 0 {
		return v, rows, false
	}
	return rows[at].Values[0], slices.Delete(slices.Clone(rows), at, at+1), true
}

// list reads the members of a list (RDF Schema §5.2, RDF Collections).
func (r *Reader) list(n *Node, rows []Row, path []fragment.Ref) (left []Row, err error) {
	seen := map[fragment.Ref]bool{path[len(path)-1]: true}
	for {
		first, others, ok := take(rows, rdf+"first")
		rest, others, more := take(others, rdf+"rest")
		if !ok || len(n.Parts) == mostMembers {
			n.Parts = append(n.Parts, Value{Text: More})
			return left, nil
		}
		member, err := r.inner(first, path)
		if err != nil {
			return nil, err
		}
		n.Parts = append(n.Parts, member)
		left = append(left, others...)
		if !more || rest.Ref == rdf+"nil" {
			return left, nil
		}
		item, err := r.about(rest.Ref)
		if err != nil {
			return nil, err
		}
		rows = nil
		if item != nil && !seen[rest.Ref] {
			rows, seen[rest.Ref] = item.Rows, true
		}
	}
}

// restriction reads a restriction of a property.
func (r *Reader) restriction(n *Node, all []Row, path []fragment.Ref) ([]Row, error) {
	property, rows, ok := take(all, owl+"onProperty")
	if !ok {
		return all, nil
	}
	for _, kind := range restrictions {
		v, rows, ok := take(rows, kind.property)
		if !ok {
			continue
		}
		parts := []Value{property, {Text: kind.words}}
		if kind.property != owl+"hasSelf" {
			parts = append(parts, v)
		}
		for _, qualified := range []fragment.Ref{owl + "onClass", owl + "onDataRange"} {
			if restricted, left, ok := take(rows, qualified); ok {
				parts, rows = append(parts, Value{Text: " "}, restricted), left
			}
		}
		return rows, r.express(n, parts, path)
	}
	return all, nil
}

// form reads a node whose form one property determines.
func (r *Reader) form(n *Node, rows []Row, path []fragment.Ref) ([]Row, error) {
	for _, f := range forms {
		v, left, ok := take(rows, f.property)
		if !ok {
			continue
		}
		if f.between == "" {
			n.compound = f.before != ""
			return left, r.parts(n, []Value{{Text: f.before}, v}, path)
		}
		inner, err := r.inner(v, path)
		if err != nil {
			return nil, err
		}
		members := []Value{inner}
		if inner.Node != nil && inner.Node.List {
			members = inner.Node.Parts
		}
		n.add(Value{Text: f.before})
		for i, member := range members {
			if i > 0 {
				n.add(Value{Text: f.between})
			}
			n.operand(member)
		}
		n.add(Value{Text: f.after})
		n.compound = f.before == "" && len(members) > 1
		return left, nil
	}
	if v, left, ok := take(rows, owl+"onDatatype"); ok {
		if facets, left, ok := take(left, owl+"withRestrictions"); ok {
			values, err := r.inner(facets, path)
			if err != nil {
				return nil, err
			}
			n.Parts = []Value{v, {Text: "["}}
			if values.Node != nil && values.Node.List {
				for i, facet := range values.Node.Parts {
					if i > 0 {
						n.add(Value{Text: ", "})
					}
					n.add(facet)
				}
			}
			n.add(Value{Text: "]"})
			return left, nil
		}
	}
	return rows, nil
}

func (r *Reader) express(n *Node, parts []Value, path []fragment.Ref) error {
	n.compound = true
	return r.parts(n, parts, path)
}

// parts adds values to the parts of a node. A compound one stands in brackets.
func (r *Reader) parts(n *Node, parts []Value, path []fragment.Ref) error {
	for _, part := range parts {
		v, err := r.inner(part, path)
		if err != nil {
			return err
		}
		n.operand(v)
	}
	return nil
}

func (n *Node) operand(v Value) {
	if v.Node != nil && v.Node.compound {
		n.add(Value{Text: "("}, v, Value{Text: ")"})
		return
	}
	n.add(v)
}

func (n *Node) add(values ...Value) {
	for _, v := range values {
		if v != (Value{}) {
			n.Parts = append(n.Parts, v)
		}
	}
}

// maxText is the number of characters of a node in a line.
const maxText = 200

// Text returns the description of a node in a line.
func (r *Reader) Text(n *Node) (string, error) {
	var b strings.Builder
	if err := r.write(&b, n); err != nil {
		return "", err
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	characters := 0
	for i := range text {
		if characters++; characters > maxText {
			return text[:i] + More, nil
		}
	}
	return text, nil
}

func (r *Reader) write(b *strings.Builder, n *Node) error {
	if len(n.Parts)+len(n.Types)+len(n.Rows) == 0 {
		b.WriteString(words.Unnamed)
	}
	between := ""
	if n.List {
		between = ", "
	}
	for i, v := range n.Parts {
		if i > 0 {
			b.WriteString(between)
		}
		if err := r.writeValue(b, v); err != nil {
			return err
		}
	}
	if len(n.Parts) > 0 && len(n.Types)+len(n.Rows) > 0 {
		b.WriteString(" ")
	}
	for i, typ := range n.Types {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := r.writeValue(b, Value{Ref: typ}); err != nil {
			return err
		}
	}
	if len(n.Rows) == 0 {
		return nil
	}
	b.WriteString(" [")
	for i, row := range n.Rows {
		if i > 0 {
			b.WriteString("; ")
		}
		if err := r.writeValue(b, Value{Ref: row.Property}); err != nil {
			return err
		}
		for i, v := range row.Values {
			b.WriteString([]string{": ", ", "}[min(i, 1)])
			if err := r.writeValue(b, v); err != nil {
				return err
			}
		}
	}
	b.WriteString("]")
	return nil
}

func (r *Reader) writeValue(b *strings.Builder, v Value) error {
	switch {
	case b.Len() > 4*maxText: // more would be cut
		return nil
	case v.Node != nil && v.Node.List:
		b.WriteString("(")
		defer b.WriteString(")")
		return r.write(b, v.Node)
	case v.Node != nil:
		return r.write(b, v.Node)
	case v.Ref == "":
		b.WriteString(v.Text)
		return nil
	}
	about, err := r.about(v.Ref)
	if err == nil && about != nil && about.Title != "" {
		b.WriteString(about.Title)
	} else {
		b.WriteString(words.Short(string(v.Ref)))
	}
	return err
}

// SourceOf returns a source of the records of maps: of the first state that has a topic. Titles are in the first
// available of some languages.
func SourceOf(languages []string, states ...fragment.Lookup) Source {
	all := make(ofStates, len(states))
	for i, state := range states {
		all[i] = &fragment.Names{In: state, Languages: languages}
	}
	return all
}

type ofStates []*fragment.Names

// Statements implements [Source].
func (states ofStates) Statements(si fragment.Ref) (*Statements, error) {
	for _, names := range states {
		if found, err := statements(names, si); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func statements(names *fragment.Names, si fragment.Ref) (*Statements, error) {
	t, err := names.In.Topic(si)
	if t == nil || err != nil {
		return nil, err
	}
	all, opaque := &Statements{}, words.IsOpaque(string(si))
	isText := func(o fragment.Occurrence) bool { return o.Type == skosXL+"literalForm" }
	if !opaque || !slices.ContainsFunc(t.Occurrences, isText) { // the row of a label has more than its text
		if all.Title, _, _, err = names.Best(t); err != nil {
			return nil, err
		}
	}
	if all.Title != "" || !opaque {
		return all, nil
	}
	for i := range t.Names {
		all.add(t.Names[i].Type, Value{Text: t.Names[i].Value})
	}
	for i := range t.Occurrences {
		all.add(t.Occurrences[i].Type, Value{Text: t.Occurrences[i].Value})
	}
	self, n := t.TopicSI(), 0
	for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
		for a, err := range names.In.AssociationsOf(self, part) {
			if err != nil {
				return nil, err
			}
			if n++; n > mostRead {
				break
			}
			all.associate(self, a)
		}
	}
	slices.SortStableFunc(all.Rows, func(a, b Row) int {
		return strings.Compare(string(a.Property), string(b.Property))
	})
	return all, nil
}

func (s *Statements) add(property fragment.Ref, v Value) {
	at := slices.IndexFunc(s.Rows, func(row Row) bool { return row.Property == property })
	if at < 0 {
		at, s.Rows = len(s.Rows), append(s.Rows, Row{Property: property})
	}
	s.Rows[at].Values = append(s.Rows[at].Values, v)
}

// associate adds an association as a statement of a topic, unless the topic is its object.
func (s *Statements) associate(self fragment.Ref, a *fragment.Association) {
	if class, instance, ok := a.TypeInstance(); ok {
		if instance == self {
			s.Types = append(s.Types, class)
		}
		return
	}
	own := slices.IndexFunc(a.Roles, func(r fragment.Role) bool { return r.Player == self })
	if own < 0 || a.Roles[own].Type == rdf+"object" || a.Roles[own].Type == model+"supertype" {
		return
	}
	for i, other := range a.Roles {
		switch {
		case i == own:
		case other.Type == model+"supertype":
			s.add(other.Type, Value{Ref: other.Player})
		default:
			s.add(a.Type, Value{Ref: other.Player})
		}
	}
}
