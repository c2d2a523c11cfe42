package xtm

import (
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/c14n"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
)

// This file holds the common parts of the grammars of all versions.

// resource reads a value (ISO 13250-3 §4.16, The resourceData element; §4.17, The resourceRef element).
// In XTM 1.0 it has no datatype.
func (d *Decoder) resource(name, parent string) (value, datatype string) {
	switch name {
	case "resourceRef":
		value = d.value(d.href(name))
		d.end(name)
		return value, tmdm.XSDAnyURI
	case "resourceData":
		datatype = tmdm.XSDString
		a, typed := d.xml.Attr("", "datatype")
		if typed && d.version != V10 {
			datatype = string(d.locator(a))
		}
		switch datatype {
		case tmdm.XSDAnyType:
			depth := d.xml.Depth()
			return d.embedded(depth, nil, d.next()), datatype
		case tmdm.XSDAnyURI:
			return d.value([]byte(d.content(name))), datatype
		}
		value, markup := d.textOrMarkup(name, !typed && d.version != V10)
		if markup {
			datatype = tmdm.XSDAnyType
		}
		return value, datatype
	}
	d.unexpected(parent)
	return "", ""
}

// allRefs reads the references that an element holds.
func (d *Decoder) allRefs(parent string) []Ref {
	var few [4]Ref
	refs := few[:0]
	for name := d.child(parent); name != ""; name = d.child(parent) {
		refs = append(refs, d.pointer(parent))
	}
	return d.refs.Keep(refs...)
}

// someRefs reads the references of an element that must hold at least one.
func (d *Decoder) someRefs(parent string) []Ref {
	pos := d.pos()
	refs := d.allRefs(parent)
	if len(refs) == 0 {
		d.exactlyOne(pos, 0, parent)
	}
	return refs
}

// ref reads the reference of an element that must hold exactly one.
func (d *Decoder) ref(parent string) Ref {
	pos, n := d.pos(), 0
	var r Ref
	for name := d.child(parent); name != ""; name = d.child(parent) {
		r = d.pointer(parent)
		n++
	}
	d.exactlyOne(pos, n, parent)
	return r
}

// exactlyOne fails unless n, the number of topics that the element parent names, is 1.
func (d *Decoder) exactlyOne(pos Position, n int, parent string) {
	switch n {
	case 0:
		d.failAt(pos, "<%s> names no topic", parent)
	case 1:
	default:
		d.failAt(pos, "<%s> names more than one topic", parent)
	}
}

// pointer reads an element that refers to a topic.
func (d *Decoder) pointer(parent string) Ref {
	if d.version == V10 {
		return d.pointer10(parent)
	}
	return d.pointer2x(parent)
}

// href returns the href of an element. It fails if there is none.
func (d *Decoder) href(name string) []byte {
	space, shown := "", "href"
	if d.version == V10 {
		space, shown = nsXLink, "xlink:href"
	}
	href, ok := d.xml.Attr(space, "href")
	if !ok {
		d.fail("<%s> has no %s", name, shown)
	}
	return href
}

// fewRoles fails where an association has more roles than the limit allows: the fragment of each player has all of
// them.
func (d *Decoder) fewRoles(a *Association) {
	if n, limit := len(a.Roles), d.limits.Roles; n > limit {
		err := d.errorAt(a.Pos, "<association> has %d roles (%d at most): make several associations of it", n, limit)
		err.Err = ErrLimit
		d.report(err)
	}
}

// one sets *r. It fails where *r is set already.
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

// count fails unless n, the number of child elements of parent, is 1.
func (d *Decoder) count(pos Position, n int, parent, child string) {
	switch n {
	case 0:
		d.failAt(pos, "<%s> has no <%s>", parent, child)
	case 1:
	default:
		d.failAt(pos, "<%s> has more than one <%s>", parent, child)
	}
}

// inherit returns the scope of a variant: its own themes, and those of the enclosing name or variant.
func (d *Decoder) inherit(outer, own []Ref) []Ref {
	if d.err != nil {
		return nil
	}
	for _, r := range outer {
		d.grow(refMemory + len(r.Locator))
	}
	return d.scope(outer, own)
}

// scope returns the themes of a and b, each once. A limit on their number keeps small documents from growing large:
// every variant also has the themes of its name.
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

// embedded returns the content of the resourceData element at a depth in canonical form (ISO 13250-3 §4.16.3,
// Canonicalizing embedded XML): Exclusive XML Canonicalization 1.0, without comments. The text before, and the present
// event, were read already.
func (d *Decoder) embedded(depth int, before []byte, event scan.Kind) string {
	var c c14n.Canonicalizer
	c.Text(before)
	held := 0 // of c.Out
	for ; d.err == nil; event = d.next() {
		d.hold(len(c.Out) - held)
		held = len(c.Out)
		if len(c.Out) > d.limits.Token {
			d.failLimit(limitReasons["Token"], d.limits.Token)
			c.Out, held = c.Out[:0], 0
		}
		switch event {
		case scan.StartElement:
			d.declared(c.Start(d.xml))
		case scan.Text:
			c.Text(d.xml.Text())
		case scan.ProcInst:
			c.ProcInst(d.xml.Target(), d.xml.Text())
		case scan.EndElement:
			if d.xml.Depth() == depth {
				return string(c.Out)
			}
			c.End(d.xml.Name())
		}
	}
	return ""
}

// declared charges the namespace declarations that a start tag gets in the value: the document may have declared them
// once for many values.
func (d *Decoder) declared(bindings []scan.Binding) {
	for _, b := range bindings {
		if len(b.Space) > d.limits.Locator {
			d.failLimit("the name of a namespace of %d bytes is too long (%d at most): %s", len(b.Space), d.limits.Locator,
				excerpt(b.Space))
		}
		d.grow(len(b.Space))
	}
}

// isEmbedded reports whether embedded would return value unchanged, so that it can be written as markup.
func isEmbedded(value string) bool {
	o := Options{Limits: Limits{Token: len(value) + 16, Locator: len(value) + 16}.withDefaults()}
	d := Decoder{
		limits: o.Limits,
		xml:    newScanner(strings.NewReader("<r>"+value+"</r>"), o, o.Limits),
		bases:  []scopedBase{{depth: -1}},
	}
	d.next()
	c := d.embedded(1, nil, d.next())
	if d.err != nil || c != value {
		return false
	}
	d.next()
	return d.err == io.EOF
}
