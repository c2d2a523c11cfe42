package xtm

import (
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// This file holds the grammar of XTM 1.0 (XTM 1.0 §3, XTM Syntax
// Documentation) and its mapping to the data model. The order of elements
// within their parent is not enforced: documents in use differ, and none of
// them becomes ambiguous by it.

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
		m := d.mergeMap(d.href10(name))
		m.Themes = d.scope(nil, d.refs10(name))
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
			t.Types = append(t.Types, d.someRefs10(name)...)
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

// subjectIdentity10 reads the identifiers of t. Here a topicRef says that the
// topic referred to is the same one.
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
			d.tolerate(UntypedNames, "<baseName> cannot hold <instanceOf> in XTM 1.0; lenient reading takes it as the type of the name, as Ontopia means it")
			d.one(&n.Type, d.ref10(name), "baseName", name)
		case "scope":
			n.Scope = d.scope(n.Scope, d.someRefs10(name))
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
			v.Scope = d.scope(v.Scope, d.someRefs10(name))
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
		v.Value, v.Datatype = d.resource10(name, "variantName")
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
			d.one(&o.Type, d.ref10(name), "occurrence", name)
		case "scope":
			o.Scope = d.scope(o.Scope, d.someRefs10(name))
		default:
			o.Value, o.Datatype = d.resource10(name, "occurrence")
			values++
		}
	}
	d.count(pos, values, "occurrence", "resourceRef> or <resourceData")
	d.defaultType(&o.Type, PSIOccurrence)
	return o
}

// resource10 reads a value, by reference or in place.
func (d *Decoder) resource10(name, parent string) (value, datatype string) {
	switch name {
	case "resourceRef":
		value = d.value(d.href10(name))
		d.end(name)
		return value, tmdm.XSDAnyURI
	case "resourceData":
		return d.content(name), tmdm.XSDString
	}
	d.unexpected(parent)
	return "", ""
}

func (d *Decoder) association10() *Association {
	a := d.newAssociation()
	a.ItemIdentifiers = d.id10()
	members := 0
	for name := d.child("association"); name != ""; name = d.child("association") {
		switch name {
		case "instanceOf":
			d.one(&a.Type, d.ref10(name), "association", name)
		case "scope":
			a.Scope = d.scope(a.Scope, d.someRefs10(name))
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

// fewRoles fails where an association has more roles than the limit allows: each of
// its players has all of them in its fragment.
func (d *Decoder) fewRoles(a *Association) {
	if n, limit := len(a.Roles), d.limits.Roles; n > limit {
		err := d.errorAt(a.Pos, "<association> has %d roles (%d at most): make several associations of it", n, limit)
		err.Err = ErrLimit
		d.report(err)
	}
}

// member10 appends a role for each player. The id of a member identifies a
// role only where there is one player.
func (d *Decoder) member10(roles []Role) []Role {
	ids := d.id10()
	var typ Ref
	var few [4]Ref
	players := few[:0]
	for name := d.child("member"); name != ""; name = d.child("member") {
		switch name {
		case "roleSpec":
			d.one(&typ, d.ref10(name), "member", name)
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

// refs10 reads the references that an element holds.
func (d *Decoder) refs10(parent string) []Ref {
	var few [4]Ref
	refs := few[:0]
	for name := d.child(parent); name != ""; name = d.child(parent) {
		refs = append(refs, d.pointer10(parent))
	}
	return d.refs.keep(refs...)
}

// someRefs10 reads the references of an element that must hold one at least.
func (d *Decoder) someRefs10(parent string) []Ref {
	pos := d.pos()
	refs := d.refs10(parent)
	if len(refs) == 0 {
		d.exactlyOne(pos, 0, parent)
	}
	return refs
}

// ref10 reads the reference of an element that must hold exactly one.
func (d *Decoder) ref10(parent string) Ref {
	pos, n := d.pos(), 0
	var r Ref
	for name := d.child(parent); name != ""; name = d.child(parent) {
		r = d.pointer10(parent)
		n++
	}
	d.exactlyOne(pos, n, parent)
	return r
}

// exactlyOne fails where an element that names one topic names n.
func (d *Decoder) exactlyOne(pos Position, n int, parent string) {
	switch n {
	case 0:
		d.failAt(pos, "<%s> names no topic", parent)
	case 1:
	default:
		d.failAt(pos, "<%s> names more than one topic", parent)
	}
}

// pointer10 reads topicRef, subjectIndicatorRef or resourceRef.
func (d *Decoder) pointer10(parent string) Ref { return d.reference10(parent, d.locator) }

// reference10 is pointer10 with the way to resolve the reference.
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
	r.Locator = resolve(d.href10(name))
	if r.Kind == BySubjectIdentifier {
		if s, ok := successors[r.Locator]; ok {
			r.Locator = s
		}
	}
	d.end(name)
	return r
}

func (d *Decoder) href10(name string) []byte {
	href, ok := d.xml.Attr(nsXLink, "href")
	if !ok {
		d.fail("<%s> has no xlink:href", name)
	}
	return href
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
	return d.locators.keep(l)
}

// one sets *r, which can be set once.
func (d *Decoder) one(r *Ref, to Ref, parent, name string) {
	if !r.IsZero() {
		d.fail("<%s> has more than one <%s>", parent, name)
	}
	*r = to
}

func (d *Decoder) defaultType(r *Ref, psi tmdm.Locator) {
	if r.IsZero() {
		*r = SubjectIdentifier(psi)
	}
}

// count fails where parent has n elements of a kind rather than one.
func (d *Decoder) count(pos Position, n int, parent, child string) {
	switch n {
	case 0:
		d.failAt(pos, "<%s> has no <%s>", parent, child)
	case 1:
	default:
		d.failAt(pos, "<%s> has more than one <%s>", parent, child)
	}
}

// inherit returns the scope of a variant: its own themes, and those of the name
// or variant that it stands in, which are not written again.
func (d *Decoder) inherit(outer, own []Ref) []Ref {
	if d.err != nil {
		return nil
	}
	for _, r := range outer {
		d.grow(refMemory + len(r.Locator))
	}
	return d.scope(outer, own)
}

// scope returns the themes of a and b, each once. A limit on their number keeps
// small documents from growing: every variant has the themes of its name too.
func (d *Decoder) scope(a, b []Ref) []Ref {
	switch {
	case len(a)+len(b) > 2*d.limits.Themes:
	case len(a) == 0:
		a = b
	case len(b) > 0:
		d.hold((len(a) + len(b)) * refMemory)
		a = append(make([]Ref, 0, len(a)+len(b)), a...)
		for _, r := range b {
			if !slices.Contains(a, r) {
				a = append(a, r)
			}
		}
	}
	if limit := d.limits.Themes; len(a) > limit || len(b) > limit {
		d.failLimit("a scope of more than %d topics", limit)
	}
	return a
}
