package mapdiff

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// Statement is one statement of a map about a topic.
type Statement struct {
	Kind  Kind   `json:"kind"`
	Text  string `json:"text"` // in words, the kind included
	Parts []Part `json:"-"`    // the same in parts
}

// part is a statement for comparison. Marks in the text separate its parts.
type part struct {
	kind Kind
	text string
}

// Kind is a kind of statement.
type Kind string

// The kinds of statements.
const (
	SubjectIdentifier Kind = "subjectIdentifier"
	SubjectLocator    Kind = "subjectLocator"
	Type              Kind = "type"
	Name              Kind = "name"
	Variant           Kind = "variant"
	Occurrence        Kind = "occurrence"
	Association       Kind = "association"
	Reifier           Kind = "reifier" // of the topic map
)

// writer puts statements into words. Its names of topics depend on the purpose: comparison, or display.
type writer struct {
	call func(*tmdm.Topic) string
	base tmdm.Locator // of shortened identifiers

	// large caches associations with many roles, which are not described in full for each of their players; nil for
	// display.
	large map[*tmdm.Association]string
}

// manyRoles is the number of roles up to which an association is described in full.
const manyRoles = 16

// topic returns all statements about t: identifiers, names, occurrences, types, and the associations in which it plays.
// Type-instance associations belong to the instance. The order does not depend on names of topics.
func (w writer) topic(t *tmdm.Topic) []part {
	var list []part
	add := func(k Kind, format string, args ...any) {
		list = append(list, part{k, fmt.Sprintf(format, args...)})
	}
	for _, l := range t.SubjectIdentifiers() {
		add(SubjectIdentifier, "subject identifier %s", marked(Address, string(l)))
	}
	for _, l := range t.SubjectLocators() {
		add(SubjectLocator, "subject locator %s", marked(Address, string(l)))
	}
	for _, n := range t.Names() {
		name := w.name(n)
		add(Name, "%s", name)
		for _, v := range n.Variants() {
			add(Variant, "variant %s%s%s%s of %s", quoted(v.Value()), datatype(v.Datatype()), w.scope(v), w.reified(v), name)
		}
	}
	for _, o := range t.Occurrences() {
		add(Occurrence, "occurrence %s%s of type %s%s%s", quoted(o.Value()), datatype(o.Datatype()), w.call(o.Type()),
			w.scope(o), w.reified(o))
	}
	var inLarge map[*tmdm.Association][]string // the parts of t in those
	for _, r := range t.RolesPlayed() {
		a := r.Association()
		if len(a.Roles()) > manyRoles {
			if inLarge == nil {
				inLarge = map[*tmdm.Association][]string{}
			}
			inLarge[a] = append(inLarge[a], w.role(r))
			continue
		}
		if !isFirst(r) {
			continue
		}
		if class, instance, ok := a.TypeInstance(); !ok {
			add(Association, "%s", w.association(a))
		} else if instance == t {
			add(Type, "instance of %s", w.call(class))
		}
	}
	for _, r := range t.RolesPlayed() { // in this order, each once
		if roles, ok := inLarge[r.Association()]; ok {
			slices.Sort(roles)
			add(Association, "%s: %s", w.summary(r.Association()), strings.Join(roles, ", "))
			delete(inLarge, r.Association())
		}
	}
	return list
}

// summary identifies an association with many roles.
func (w writer) summary(a *tmdm.Association) string {
	if w.large == nil {
		return fmt.Sprintf("association of type %s with %d roles%s%s", w.call(a.Type()), len(a.Roles()), w.scope(a),
			w.reified(a))
	}
	known, ok := w.large[a]
	if !ok {
		known = fmt.Sprintf("%x", sha256.Sum256([]byte(w.association(a))))
		w.large[a] = known
	}
	return known
}

// topicMap returns the statements about no topic: the reifier of the map, and associations without roles.
func (w writer) topicMap(tm *tmdm.TopicMap) []part {
	var list []part
	if r := tm.Reifier(); r != nil {
		list = append(list, part{Reifier, "the topic map is reified by " + w.call(r)})
	}
	for a := range tm.Associations() {
		if len(a.Roles()) == 0 {
			list = append(list, part{Association, w.association(a)})
		}
	}
	return list
}

// reifies returns the description of the item that t reifies, or "".
func (w writer) reifies(t *tmdm.Topic) string {
	switch c := t.Reified().(type) {
	case *tmdm.TopicMap:
		return "reifies the topic map"
	case *tmdm.TopicName:
		return "reifies " + w.name(c) + " of " + w.call(c.Topic())
	case *tmdm.Variant:
		return fmt.Sprintf("reifies %s, variant of %s of %s", quoted(c.Value()), w.name(c.Name()), w.call(c.Name().Topic()))
	case *tmdm.Occurrence:
		return fmt.Sprintf("reifies occurrence %s of type %s of %s", quoted(c.Value()), w.call(c.Type()), w.call(c.Topic()))
	case *tmdm.Association:
		return "reifies " + w.association(c)
	case *tmdm.AssociationRole:
		return "reifies the role of " + w.call(c.Player()) + " in " + w.association(c.Association())
	}
	return ""
}

func (w writer) name(n *tmdm.TopicName) string {
	typ := ""
	if !slices.Contains(n.Type().SubjectIdentifiers(), tmdm.PSIDefaultNameType) {
		typ = " of type " + w.call(n.Type())
	}
	return fmt.Sprintf("name %s%s%s%s", quoted(n.Value()), typ, w.scope(n), w.reified(n))
}

func (w writer) association(a *tmdm.Association) string {
	roles := make([]string, len(a.Roles()))
	for i, r := range a.Roles() {
		roles[i] = w.role(r)
	}
	slices.Sort(roles)
	return "association of type " + w.call(a.Type()) + " (" + strings.Join(roles, ", ") + ")" + w.scope(a) + w.reified(a)
}

func (w writer) role(r *tmdm.AssociationRole) string {
	return w.call(r.Type()) + ": " + w.call(r.Player()) + w.reified(r)
}

func (w writer) scope(c tmdm.Scoped) string {
	themes := c.Scope().Themes()
	if len(themes) == 0 {
		return ""
	}
	names := make([]string, len(themes))
	for i, t := range themes {
		names[i] = w.call(t)
	}
	slices.Sort(names)
	return " in scope " + strings.Join(names, ", ")
}

func (w writer) reified(c tmdm.Reifiable) string {
	if t := c.Reifier(); t != nil {
		return " reified by " + w.call(t)
	}
	return ""
}

func datatype(d string) string {
	if d == tmdm.XSDString {
		return ""
	}
	return " (" + marked(Datatype, d) + ")"
}

// isFirst reports whether r is the first of the roles that its player plays in
// its association.
func isFirst(r *tmdm.AssociationRole) bool {
	for _, other := range r.Association().Roles() {
		if other.Player() == r.Player() {
			return other == r
		}
	}
	return false
}
