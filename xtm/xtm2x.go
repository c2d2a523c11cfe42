package xtm

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
)

// This file holds the grammar of XTM 2.0 and 2.1 (ISO 13250-3 §4, Syntax
// definition). What 2.0 does not have is refused in documents that call
// themselves 2.0. The order of elements is not enforced.

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
		m := d.mergeMap(d.href2x(name))
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
			t.Types = append(t.Types, d.refs2x(name)...)
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

func (d *Decoder) name2x() Name {
	var n Name
	d.reifierAttr(&n.Reifier)
	pos, values := d.pos(), 0
	for name := d.child("name"); name != ""; name = d.child("name") {
		switch name {
		case "itemIdentity":
			n.ItemIdentifiers = append(n.ItemIdentifiers, d.identity2x(name))
		case "reifier":
			d.reifier2x(&n.Reifier, "name")
		case "type":
			d.one(&n.Type, d.ref2x(name), "name", name)
		case "scope":
			n.Scope = d.scope(n.Scope, d.refs2x(name))
		case "value":
			n.Value = d.content(name)
			values++
		case "variant":
			n.Variants = append(n.Variants, d.variant2x())
		default:
			d.unexpected("name")
		}
	}
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
	d.reifierAttr(&v.Reifier)
	pos, values := d.pos(), 0
	for name := d.child("variant"); name != ""; name = d.child("variant") {
		switch name {
		case "itemIdentity":
			v.ItemIdentifiers = append(v.ItemIdentifiers, d.identity2x(name))
		case "reifier":
			d.reifier2x(&v.Reifier, "variant")
		case "scope":
			v.Scope = d.scope(v.Scope, d.refs2x(name))
		default:
			v.Value, v.Datatype = d.resource2x(name, "variant")
			values++
		}
	}
	d.count(pos, values, "variant", "resourceRef> or <resourceData")
	if len(v.Scope) == 0 {
		d.failAt(pos, "<variant> has no <scope>")
	}
	return v
}

func (d *Decoder) occurrence2x() Occurrence {
	var o Occurrence
	d.reifierAttr(&o.Reifier)
	pos, values := d.pos(), 0
	for name := d.child("occurrence"); name != ""; name = d.child("occurrence") {
		switch name {
		case "itemIdentity":
			o.ItemIdentifiers = append(o.ItemIdentifiers, d.identity2x(name))
		case "reifier":
			d.reifier2x(&o.Reifier, "occurrence")
		case "type":
			d.one(&o.Type, d.ref2x(name), "occurrence", name)
		case "scope":
			o.Scope = d.scope(o.Scope, d.refs2x(name))
		default:
			o.Value, o.Datatype = d.resource2x(name, "occurrence")
			values++
		}
	}
	d.typed(pos, o.Type, "occurrence")
	d.count(pos, values, "occurrence", "resourceRef> or <resourceData")
	return o
}

// resource2x reads a value (ISO 13250-3 §4.16, The resourceData element; §4.17,
// The resourceRef element).
func (d *Decoder) resource2x(name, parent string) (value, datatype string) {
	switch name {
	case "resourceRef":
		value = d.value(d.href2x(name))
		d.end(name)
		return value, tmdm.XSDAnyURI
	case "resourceData":
		datatype = tmdm.XSDString
		if a, ok := d.xml.Attr("", "datatype"); ok {
			datatype = string(d.locator(a))
		}
		switch datatype {
		case tmdm.XSDAnyType:
			return d.embedded(), datatype
		case tmdm.XSDAnyURI:
			return d.value([]byte(d.content(name))), datatype
		}
		return d.content(name), datatype
	}
	d.unexpected(parent)
	return "", ""
}

func (d *Decoder) association2x() *Association {
	a := d.newAssociation()
	d.reifierAttr(&a.Reifier)
	for name := d.child("association"); name != ""; name = d.child("association") {
		switch name {
		case "itemIdentity":
			a.ItemIdentifiers = append(a.ItemIdentifiers, d.identity2x(name))
		case "reifier":
			d.reifier2x(&a.Reifier, "association")
		case "type":
			d.one(&a.Type, d.ref2x(name), "association", name)
		case "scope":
			a.Scope = d.scope(a.Scope, d.refs2x(name))
		case "role":
			a.Roles = append(a.Roles, d.role2x())
		default:
			d.unexpected("association")
		}
	}
	d.typed(a.Pos, a.Type, "association")
	if len(a.Roles) == 0 {
		d.failAt(a.Pos, "<association> has no <role>")
	}
	d.fewRoles(a)
	return a
}

func (d *Decoder) role2x() Role {
	var r Role
	d.reifierAttr(&r.Reifier)
	pos := d.pos()
	for name := d.child("role"); name != ""; name = d.child("role") {
		switch name {
		case "itemIdentity":
			r.ItemIdentifiers = append(r.ItemIdentifiers, d.identity2x(name))
		case "reifier":
			d.reifier2x(&r.Reifier, "role")
		case "type":
			d.one(&r.Type, d.ref2x(name), "role", name)
		default:
			player := d.pointer2x("role")
			d.one(&r.Player, player, "role", "topicRef")
		}
	}
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
	if a, ok := d.xml.Attr("", "reifier"); ok {
		*r = ItemIdentifier(d.topicRef2x(a))
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
	*r = d.ref2x("reifier")
}

// refs2x reads the references of an element that must hold one at least.
func (d *Decoder) refs2x(parent string) []Ref {
	pos := d.pos()
	var few [4]Ref
	refs := few[:0]
	for name := d.child(parent); name != ""; name = d.child(parent) {
		refs = append(refs, d.pointer2x(parent))
	}
	if len(refs) == 0 {
		d.exactlyOne(pos, 0, parent)
	}
	return d.refs.keep(refs...)
}

// ref2x reads the reference of an element that must hold exactly one.
func (d *Decoder) ref2x(parent string) Ref {
	pos, n := d.pos(), 0
	var r Ref
	for name := d.child(parent); name != ""; name = d.child(parent) {
		r = d.pointer2x(parent)
		n++
	}
	d.exactlyOne(pos, n, parent)
	return r
}

// pointer2x reads topicRef, subjectIdentifierRef or subjectLocatorRef
// (ISO 13250-3 §4.20 to §4.22).
func (d *Decoder) pointer2x(parent string) Ref {
	var r Ref
	name := d.xml.Name().Local
	switch name {
	case "topicRef":
		r = ItemIdentifier(d.topicRef2x(d.href2x(name)))
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
	r.Locator = d.locator(d.href2x(name))
	d.end(name)
	return r
}

// topicRef2x resolves a reference to a topic element. In XTM 2.0 it must have a
// fragment, as it can only mean the id of one (ISO 13250-3:2007 §4.17).
func (d *Decoder) topicRef2x(href []byte) tmdm.Locator {
	l := d.locator(href)
	if d.version == V20 && !strings.Contains(string(l), "#") {
		d.fail("%q refers to no topic element: it has no fragment", href)
	}
	return l
}

// identity2x reads an empty element whose href is a locator.
func (d *Decoder) identity2x(name string) tmdm.Locator {
	l := d.identity(d.href2x(name))
	d.end(name)
	return l
}

func (d *Decoder) href2x(name string) []byte {
	href, ok := d.xml.Attr("", "href")
	if !ok {
		d.fail("<%s> has no href", name)
	}
	return href
}
