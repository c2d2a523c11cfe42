package xtm

import (
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// This file writes XTM 2.1, which carries the whole data model, and XTM 2.0,
// which does too but refers to topics by the id of their elements only.

func (e *Encoder) topicMap2x(m *Map) {
	e.tag("topicMap")
	e.attr("xmlns", nsXTM2)
	e.attr("version", string(e.version))
	e.reifiable2x(m.ItemIdentifiers, m.Reifier)
}

func (e *Encoder) topic2x(t *Topic) {
	id, rest := e.topicID2x(t)
	e.openID("topic", id)
	for _, l := range rest {
		e.itemLink("itemIdentity", l)
	}
	for _, l := range t.SubjectLocators {
		e.link("subjectLocator", l)
	}
	for _, l := range t.SubjectIdentifiers {
		e.link("subjectIdentifier", l)
	}
	e.refs2x("instanceOf", t.Types)
	for i := range t.Names {
		e.name2x(t, &t.Names[i])
	}
	for i := range t.Occurrences {
		e.occurrence2x(t, &t.Occurrences[i])
	}
	e.close("topic")
}

// topicID2x returns the id of a topic element, if it has one, and the other item identifiers. XTM 2.1 requires no id.
func (e *Encoder) topicID2x(t *Topic) (id string, rest []tmdm.Locator) {
	if e.version == V20 || t.id != "" {
		return e.topicID10(t)
	}
	if t.self().IsZero() {
		e.fail("a topic", "it has no identifier")
	}
	for i, l := range t.ItemIdentifiers {
		if id, ok := e.xmlID(l); ok && e.claim(id) {
			return id, withoutAt(t.ItemIdentifiers, i)
		}
	}
	return "", t.ItemIdentifiers
}

func (e *Encoder) name2x(t *Topic, n *Name) {
	e.checkText(n.Value, func() string { return fmt.Sprintf("the name %.100q of %s", n.Value, t.describe()) })
	e.tag("name")
	e.reifiable2x(n.ItemIdentifiers, n.Reifier)
	if n.Type != (Ref{}) && n.Type != SubjectIdentifier(tmdm.PSIDefaultNameType) {
		e.refs2x("type", []Ref{n.Type})
	}
	e.refs2x("scope", n.Scope)
	e.text("value", n.Value)
	for i := range n.Variants {
		e.variant2x(t, n, &n.Variants[i])
	}
	e.close("name")
}

func (e *Encoder) variant2x(t *Topic, n *Name, v *Variant) {
	construct := func() string {
		return fmt.Sprintf("the variant %.100q of the name %.100q of %s", v.Value, n.Value, t.describe())
	}
	e.checkText(v.Value, construct)
	themes := beyond(v.Scope, n.Scope)
	if len(themes) == 0 { // readers must refuse it (ISO 13250-2 §5.5)
		e.losses.Variants++
		return
	}
	e.tag("variant")
	e.reifiable2x(v.ItemIdentifiers, v.Reifier)
	e.refs2x("scope", themes)
	e.resource2x(v.Value, v.Datatype, construct)
	e.close("variant")
}

func (e *Encoder) occurrence2x(t *Topic, o *Occurrence) {
	construct := func() string { return fmt.Sprintf("the occurrence %.100q of %s", o.Value, t.describe()) }
	e.tag("occurrence")
	e.reifiable2x(o.ItemIdentifiers, o.Reifier)
	e.type2x(o.Type, construct)
	e.refs2x("scope", o.Scope)
	e.resource2x(o.Value, o.Datatype, construct)
	e.close("occurrence")
}

func (e *Encoder) resource2x(value, datatype string, construct func() string) {
	e.checkText(value, construct)
	switch {
	case isLocator(value, datatype):
		e.link("resourceRef", tmdm.Locator(value))
	case datatype == tmdm.XSDString || datatype == "":
		e.text("resourceData", value)
	case datatype == tmdm.XSDAnyType:
		e.embedded2x(value, construct)
	default:
		e.tag("resourceData")
		e.checkLocator(datatype)
		if datatype == tmdm.XSDAnyURI { // readers resolve the value
			e.checkLocator(value)
		}
		e.locatorAttr("datatype", datatype)
		e.endText("resourceData", value)
	}
}

// embedded2x writes a value that is XML, outside of the namespace of XTM, so that elements in it without a prefix have
// no namespace.
func (e *Encoder) embedded2x(value string, construct func() string) {
	if !isEmbedded(value) {
		e.fail(construct(), "the value has the datatype xsd:anyType, but is not canonical XML")
		return
	}
	name := "resourceData"
	if strings.Contains(value, "<") {
		name = "x:resourceData"
		e.tag(name)
		e.attr("xmlns:x", nsXTM2)
		e.attr("xmlns", "")
	} else {
		e.tag(name)
	}
	e.attr("datatype", tmdm.XSDAnyType)
	e.buf = append(append(e.buf, '>'), value...)
	e.buf = append(append(append(e.buf, "</"...), name...), ">\n"...)
}

func (e *Encoder) association2x(a *Association) {
	if len(a.Roles) == 0 {
		e.losses.Associations++
		return
	}
	construct := func() string { return fmt.Sprintf("an association with %s", a.Roles[0].Player.describe()) }
	e.tag("association")
	e.reifiable2x(a.ItemIdentifiers, a.Reifier)
	e.type2x(a.Type, construct)
	e.refs2x("scope", a.Scope)
	for _, r := range a.Roles {
		e.tag("role")
		e.reifiable2x(r.ItemIdentifiers, r.Reifier)
		e.type2x(r.Type, func() string { return "a role of " + construct() })
		e.pointer2x(r.Player)
		e.close("role")
	}
	e.close("association")
}

func (e *Encoder) type2x(typ Ref, construct func() string) {
	if typ.IsZero() {
		e.fail(construct(), "it has no type, which XTM %s requires", e.version)
		return
	}
	e.refs2x("type", []Ref{typ})
}

// reifiable2x ends the start tag of an element and adds its item identifiers and
// its reifier, which is an attribute where that can express it.
func (e *Encoder) reifiable2x(iids []tmdm.Locator, reifier Ref) {
	if e.version == V20 || reifier.Kind == ByItemIdentifier {
		if !reifier.IsZero() {
			e.locatorAttr("reifier", e.topicRef2x(reifier))
		}
		reifier = Ref{}
	}
	e.content()
	if !reifier.IsZero() {
		e.refs2x("reifier", []Ref{reifier})
	}
	for _, l := range iids {
		e.itemLink("itemIdentity", l)
	}
}

func (e *Encoder) refs2x(name string, refs []Ref) {
	if len(refs) == 0 {
		return
	}
	e.open(name)
	for _, r := range refs {
		e.pointer2x(r)
	}
	e.close(name)
}

func (e *Encoder) pointer2x(r Ref) {
	switch {
	case r.IsZero():
		e.fail("a reference", "it refers to no topic")
	case e.version == V20, r.Kind == ByItemIdentifier:
		e.href("topicRef", e.topicRef2x(r))
	case r.Kind == BySubjectIdentifier:
		e.link("subjectIdentifierRef", r.Locator)
	default:
		e.link("subjectLocatorRef", r.Locator)
	}
}

// topicRef2x returns r as a reference to a topic element, the only kind of XTM 2.0.
func (e *Encoder) topicRef2x(r Ref) string {
	if e.version == V20 && (r.Kind != ByItemIdentifier || !strings.Contains(string(r.Locator), "#")) {
		e.fail(r.describe(), "XTM 2.0 can only refer to the id of a topic element")
	}
	return e.topicRef(r.Locator)
}
