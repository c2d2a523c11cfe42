package xtm

import (
	"github.com/tmshare/tmshare/tmdm"
)

// This file has the grammar of XTM 1.0 (XTM 1.0 §3, XTM Syntax Documentation) and its mapping to the data model. It
// does not enforce the order of elements within their parent, because documents in use differ, and their meaning does
// not depend on it.

func (d *Decoder) topicMap10() {
	if ids := d.id10(); ids != nil {
		d.queue = append(d.queue, &Map{ItemIdentifiers: ids, Pos: d.pos()})
	}
}

func (d *Decoder) element10(name string) Element {
	switch name {
	case "topic":
		return d.topic10()
	case "association":
		return d.association10()
	case "mergeMap":
		m := d.mergeMap(d.href(name))
		m.Themes = d.scope(nil, d.allRefs(name))
		return m
	}
	d.unexpected("topicMap")
	return nil
}

func (d *Decoder) topic10() *Topic {
	t := d.newTopic()
	t.ItemIdentifiers = append(t.ItemIdentifiers, d.id10()...)
	if _, ok := d.xml.Attr("", "id"); !ok {
		d.fail("<topic> has no id")
	}
	for name := d.child("topic"); name != ""; name = d.child("topic") {
		switch name {
		case "instanceOf":
			t.Types = append(t.Types, d.someRefs(name)...)
		case "subjectIdentity":
			d.subjectIdentity10(t)
		case "baseName":
			t.Names = append(t.Names, d.baseName10())
		case "occurrence":
			t.Occurrences = append(t.Occurrences, d.occurrence10())
		default:
			d.unexpected("topic")
		}
	}
	return t
}

// subjectIdentity10 reads the identifiers of t. In it, a topicRef refers to the same topic.
func (d *Decoder) subjectIdentity10(t *Topic) {
	for name := d.child("subjectIdentity"); name != ""; name = d.child("subjectIdentity") {
		switch r := d.reference10("subjectIdentity", d.identity); r.Kind {
		case ByItemIdentifier:
			t.ItemIdentifiers = append(t.ItemIdentifiers, r.Locator)
		case BySubjectIdentifier:
			t.SubjectIdentifiers = append(t.SubjectIdentifiers, r.Locator)
		case BySubjectLocator:
			t.SubjectLocators = append(t.SubjectLocators, r.Locator)
		}
	}
}

func (d *Decoder) baseName10() Name {
	n := Name{ItemIdentifiers: d.id10()}
	pos, strings := d.pos(), 0
	for name := d.child("baseName"); name != ""; name = d.child("baseName") {
		switch name {
		case "instanceOf":
			d.tolerate(UntypedNames,
				"<baseName> cannot hold <instanceOf> in XTM 1.0; lenient reading takes it as the type of the name, as "+
					"Ontopia means it")
			d.one(&n.Type, d.ref(name), "baseName", name)
		case "scope":
			n.Scope = d.scope(n.Scope, d.someRefs(name))
		case "baseNameString":
			n.Value = d.content(name)
			strings++
		case "variant":
			n.Variants = d.variant10(n.Variants)
		default:
			d.unexpected("baseName")
		}
	}
	d.count(pos, strings, "baseName", "baseNameString")
	d.defaultType(&n.Type, tmdm.PSIDefaultNameType)
	// Only now is the whole scope of the name known.
	for i := range n.Variants {
		n.Variants[i].Scope = d.inherit(n.Scope, n.Variants[i].Scope)
	}
	return n
}

// variant10 appends the variant that started, and those within it, to
// variants. Each has the parameters of all that it is nested in.
func (d *Decoder) variant10(variants []Variant) []Variant {
	v := Variant{ItemIdentifiers: d.id10()}
	pos, parameters, values := d.pos(), 0, 0
	var inner []Variant
	for name := d.child("variant"); name != ""; name = d.child("variant") {
		switch name {
		case "parameters":
			v.Scope = d.scope(v.Scope, d.someRefs(name))
			parameters++
		case "variantName":
			d.variantName10(&v)
			values++
		case "variant":
			inner = d.variant10(inner)
		default:
			d.unexpected("variant")
		}
	}
	d.count(pos, parameters, "variant", "parameters")
	if values > 0 {
		d.count(pos, values, "variant", "variantName")
		variants = append(variants, v)
	}
	for _, n := range inner {
		n.Scope = d.inherit(v.Scope, n.Scope)
		variants = append(variants, n)
	}
	return variants
}

func (d *Decoder) variantName10(v *Variant) {
	pos, values := d.pos(), 0
	for name := d.child("variantName"); name != ""; name = d.child("variantName") {
		v.Value, v.Datatype = d.resource(name, "variantName")
		values++
	}
	d.count(pos, values, "variantName", "resourceRef> or <resourceData")
}

func (d *Decoder) occurrence10() Occurrence {
	o := Occurrence{ItemIdentifiers: d.id10()}
	pos, values := d.pos(), 0
	for name := d.child("occurrence"); name != ""; name = d.child("occurrence") {
		switch name {
		case "instanceOf":
			d.one(&o.Type, d.ref(name), "occurrence", name)
		case "scope":
			o.Scope = d.scope(o.Scope, d.someRefs(name))
		default:
			o.Value, o.Datatype = d.resource(name, "occurrence")
			values++
		}
	}
	d.count(pos, values, "occurrence", "resourceRef> or <resourceData")
	d.defaultType(&o.Type, PSIOccurrence)
	return o
}

func (d *Decoder) association10() *Association {
	a := d.newAssociation()
	a.ItemIdentifiers = d.id10()
	members := 0
	for name := d.child("association"); name != ""; name = d.child("association") {
		switch name {
		case "instanceOf":
			d.one(&a.Type, d.ref(name), "association", name)
		case "scope":
			a.Scope = d.scope(a.Scope, d.someRefs(name))
		case "member":
			a.Roles = d.member10(a.Roles)
			members++
		default:
			d.unexpected("association")
		}
	}
	if members == 0 {
		d.failAt(a.Pos, "<association> has no <member>")
	}
	d.defaultType(&a.Type, PSIAssociation)
	d.fewRoles(a)
	return a
}

// member10 appends a role for each player. The id of a member identifies its role only if it has one player.
func (d *Decoder) member10(roles []Role) []Role {
	ids := d.id10()
	var typ Ref
	var few [4]Ref
	players := few[:0]
	for name := d.child("member"); name != ""; name = d.child("member") {
		switch name {
		case "roleSpec":
			d.one(&typ, d.ref(name), "member", name)
		default:
			players = append(players, d.pointer10("member"))
		}
	}
	d.defaultType(&typ, PSIRole)
	if len(players) != 1 {
		ids = nil
	}
	d.hold(childMemory * len(players)) // a role each
	for _, p := range players {
		roles = append(roles, Role{ItemIdentifiers: ids, Type: typ, Player: p})
	}
	return roles
}

// pointer10 reads topicRef, subjectIndicatorRef or resourceRef.
func (d *Decoder) pointer10(parent string) Ref { return d.reference10(parent, d.locator) }

// reference10 is pointer10 with the function that resolves the reference.
func (d *Decoder) reference10(parent string, resolve func([]byte) tmdm.Locator) Ref {
	var r Ref
	name := d.xml.Name().Local
	switch name {
	case "topicRef":
		r.Kind = ByItemIdentifier
	case "subjectIndicatorRef":
		r.Kind = BySubjectIdentifier
	case "resourceRef":
		r.Kind = BySubjectLocator
	default:
		d.unexpected(parent)
		return r
	}
	r.Locator = resolve(d.href(name))
	if r.Kind == BySubjectIdentifier {
		if s, ok := successors[r.Locator]; ok {
			r.Locator = s
		}
	}
	d.end(name)
	return r
}

// id10 returns the item identifier that the id of the element makes, if it has
// one.
func (d *Decoder) id10() []tmdm.Locator {
	id, ok := d.xml.Attr("", "id")
	if !ok {
		return nil
	}
	if len(id) == 0 {
		d.fail("the id of <%s> is empty", d.xml.Name().Local)
		return nil
	}
	l := d.itemIdentifier(id)
	if l == "" {
		return nil
	}
	return d.locators.Keep(l)
}
