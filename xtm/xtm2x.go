package xtm

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
)

// This file holds the grammar of XTM 2.0 and 2.1 (ISO 13250-3 §4, Syntax
// definition). Constructs that 2.0 does not have are refused in documents of version 2.0. The order of elements is
// not enforced.

func (d *Decoder) topicMap2x() {
	m := &Map{Pos: d.pos()}
	d.reifierAttr(&m.Reifier)
	d.reified = !m.Reifier.IsZero()
	if m.Reifier.Locator != "" { // else there was a problem with it
		d.queue = append(d.queue, m)
	}
}

func (d *Decoder) element2x(name string) Element {
	switch name {
	case "topic":
		return d.topic2x()
	case "association":
		return d.association2x()
	case "itemIdentity":
		return &Map{Pos: d.pos(), ItemIdentifiers: []tmdm.Locator{d.identity2x(name)}}
	case "reifier":
		m := &Map{Pos: d.pos()}
		if d.reified {
			d.fail("<topicMap> has more than one reifier")
		}
		d.reifier2x(&m.Reifier, "topicMap")
		d.reified = true
		return m
	case "mergeMap":
		m := d.mergeMap(d.href(name))
		d.end(name)
		return m
	}
	d.unexpected("topicMap")
	return nil
}

func (d *Decoder) topic2x() *Topic {
	t := d.newTopic()
	id, hasID := d.xml.Attr("", "id")
	switch {
	case hasID && !scan.IsNCName(string(id)):
		d.fail("the id %q of <topic> is not an XML name", id)
	case hasID:
		t.ItemIdentifiers = append(t.ItemIdentifiers, d.itemIdentifier(id))
	case d.version == V20:
		d.fail("<topic> has no id, which XTM 2.0 requires")
	}
	for name := d.child("topic"); name != ""; name = d.child("topic") {
		switch name {
		case "itemIdentity":
			t.ItemIdentifiers = append(t.ItemIdentifiers, d.identity2x(name))
		case "subjectIdentifier":
			t.SubjectIdentifiers = append(t.SubjectIdentifiers, d.identity2x(name))
		case "subjectLocator":
			t.SubjectLocators = append(t.SubjectLocators, d.identity2x(name))
		case "instanceOf":
			t.Types = append(t.Types, d.someRefs(name)...)
		case "name":
			t.Names = append(t.Names, d.name2x())
		case "occurrence":
			t.Occurrences = append(t.Occurrences, d.occurrence2x())
		default:
			d.unexpected("topic")
		}
	}
	if !hasID && t.self().IsZero() {
		d.failAt(t.Pos, "<topic> has neither an id nor <itemIdentity>, <subjectIdentifier> or <subjectLocator>")
	}
	return t
}

// parts2x are the common parts of statements. Those that a kind of statement cannot have are nil.
type parts2x struct {
	ids     *[]tmdm.Locator
	reifier *Ref
	typ     *Ref
	scope   *[]Ref
}

// statement2x reads an element that makes a statement; other reads the children that only its kind has.
func (d *Decoder) statement2x(element string, p parts2x, other func(name string)) {
	d.reifierAttr(p.reifier)
	for name := d.child(element); name != ""; name = d.child(element) {
		switch {
		case name == "itemIdentity":
			*p.ids = append(*p.ids, d.identity2x(name))
		case name == "reifier":
			d.reifier2x(p.reifier, element)
		case name == "type" && p.typ != nil:
			d.one(p.typ, d.ref(name), element, name)
		case name == "scope" && p.scope != nil:
			*p.scope = d.scope(*p.scope, d.someRefs(name))
		default:
			other(name)
		}
	}
}

func (d *Decoder) name2x() Name {
	var n Name
	pos, values := d.pos(), 0
	d.statement2x("name", parts2x{&n.ItemIdentifiers, &n.Reifier, &n.Type, &n.Scope}, func(name string) {
		switch name {
		case "value":
			n.Value = d.content(name)
			values++
		case "variant":
			n.Variants = append(n.Variants, d.variant2x())
		default:
			d.unexpected("name")
		}
	})
	d.count(pos, values, "name", "value")
	d.defaultType(&n.Type, tmdm.PSIDefaultNameType)
	for i := range n.Variants {
		v := &n.Variants[i]
		adds := func(r Ref) bool { return !slices.Contains(n.Scope, r) }
		if !slices.ContainsFunc(v.Scope, adds) {
			d.failAt(pos, "the scope of the <variant> %q adds no topic to that of its name", excerpt(v.Value))
		}
		v.Scope = d.inherit(n.Scope, v.Scope)
	}
	return n
}

func (d *Decoder) variant2x() Variant {
	var v Variant
	pos, values := d.pos(), 0
	d.statement2x("variant", parts2x{&v.ItemIdentifiers, &v.Reifier, nil, &v.Scope}, func(name string) {
		v.Value, v.Datatype = d.resource(name, "variant")
		values++
	})
	d.count(pos, values, "variant", "resourceRef> or <resourceData")
	if len(v.Scope) == 0 {
		d.failAt(pos, "<variant> has no <scope>")
	}
	return v
}

func (d *Decoder) occurrence2x() Occurrence {
	var o Occurrence
	pos, values := d.pos(), 0
	d.statement2x("occurrence", parts2x{&o.ItemIdentifiers, &o.Reifier, &o.Type, &o.Scope}, func(name string) {
		o.Value, o.Datatype = d.resource(name, "occurrence")
		values++
	})
	d.typed(pos, o.Type, "occurrence")
	d.count(pos, values, "occurrence", "resourceRef> or <resourceData")
	return o
}

func (d *Decoder) association2x() *Association {
	a := d.newAssociation()
	d.statement2x("association", parts2x{&a.ItemIdentifiers, &a.Reifier, &a.Type, &a.Scope}, func(name string) {
		if name != "role" {
			d.unexpected("association")
			return
		}
		a.Roles = append(a.Roles, d.role2x())
	})
	d.typed(a.Pos, a.Type, "association")
	if len(a.Roles) == 0 {
		d.failAt(a.Pos, "<association> has no <role>")
	}
	d.fewRoles(a)
	return a
}

func (d *Decoder) role2x() Role {
	var r Role
	pos := d.pos()
	d.statement2x("role", parts2x{&r.ItemIdentifiers, &r.Reifier, &r.Type, nil}, func(string) {
		d.one(&r.Player, d.pointer2x("role"), "role", "topicRef")
	})
	d.typed(pos, r.Type, "role")
	if r.Player.IsZero() {
		d.failAt(pos, "<role> has no player")
	}
	return r
}

func (d *Decoder) typed(pos Position, typ Ref, name string) {
	if typ.IsZero() {
		d.failAt(pos, "<%s> has no <type>", name)
	}
}

// reifierAttr reads the reifier attribute of the element that started
// (ISO 13250-3 §4.3.2, The reifier attribute).
func (d *Decoder) reifierAttr(r *Ref) {
	a, ok := d.xml.Attr("", "reifier")
	if !ok {
		return
	}
	*r = ItemIdentifier(d.locator(a))
	if d.version == V20 && !namesElement(r.Locator) { // finish sees whether a topic calls itself so
		d.tolerate(ReifierIDs, noElement, a)
	}
}

// reifier2x reads a reifier element (ISO 13250-3 §4.3.3, The reifier element).
func (d *Decoder) reifier2x(r *Ref, parent string) {
	if d.version == V20 {
		d.fail("<reifier> is not part of XTM 2.0; the attribute is")
	}
	if !r.IsZero() {
		d.fail("<%s> has more than one reifier", parent)
	}
	*r = d.ref("reifier")
}

// pointer2x reads topicRef, subjectIdentifierRef or subjectLocatorRef
// (ISO 13250-3 §4.20 to §4.22).
func (d *Decoder) pointer2x(parent string) Ref {
	var r Ref
	name := d.xml.Name().Local
	switch name {
	case "topicRef":
		r = ItemIdentifier(d.topicRef2x(d.href(name)))
		d.end(name)
		return r
	case "subjectIdentifierRef":
		r.Kind = BySubjectIdentifier
	case "subjectLocatorRef":
		r.Kind = BySubjectLocator
	default:
		d.unexpected(parent)
		return r
	}
	if d.version == V20 {
		d.fail("<%s> is not part of XTM 2.0", name)
	}
	r.Locator = d.locator(d.href(name))
	d.end(name)
	return r
}

// topicRef2x resolves a reference to a topic element. In XTM 2.0 it must have a
// fragment, as it can only mean the id of one (ISO 13250-3:2007 §4.17).
func (d *Decoder) topicRef2x(href []byte) tmdm.Locator {
	l := d.locator(href)
	if d.version == V20 && !namesElement(l) {
		d.fail(noElement, href)
	}
	return l
}

const noElement = "%q refers to no topic element: it has no fragment"

// namesElement reports whether a locator can be made of the id of an element.
func namesElement(l tmdm.Locator) bool { return strings.Contains(string(l), "#") }

// identity2x reads an empty element whose href is a locator.
func (d *Decoder) identity2x(name string) tmdm.Locator {
	l := d.identity(d.href(name))
	d.end(name)
	return l
}
