package mapping

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
)

// itemOf is an item of a topic map, with the properties that its statement does not represent.
type itemOf struct {
	statement  rdf.Quad
	item       tmdm.Reifiable
	scope      []*tmdm.Topic
	variants   []*tmdm.Variant
	datatype   string
	occurrence bool // readers would take the occurrence for a name
}

// identifiers returns the item identifiers of an item, without the names of files.
func identifiers(item tmdm.Reifiable) (all []tmdm.Locator) {
	for _, l := range item.ItemIdentifiers() {
		if !isFile(l) {
			all = append(all, l)
		}
	}
	return all
}

// isBare reports whether an item has neither a reifier nor properties beyond its statement.
func (i *itemOf) isBare() bool {
	return i.item.Reifier() == nil && len(identifiers(i.item)) == 0 && len(i.scope)+len(i.variants) == 0 &&
		i.datatype == "" && !i.occurrence
}

// more records an item that needs a description, or counts it as lost.
func (w *writing) more(i itemOf) {
	if i.isBare() {
		return
	}
	if !w.plain {
		w.special = append(w.special, i)
		return
	}
	w.lose(i.item, i.scope)
	w.losses.Variants += len(i.variants)
	if i.datatype != "" {
		w.losses.Datatypes++
	}
}

// lose counts the properties of an item that a graph without TMShare's vocabulary cannot represent.
func (w *writing) lose(item tmdm.Reifiable, scope []*tmdm.Topic) {
	w.losses.ItemIdentifiers += len(identifiers(item))
	if len(scope) > 0 {
		w.losses.Scopes++
	}
	if item.Reifier() != nil {
		w.losses.Reifiers++
	}
}

// describe adds the descriptions of statements, by a node for each item. If a statement also stands for an item without
// a description, that item gets a node, too; else it would be lost.
func (w *writing) describe() {
	w.undisguise()
	bare := map[rdf.Quad]int{}
	for _, i := range w.special {
		bare[i.statement]--
	}
	for echo := range w.echoes {
		bare[echo]--
	}
	for _, q := range w.quads {
		if n, ok := bare[q]; ok {
			bare[q] = n + 1
		}
	}
	for _, i := range w.special {
		w.describeItem(i)
		if bare[i.statement] > 0 {
			delete(bare, i.statement)
			w.describeItem(itemOf{statement: i.statement})
		}
	}
	if len(w.echoes) == 0 {
		return
	}
	for _, q := range rdf.Sorted(w.quads) {
		if w.echoes[q] && bare[q] > 0 {
			w.describeItem(itemOf{statement: q})
		}
	}
}

// undisguise removes statements of occurrences with the default type of names, because readers take them for names only
// if rdfs:label repeats them.
func (w *writing) undisguise() {
	labelled := map[rdf.Quad]bool{}
	for _, i := range w.special {
		if echo, ok := echoOf(i.statement); ok && i.occurrence {
			labelled[echo] = false
		}
	}
	if len(labelled) == 0 {
		return
	}
	for _, q := range w.quads {
		if _, ok := labelled[q]; ok {
			labelled[q] = true
		}
	}
	w.special = slices.DeleteFunc(w.special, func(i itemOf) bool {
		echo, ok := echoOf(i.statement)
		i.occurrence = i.occurrence && (!ok || labelled[echo])
		return i.isBare()
	})
}

func (w *writing) describeItem(i itemOf) {
	node := w.node("s", termStatement)
	w.say(node, subject, i.statement.Subject)
	w.say(node, predicate, i.statement.Predicate)
	w.say(node, object, i.statement.Object)
	if i.occurrence {
		w.say(node, rdf.Type, rdf.NewIRI(termOccurrence))
	}
	if i.datatype != "" {
		w.say(node, termDatatype, rdf.NewIRI(i.datatype))
	}
	for _, v := range i.variants {
		variant := w.node("v", "")
		w.say(node, termVariant, variant)
		datatype := literalDatatype(v.Datatype())
		if v.Datatype() == tmdm.XSDAnyType || datatype == rdf.LangStr {
			w.say(variant, termDatatype, rdf.NewIRI(v.Datatype()))
		}
		if v.Datatype() == tmdm.XSDAnyType {
			datatype = xmlLiteral
		}
		w.say(variant, termValue, rdf.NewLiteral(v.Value(), datatype))
		w.details(variant, v, v.Scope().Themes())
	}
	if i.item != nil {
		w.details(node, i.item, i.scope)
	}
}

// details adds the properties of an item beyond its statement to a node.
func (w *writing) details(node rdf.Term, item tmdm.Reifiable, scope []*tmdm.Topic) {
	for _, theme := range scope {
		w.say(node, termScope, w.mention(theme))
	}
	if t := item.Reifier(); t != nil {
		w.say(node, termReifier, w.mention(t))
	}
	for _, l := range identifiers(item) {
		w.say(node, termItemIdentifier, resource(l))
	}
}

// itself adds the description of the map.
func (w *writing) itself(m *tmdm.TopicMap) {
	switch {
	case m.Reifier() == nil && len(identifiers(m)) == 0:
	case w.plain:
		w.lose(m, nil)
	default:
		w.details(w.node("m", termTopicMap), m, nil)
	}
}

// forms are the associations that are statements: those with two types of roles, of one type or of any.
var forms = []struct {
	typ, subject, object tmdm.Locator
	property             string // "": the type
}{
	{tmdm.PSITypeInstance, tmdm.PSIInstance, tmdm.PSIType, rdf.Type},
	{tmdm.PSISupertypeSubtype, tmdm.PSISubtype, tmdm.PSISupertype, subClassOf},
	{"", subject, object, ""},
}

func (w *writing) association(a *tmdm.Association) {
	roles := a.Roles()
	detailed := false
	for _, r := range roles {
		detailed = detailed || r.Reifier() != nil || len(identifiers(r)) > 0
	}
	if len(roles) == 2 && (!detailed || w.plain) {
		for _, form := range forms {
			s, o := roles[0], roles[1]
			if !has(s.Type(), form.subject) {
				s, o = o, s
			}
			if !has(s.Type(), form.subject) || !has(o.Type(), form.object) || form.typ != "" && !has(a.Type(), form.typ) {
				continue
			}
			property := form.property
			if property == "" {
				if property = w.property(a.Type()); !isFree(property) {
					break
				}
			}
			for _, t := range []*tmdm.Topic{a.Type(), s.Type(), o.Type()} {
				w.talks[t] = true
			}
			q := w.say(w.mention(s.Player()), property, w.mention(o.Player()))
			w.more(itemOf{statement: q, item: a, scope: a.Scope().Themes()})
			if w.plain {
				w.lose(s, nil)
				w.lose(o, nil)
			}
			return
		}
	}
	if len(roles) == 0 {
		w.losses.Associations++
		return
	}
	w.associationNode(a, roles)
}

// isFree reports whether a property between two resources is an association without other meaning.
func isFree(property string) bool {
	switch property {
	case rdf.Type, subClassOf, termSubjectIdentifier, termSubjectLocator, termItemIdentifier:
		return false
	}
	return true
}

func (w *writing) associationNode(a *tmdm.Association, roles []*tmdm.AssociationRole) {
	typ := ""
	if !w.plain {
		typ = termAssociation
	}
	node := w.node("a", typ)
	w.say(node, rdf.Type, w.mention(a.Type()))
	if w.plain {
		w.lose(a, a.Scope().Themes())
	} else {
		w.details(node, a, a.Scope().Themes())
	}
	for _, r := range roles {
		property, player := w.property(r.Type()), w.mention(r.Player())
		switch {
		case w.plain:
			w.lose(r, nil)
			w.say(node, property, player)
		case r.Reifier() == nil && len(identifiers(r)) == 0 && property != rdf.Type && !strings.HasPrefix(property, NS):
			w.say(node, property, player)
		default:
			role := w.node("r", "")
			w.say(node, termRole, role)
			w.say(role, termRoleType, w.mention(r.Type()))
			w.say(role, termPlayer, player)
			w.details(role, r, nil)
		}
	}
}
